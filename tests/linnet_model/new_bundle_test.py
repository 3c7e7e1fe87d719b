"""Tests of bundles that replace others: files that a server may have mapped are never written."""

import errno
import json
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from linnet_model.bundle import SIGNATURE, new_bundle, read_manifest
from linnet_model.config import ConfigError
from linnet_model.export.command import main as export
from linnet_model.export.random_bundle import main as make_random
from linnet_model.export.shortlist import main as add_shortlist
from linnet_model.train.command import main as train


@contextmanager
def served(bundle: Path) -> Iterator[None]:
    """Maps the files of a bundle as a server does, and checks at the end that their bytes are the
    same in the map and that the folder has other files under these names."""
    before = {}
    for path in bundle.iterdir():
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        before[path] = (mapped, path.read_bytes(), path.stat().st_ino)
    yield
    for path, (mapped, content, inode) in before.items():
        assert mapped[:] == content, f"{path.name} was written in place"
        assert not path.exists() or path.stat().st_ino != inode
    assert [path.name for path in bundle.parent.iterdir() if path.name.startswith(".")] == []


def no_room(*_) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def random_flags(out: Path, seed: int) -> list[str]:
    flags = ["--preset", "tiny", "--vocab", "400", "--tokenizer", "--out", str(out)]
    return [*flags, "--seed", str(seed)]


def test_random_bundle_replaces_served_one(tmp_path: Path):
    out = tmp_path / "models/tiny"
    assert make_random(random_flags(out, 1)) == 0
    (out / "scores.json").write_text("{}")
    with served(out):
        assert make_random(random_flags(out, 2)) == 0
    assert read_manifest(out)["version"] == "seed-2"
    assert not (out / "scores.json").exists()


def test_export_replaces_served_bundle(recipe_file: Path, data_folder: Path, tmp_path: Path):
    run, out = tmp_path / "run", tmp_path / "models/toy"
    flags = ["--recipe", str(recipe_file), "--data", str(data_folder), "--out", str(run)]
    assert train([*flags, "--set", "train.updates=1", "--device", "cpu"]) == 0
    flags = ["--run", str(run), "--out", str(out), "--bundle-version"]
    assert export([*flags, "1"]) == 0
    with served(out):
        assert export([*flags, "2", "--dtype", "float32"]) == 0
    assert read_manifest(out)["version"] == "2"


def test_shortlist_replaces_served_bundle(tmp_path: Path):
    out, pairs = tmp_path / "models/tiny", tmp_path / "pairs.tsv"
    assert make_random(random_flags(out, 1)) == 0
    (out / SIGNATURE).write_text("of the manifest without a shortlist")
    pairs.write_text("a b\tc d\ttext\nb c\td e\ttext\n", encoding="utf-8")
    with served(out):
        assert add_shortlist(["--bundle", str(out), "--pairs", str(pairs)]) == 0
    assert read_manifest(out)["shortlist_file"] == "shortlist.bin"
    assert not (out / SIGNATURE).exists()


def test_failed_replacement_keeps_the_old_bundle(tmp_path: Path):
    out = tmp_path / "models/tiny"
    assert make_random(random_flags(out, 1)) == 0
    files = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(ZeroDivisionError), new_bundle(out, replace=True) as partial:
        (partial / "manifest.json").write_text(json.dumps(1 / 0))
    assert {path.name: path.read_bytes() for path in out.iterdir()} == files
    assert list(out.parent.iterdir()) == [out]


def test_full_disk_leaves_nothing_and_names_the_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    out = tmp_path / "models/tiny"
    monkeypatch.setattr(Path, "write_bytes", no_room)
    assert make_random(random_flags(out, 1)) == 1
    said = f"linnet-random-bundle: {out} cannot be written: No space left on device\n"
    assert capsys.readouterr().err == said
    assert list(out.parent.iterdir()) == []


def test_only_bundles_and_empty_folders_are_replaced(tmp_path: Path, capsys):
    (tmp_path / "letter").write_text("kept")
    assert make_random(random_flags(tmp_path, 1)) == 1
    assert "exists and is no bundle, choose another folder" in capsys.readouterr().err
    assert (tmp_path / "letter").read_text() == "kept"
    with pytest.raises(ConfigError, match="exists, remove it"), new_bundle(tmp_path):
        pass


def test_bundle_with_checkpoints_of_a_training_is_not_replaced(tmp_path: Path, capsys):
    out = tmp_path / "tiny"
    assert make_random(random_flags(out, 1)) == 0
    (out / "checkpoint-0000001.pt").touch()
    assert make_random(random_flags(out, 2)) == 1
    said = f"{out} has checkpoints of a training, which would be lost: choose another folder"
    assert said in capsys.readouterr().err
    assert (out / "checkpoint-0000001.pt").exists()


def test_link_to_a_bundle_stays_a_link(tmp_path: Path):
    out, link = tmp_path / "models/tiny-1", tmp_path / "models/tiny"
    assert make_random(random_flags(out, 1)) == 0
    link.symlink_to("tiny-1")
    assert make_random(random_flags(link, 2)) == 0
    assert link.is_symlink()
    assert read_manifest(out)["version"] == "seed-2"
