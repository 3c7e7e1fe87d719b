"""Counts where Linnet, CTranslate2 and transformers answer differently, for docs/DIFFERENCES.md.

    .venv/bin/python tests/bench/engine/differences.py

Every engine has the same tiny M2M-100 with random weights (tests/data/tiny_multilingual.py) and the
same sources. CTranslate2 runs in build/peers, which tests/bench/run makes, with the transformers of
.venv. Nothing here is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import sysconfig
import tempfile
import unicodedata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
for folder in ("tests/data", "tests/bench", "model"):
    sys.path.insert(0, str(ROOT / folder))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import machine  # noqa: E402
import tiny_marian  # noqa: E402
import tiny_multilingual  # noqa: E402
import tokenizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

from linnet_model.bundle import add_shortlist  # noqa: E402
from linnet_model.importers.multilingual import import_multilingual  # noqa: E402
from linnet_model.importers.multilingual.codes import M2M100  # noqa: E402

SOURCES, BEAM = 50, 2
CANDIDATES = 4  # of a source token in a shortlist
PEER = Path(__file__).with_name("differences_ctranslate2.py")
# Letters with two or three marks, composed; and one with a single mark.
MARKED = ["Việt một nền ẩm thực", "Ὦ ᾧ ᾄδω", "한국어 번역", "été déjà"]
CONTROL = ["a </s> b", "a <s> b", "a <pad> b"]


def decoded(decode: Path, bundle: Path, lines: list[dict[str, Any]], *flags: Any) -> list[Any]:
    words = [decode, "--bundle", bundle, "--threads", 1, *flags]
    done = subprocess.run(
        [str(word) for word in words],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line)["hypotheses"][0] for line in done.stdout.splitlines()]


def linnet(
    decode: Path, bundle: Path, texts: list[str], compute: str, batch: int, **more: Any
) -> list[Any]:
    pair = {"source_language": "en", "target_language": "de", **more}
    lines = [{"text": text, **pair} for text in texts]
    flags = ("--compute", compute, "--batch", batch, "--beam", BEAM)
    return decoded(decode, bundle, lines, *flags)


def make_model(folder: Path) -> Any:
    """With the rows and the list of languages of the original, as the converter of CTranslate2
    wants them: eight tokens that no text has; a folder that transformers saves lists no language.
    """
    tiny_multilingual.make_tiny_multilingual("m2m100", folder)
    pieces = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    rows = len(pieces) + len(M2M100.split()) + 8
    tiny = tiny_multilingual.make_tiny_multilingual("m2m100", folder, vocab_size=rows)
    for file in ("tokenizer_config.json", "special_tokens_map.json"):
        table = json.loads((folder / file).read_text(encoding="utf-8"))
        table["additional_special_tokens"] = [f"__{code}__" for code in M2M100.split()]
        (folder / file).write_text(json.dumps(table), encoding="utf-8")
    return tiny


def shortlists(tiny: Any, texts: list[str]) -> dict[int, list[int]]:
    """Random candidates for each token of the texts, so that no two texts have the same."""
    special = set(tiny.tokenizer.all_special_ids)
    tokens = sorted({it for text in texts for it in tiny.tokenizer(text).input_ids} - special)
    draw = random.Random(7)
    return {token: draw.sample(tokens, CANDIDATES) for token in tokens}


def foreign_answers(
    read: list[list[int]], answers: list[list[int]], lists: dict[int, list[int]]
) -> int:
    """The number of answers with a token that no token of their source lists."""
    allowed = [{it for token in row for it in lists.get(token, [])} for row in read]
    listed = {it for row in lists.values() for it in row}
    return sum(
        any(token in listed and token not in own for token in answer)
        for own, answer in zip(allowed, answers, strict=True)
    )


def identical(alone: list[Any], together: list[Any]) -> int:
    return sum(one == other for one, other in zip(alone, together, strict=True))


def of_linnet(
    decode: Path, bundle: Path, tiny: Any, texts: list[str], lists: dict[int, list[int]]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for compute in ("float32", "int8"):
        alone = linnet(decode, bundle, texts, compute, 1)
        together = linnet(decode, bundle, texts, compute, len(texts))
        found[f"identical_{compute}"] = identical(alone, together)
        if compute == "float32":
            # The default length penalty is 1, and the forced language counts in the length.
            gaps = [
                abs(sum(it["token_scores"]) - it["score"] * (len(it["ids"]) + 1)) for it in alone
            ]
            found["largest_score_gap"] = max(gaps)
    composed = linnet(decode, bundle, MARKED, "float32", 1)
    decomposed = [unicodedata.normalize("NFD", text) for text in MARKED]
    found["read_alike"] = identical(composed, linnet(decode, bundle, decomposed, "float32", 1))
    read = [
        len(linnet(decode, bundle, [text], "float32", 1, align=True)[0]["attention"][0])
        for text in ("a b", *CONTROL)
    ]
    # A name that were a token would make the source one token longer.
    found["control_tokens_read"] = sum(tokens <= read[0] + 1 for tokens in read[1:])
    add_shortlist(bundle, [tiny.tokenizer.eos_token_id], lists, by_default=True)
    alone = linnet(decode, bundle, texts, "float32", 1)
    together = linnet(decode, bundle, texts, "float32", len(texts))
    sources = [tiny.tokenizer(text).input_ids for text in texts]
    found["shortlist_identical"] = identical(alone, together)
    found["shortlist_foreign"] = foreign_answers(sources, [it["ids"] for it in together], lists)
    return found


def of_transformers(tiny: Any, texts: list[str]) -> dict[str, Any]:
    def scores(batch: list[str]) -> list[list[float]]:
        tiny.tokenizer.src_lang = "en"
        given = tiny.tokenizer(batch, return_tensors="pt", padding=True)
        with torch.no_grad():
            out = tiny.model.generate(
                **given,
                forced_bos_token_id=tiny.language_id("de"),
                num_beams=BEAM,
                early_stopping=True,
                output_scores=True,
                return_dict_in_generate=True,
            )
        pad = tiny.model.config.pad_token_id
        rows = [[token for token in row if token != pad] for row in out.sequences.tolist()]
        return [
            [*row, score] for row, score in zip(rows, out.sequences_scores.tolist(), strict=True)
        ]

    alone = [scores([text])[0] for text in texts]
    together = scores(texts)
    same = [one[:-1] == other[:-1] for one, other in zip(alone, together, strict=True)]
    ends = tiny.tokenizer.eos_token_id
    special = {ends, tiny.tokenizer.pad_token_id, tiny.tokenizer.bos_token_id}
    typed = [tiny.tokenizer(text).input_ids[1:-1] for text in CONTROL]
    return {
        "identical_float32": identical(alone, together),
        "same_answer_float32": sum(same),
        "control_tokens_read": sum(bool(special & set(ids)) for ids in typed),
        "control_texts": len(CONTROL),
    }


def of_tokenizers(folder: Path) -> dict[str, Any]:
    """The tokenizer in Rust of transformers 4, with the normalisation that transformers 5 has."""
    spm = str(folder / "sentencepiece.bpe.model")
    fast = transformers.MBart50TokenizerFast(spm).backend_tokenizer.normalizer

    def read(text: str) -> str:
        return str(fast.normalize_str(text))

    pairs = [(read(text), read(unicodedata.normalize("NFD", text))) for text in MARKED]
    return {"read_alike": sum(one == other for one, other in pairs)}


def of_ctranslate2(
    python: Path, folder: Path, tiny: Any, texts: list[str], lists: dict[int, list[int]]
) -> dict[str, Any]:
    paths = [sysconfig.get_path("purelib"), str(ROOT / "tests/data")]
    pieces = tiny.tokenizer.convert_ids_to_tokens
    given = {
        "texts": texts,
        "beam": BEAM,
        "lists": {pieces(token): pieces(row) for token, row in lists.items()},
    }
    done = subprocess.run(
        [python, PEER, folder],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found = dict(json.loads(done.stdout.splitlines()[-1]))
    answers = [tiny.tokenizer.convert_tokens_to_ids(row) for row in found.pop("shortlist_answers")]
    sources = [tiny.tokenizer(text).input_ids for text in texts]
    found["shortlist_foreign"] = foreign_answers(sources, answers, lists)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, default=ROOT / "build/peers/bin/python")
    parser.add_argument("--programs", type=Path, default=ROOT / "build/release/bin")
    options = machine.parse(parser)
    torch.set_num_threads(1)
    texts, decode = tiny_marian.SOURCES[:SOURCES], options.programs / "linnet-decode"
    with tempfile.TemporaryDirectory() as name:
        folder, bundle = Path(name) / "model", Path(name) / "bundle"
        tiny = make_model(folder)
        import_multilingual.import_multilingual(folder, bundle, tiny.languages)
        tiny.tokenizer.src_lang = "en"
        lists = shortlists(tiny, texts)
        result = {
            "machine": machine.facts([0]),
            "versions": {
                "ctranslate2": "",
                "transformers": transformers.__version__,
                "tokenizers": tokenizers.__version__,
            },
            "sources": SOURCES,
            "marked": len(MARKED),
            "linnet": of_linnet(decode, bundle, tiny, texts, lists),
            "transformers": of_transformers(tiny, texts),
            "tokenizers": of_tokenizers(folder),
            "ctranslate2": of_ctranslate2(options.peers, folder, tiny, texts, lists),
        }
    result["versions"]["ctranslate2"] = result["ctranslate2"].pop("version")
    print(json.dumps(result, indent=1))
    machine.write_result(options.out / "differences.json", result)


if __name__ == "__main__":
    main()
