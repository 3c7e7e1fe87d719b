"""Writes the hand-made corpora of the fuzz targets: tests/fuzz/corpus/<target>.

    .venv/bin/python tests/fuzz/make_corpus.py

Each target's inputs begin with letters that choose (fuzz.h), as its LLVMFuzzerTestOneInput says.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import sys
from pathlib import Path
from typing import Any

from google.protobuf import json_format

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/e2e/security"), str(ROOT / "tests/proto")]

from http2 import (  # noqa: E402
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    header_block,
    message_prefix,
)
from messages import Messages  # noqa: E402

CORPUS = ROOT / "tests/fuzz/corpus"

TEXTS = {
    "sentences": "Dr. Smith reads, e.g. at 5 p.m.  A bird sings.\n\nThe last line \t",
    "german": "Er wohnt z. B. in der Str. 5. „Ach so!“, sagt sie … Na ja.",
    "chinese": "今天天气很好。我们去公园吧！你呢？",
    "thai": "วันนี้อากาศดีมาก เราไปสวนกันเถอะ",
    "accents": "e"
    + "\u0301" * 40
    + " cafe\u0301 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea",
    "blanks": "\u00a0\u3000 a\u200bb \r\n\r\n\v\f ",
    "capitals": "THE DOG RUNS. <ph0> McDONALD'S iPHONE",
    "moses": "l'eau , & apos;s @-@ rock ' n ' roll ( \" [ | ] \" ) %5 $ 3",
    "long": "word, " * 60 + "a" * 300,
    "symbols": '<a href="x">1 &lt; 2</a> {"a": [1e999, NaN]} \\ `\u201c\u2019',
}

MARKUP = {
    "inline": "An <a href=\"x\" title='T'>inline <b>link</b></a>.<br> 1 &lt; 2 &amp; &euro;",
    "blocks": "<ul>\n <li> one <p>two. <i>Three<p>four</i></ul><pre> x\n</pre>",
    "copied": 'a <code>b</code><img alt="c d">e <i translate=no>f <i>g</i></i><!-- h -->',
    "raw": "<script><!-- <script>a</script> --></script><title>b <c> &amp;</title><style>d",
    "broken": "</p><b <i a=\"b'>c</ d></>&notit;&#x110000;&#12<!--->",
    "xml": "<?p ?><!DOCTYPE d [<!ENTITY e '>'>]><x:g id='1'/>a &e; <![CDATA[<b>]]> c",
}

TRANSLATE: dict[str, dict[str, Any]] = {
    "plain": {},
    "options": {"options": {"beam_size": 4, "n_best": 3, "length_penalty": 0.5, "temperature": 2}},
    "limits": {
        "options": {"min_target_tokens": 3, "max_target_tokens": 9, "top_p": 0.5, "seed": 7}
    },
    "words": {"word_scores": True, "labels": {"team": "search"}, "priority": 3},
    "named": {"model": "en-de", "source_language_code": "EN-us"},
    "detected": {"source_language_code": "", "contents": ["The dog runs across the street."]},
    "several": {"contents": ["A bird sings.", TEXTS["blanks"], TEXTS["chinese"]]},
    "html": {"mime_type": "text/html"},
}


def requests() -> dict[str, bytes]:
    messages = Messages()

    def pack(choice: str, message: str, **fields: Any) -> bytes:
        kind = messages[f"linnet.v1.{message}"]
        return choice.encode() + kind(**fields).SerializeToString(deterministic=True)

    found = {}
    for name, fields in TRANSLATE.items():
        fields = {
            "contents": [TEXTS["sentences"]],
            "source_language_code": "en",
            "target_language_code": "de",
            **fields,
        }
        found[f"translate-{name}"] = pack("a", "TranslateRequest", **fields)
        found[f"stream-{name}"] = pack("d", "TranslateRequest", **fields)
    for name, text in TEXTS.items():
        found[f"summarize-{name}"] = pack(
            "b", "SummarizeRequest", contents=[text], language_code="en", long_input=2
        )
    found["summarize-truncated"] = pack(
        "b",
        "SummarizeRequest",
        contents=[TEXTS["long"]],
        model="en-summary",
        max_summary_tokens=5,
        long_input=3,
    )
    found["summarize-length"] = pack(
        "b",
        "SummarizeRequest",
        contents=[TEXTS["long"]],
        model="en-summary",
        length={"sentences": 2},
        long_input=2,
    )
    found["summarize-style"] = pack(
        "b", "SummarizeRequest", contents=[TEXTS["sentences"]], language_code="en", style=2
    )
    found["score"] = pack(
        "c",
        "ScoreRequest",
        pairs=[{"source_text": "A bird.", "target_text": "Ein Vogel."}] * 2,
        model="en-de",
        options={"temperature": 2},
        word_scores=True,
    )
    settings = {"source_language_code": "en", "target_language_code": "de"}
    lines = [{"sequence_id": n, "text": text} for n, text in enumerate([*TEXTS.values(), "", " "])]
    found["document"] = pack(
        "e", "TranslateDocumentRequest", settings=settings, keep_order=True, lines=lines
    )
    found["document-without-settings"] = pack("e", "TranslateDocumentRequest", lines=lines[:1])
    found["detect"] = pack("f", "DetectLanguageRequest", contents=list(TEXTS.values()))
    found["model"] = pack("g", "GetModelRequest", name="en-de")
    found["half-a-character"] = b"a\x0a\x04caf\xc3\x12\x02en\x1a\x02de"
    found["unknown-field"] = b"a\x0a\x04good\x12\x02en\x1a\x02de\x7a\x02hi"
    return found


def manifests() -> dict[str, bytes]:
    """Manifests as JSON, and after a "p" as serialised messages."""
    inputs = {
        name: json.loads((ROOT / "model/bundles" / name / "manifest.json").read_text())
        for name in ("en-de", "en-summary")
    }
    # The files of tests/support/tiny_bundle.h, which are in the target's folder.
    files = {"model.pt": b"echo", "tiny.spm": (ROOT / "tests/data/tiny.spm").read_bytes()}
    tiny = inputs["en-de"] | {
        "vocabulary": {"size": 400, "bos_id": 0, "pad_id": 1, "eos_id": 2, "unk_id": 3},
        "source_tokenizer_file": "tiny.spm",
        "target_tokenizer_file": "tiny.spm",
        "golden_examples": [],
        "files": [
            {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in files.items()
        ],
        "license": "CC0 1.0",
    }
    tiny.pop("capitals_mark", None)
    changes: dict[str, dict[str, Any]] = {
        "tiny": {},
        "defaults": {"default_options": {}},
        "no-tokenizers": {"source_tokenizer_file": "", "target_tokenizer_file": ""},
        "not-a-number": {"default_options": {"length_penalty": "NaN"}},
        "huge": {"limits": {"max_source_tokens": 2**31 - 1, "max_target_tokens": 2**31 - 1}},
        "ratio": {"default_options": {"max_target_ratio": 1e30, "max_target_tokens": 3}},
        "bpe": {"subword_kind": "SUBWORD_KIND_BPE_CODES", "source_vocabulary_file": "tiny.spm"},
        "languages": {
            "control_ids": [10, 399],
            "languages": [
                {
                    "source_language_code": source,
                    "target_language_code": target,
                    "before_source_ids": [30],
                    "after_source_ids": [31],
                    "forced_target_ids": [32],
                }
                for source, target in (("en", "de"), ("de", "en"))
            ],
        },
        "styles": {
            "task": "TASK_SUMMARIZE",
            "target_language_code": "en",
            "languages": [
                {
                    "source_language_code": "en",
                    "target_language_code": "en",
                    "before_source_ids": [id],
                    "style": style,
                }
                for id, style in ((30, "SUMMARY_STYLE_TITLE"), (31, "SUMMARY_STYLE_PARAGRAPH"))
            ],
        },
    }
    inputs |= {name: tiny | change for name, change in changes.items()}
    kind = Messages()["linnet.v1.BundleManifest"]
    found = {}
    for name, manifest in inputs.items():
        found[name] = json.dumps(manifest, separators=(",", ":")).encode()
        message = json_format.ParseDict(manifest, kind())
        found[f"message-{name}"] = b"p" + message.SerializeToString(deterministic=True)
    return found


def shortlists() -> dict[str, bytes]:
    """Both forms of a shortlist, for 10 target tokens and, after a "w", for 70,000."""
    lists: dict[str, tuple[list[int], list[list[int]], int]] = {
        "narrow": ([9, 4], [[], [7, 5], [], [5, 8, 2]], 10),
        "empty": ([], [[], [], [], []], 10),
        "wide": ([69999], [[], [65536, 5], [], [5, 65535, 2]], 70000),
    }
    found = {}
    for name, (always, rows, targets) in lists.items():
        flat = [token for row in rows for token in row]
        offsets = [sum(map(len, rows[:i])) for i in range(len(rows) + 1)]
        ids = "<%dH" if targets <= 1 << 16 else "<%dI"
        mark = b"w" if targets > 10 else b""
        found[name] = mark + b"".join(
            (
                b"LNSHORT1",
                struct.pack("<4I", len(rows), targets, len(always), len(flat)),
                struct.pack(f"<{len(offsets)}I", *offsets),
                struct.pack(ids % len(always + flat), *always, *flat),
            )
        )
        table = {"always": always, "counts": [len(row) for row in rows], "candidates": flat}
        found[f"{name}-json"] = mark + json.dumps(table).encode()
    found["cut"] = found["narrow"][:-3]
    return found


def options() -> dict[str, bytes]:
    """Settings by file (a), flags (b) and environment (c), tokens (d), traceparent headers (e)."""
    page = (ROOT / "docs/SETTINGS.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| (?:`([^`]*)`)? ?\|", page, re.MULTILINE)
    settings = {name: value for name, value in rows if value}
    trace = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"
    texts = {
        "file": "a" + "".join(f"{name} = {value}\n" for name, value in settings.items()),
        "file-quoted": 'a# comment\nmodels = "some dir"\nthreads="64"\nallow-missing = true\n',
        "file-section": "a[limits]\nthreads = 1\n",
        "file-list": "amax-batch-rows = [1, 2]\n",
        "file-unknown": "amax-content = 1\n",
        "file-odd": "amax-batch-rows = 1e3\nlame-duck = nan\nlisten = [::1]:0\n"
        "max-request-memory = -1\nload-on-demand = except=a,b\nshortlist = true\n",
        "flags": "b--models\nm\n" + "\n".join(f"--{n}={v}" for n, v in settings.items()),
        "flags-help": "b--help",
        "flags-version": "b--version\n--max-batch-rows",
        "flags-wrong": "b--models=m\n--listen\nnowhere\n--max-batch-rows=0\n--\n-x",
        "environment": "c"
        + "\n".join(
            f"{name.upper().replace('-', '_')}={value}" for name, value in settings.items()
        ),
        "environment-unknown": "cROWZ=1\nROWS\n=\n",
        "tokens": "d# who may what\nsecret-1 alice inference\nsecret-2 bob inference,admin # ops\n",
        "tokens-wrong": "dsecret-1 alice\nsecret-2 bob everything\n",
        "trace": f"e00-{trace}-01",
        "trace-later": f"ecc-{trace}-01-what-the-future-holds",
        "trace-wrong": f"e00-{'0' * 32}-{'0' * 16}-00",
    }
    return {name: text.encode() for name, text in texts.items()}


def transport() -> dict[str, bytes]:
    """The bytes of a client on a connection, from the first one on.

    Seeds of tests/e2e/security/transport_test.py.
    """
    hello = PREFACE + frame(SETTINGS, 0, 0, b"") + frame(SETTINGS, ACK, 0, b"")
    messages = {name: data[1:] for name, data in requests().items()}
    priority, continuation = 2, 9

    def headers(stream: int, path: str, flags: int = END_HEADERS, **more: str) -> bytes:
        return frame(HEADERS, flags, stream, header_block(path, **more))

    def body(stream: int, message: bytes, flags: int = END_STREAM) -> bytes:
        return frame(DATA, flags, stream, message_prefix(len(message)) + message)

    def call(stream: int, method: str, message: bytes, **more: str) -> bytes:
        path = method if method.startswith("/") else f"/linnet.v1.TextService/{method}"
        return headers(stream, path, **more) + body(stream, message)

    translate = messages["translate-plain"]
    limits = struct.pack(">HIHI", INITIAL_WINDOW_SIZE, 10, MAX_CONCURRENT_STREAMS, 1)
    document = "/linnet.v1.TextService/TranslateDocument"
    block = header_block("/linnet.v1.TextService/Translate", **{"x-priority": "batch"})
    return {
        "translate": hello + call(1, "Translate", translate),
        "deadline": hello + call(1, "Translate", translate, **{"grpc-timeout": "100m"}),
        "compressed": hello + call(1, "Translate", translate, **{"grpc-encoding": "gzip"}),
        "several": hello
        + b"".join(call(2 * i + 1, "Translate", translate) for i in range(20))
        + frame(RST_STREAM, 0, 5, struct.pack(">I", 8)),
        "summarize": hello + call(1, "Summarize", messages["summarize-german"]),
        "document": hello
        + headers(1, document)
        + body(1, messages["document"], flags=0)
        + body(1, messages["document-without-settings"]),
        "half-a-message": hello
        + headers(1, document)
        + frame(DATA, 0, 1, message_prefix(4_000_000) + b"a" * 1000),
        "health": hello + call(1, "/grpc.health.v1.Health/Check", b""),
        "watch": hello + call(1, "/grpc.health.v1.Health/Watch", b""),
        "admin": hello + call(1, "/linnet.v1.AdminService/Reload", b"", authorization="Bearer x"),
        "reflection": hello
        + call(1, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", b"\x3a\x01*"),
        "unknown-method": hello + call(1, "/no.such.Service/Method", b""),
        "settings": PREFACE + frame(SETTINGS, 0, 0, limits) + call(1, "Translate", translate),
        "windows": hello
        + call(1, "StreamTranslate", messages["stream-plain"])
        + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 20))
        + frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 1 << 20)),
        "continuation": hello
        + frame(HEADERS, 0, 1, block[:40])
        + frame(continuation, 0, 1, block[40:60])
        + frame(continuation, END_HEADERS, 1, block[60:])
        + body(1, translate),
        "indexed": hello + frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x83\x86\x84\x41\x01a"),
        "padded": hello
        + frame(HEADERS, END_HEADERS | 8, 1, b"\x03" + block + b"\0\0\0")
        + frame(DATA, END_STREAM | 8, 1, b"\x02" + message_prefix(0) + b"\0\0"),
        "pings": hello + frame(PING, 0, 0, b"12345678") * 5 + call(1, "ListModels", b""),
        "priority": hello + frame(priority, 0, 3, b"\0\0\0\x01\x10") + call(1, "ListModels", b""),
        "goaway": hello + call(1, "Translate", translate) + frame(GOAWAY, 0, 0, b"\0" * 8),
        "long-header": hello  # of 4000 bytes: RFC 7541, 5.1
        + frame(HEADERS, END_HEADERS, 1, block + b"\0\x02te\x7f\xa1\x1e" + b"a" * 4000)
        + body(1, translate),
        "http1": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    }


def main() -> None:
    corpora = {
        "segmenter": {
            name: f"{'abcdefg'[i % 7]}{'bdhz'[i % 4]}{text}".encode()
            for i, (name, text) in enumerate(TEXTS.items())
        }
        | {"spans": "ahHi. See {Mr. A. It ends. {b. C} here. {No end. D. 今。 {e.\n} F.".encode()},
        "tokenizer": {
            f"{name}-{kind}": f"{kind}{text}".encode()
            for name, text in TEXTS.items()
            for kind in "abcde"
        },
        "markup": {
            name: f"{'b' if name == 'xml' else 'a'}a{text}".encode()
            for name, text in MARKUP.items()
        },
        "request": requests(),
        "manifest": manifests(),
        "shortlist": shortlists(),
        "options": options(),
        "transport": transport(),
    }
    for target, inputs in corpora.items():
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in inputs.items():
            (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
