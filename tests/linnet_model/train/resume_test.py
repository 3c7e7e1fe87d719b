"""Tests that a killed training resumes with identical numbers."""

import errno
import json
import lzma
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from linnet_model.config import Recipe, to_tables
from linnet_model.train.checkpoint import RESUME_MAY_CHANGE, checkpoints, load_checkpoint
from linnet_model.train.command import main as train_main
from linnet_model.train.datasets import PairDataset
from linnet_model.train.training_log import Log

MODEL = Path(__file__).resolve().parents[3] / "model"
UPDATES = 40


def arguments(recipe: Path, data: Path, out: Path, *more: str) -> list[str]:
    settings = [f"train.updates={UPDATES}", "train.checkpoint_updates=4", "train.log_updates=3"]
    settings += ["train.valid_updates=10", "train.learning_rate=1e-2"]
    found = ["--recipe", str(recipe), "--data", str(data), "--out", str(out), "--device", "cpu"]
    for setting in settings:
        found += ["--set", setting]
    return [*found, *more]


def numbers(run: Path) -> list[dict]:
    """Returns the log without times and without start lines."""
    clocks = ("tokens_per_second", "seconds")
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [
        {k: v for k, v in entry.items() if k not in clocks}
        for entry in entries
        if entry["kind"] != "start"
    ]


def test_training_killed_by_sigkill_resumes_identically(
    recipe_file: Path, data_folder: Path, tmp_path: Path
):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert train_main(arguments(recipe_file, data_folder, whole)) == 0

    command = [sys.executable, "-m", "linnet_model.train"]
    process = subprocess.Popen(
        command + arguments(recipe_file, data_folder, killed),
        env=os.environ | {"PYTHONPATH": str(MODEL)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 300
    while not checkpoints(killed) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, process.stderr.read().decode()
    position = load_checkpoint(killed)["position"]
    assert 0 < position["update"] < UPDATES

    assert train_main(arguments(recipe_file, data_folder, killed, "--resume")) == 0
    one, other = load_checkpoint(whole), load_checkpoint(killed)
    for part in ("model", "average"):
        assert one[part].keys() == other[part].keys()
        assert all(torch.equal(one[part][name], other[part][name]) for name in one[part])
    assert numbers(whole) == numbers(killed)
    assert [e["update"] for e in numbers(whole) if e["kind"] == "train"] == list(range(3, 40, 3))
    assert (whole / "samples.txt").read_bytes() == (killed / "samples.txt").read_bytes()


def test_training_killed_before_its_end_is_written_validates_once(
    recipe_file: Path, data_folder: Path, tmp_path: Path
):
    out = tmp_path / "run"
    assert train_main(arguments(recipe_file, data_folder, out, "--set", "train.updates=5")) == 0
    whole, log = numbers(out), out / "log.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    assert [json.loads(line)["kind"] for line in lines[-2:]] == ["valid", "end"]
    for kept in (lines[:-1], lines[:-2]):  # killed behind the validation, or before it
        log.write_text("".join(kept))
        more = ["--set", "train.updates=5", "--resume"]
        assert train_main(arguments(recipe_file, data_folder, out, *more)) == 0
        assert numbers(out) == whole


def test_checkpoint_without_room_is_told_and_training_resumes(
    recipe_file: Path, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    out, write = tmp_path / "run", Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if path.name.startswith("checkpoint-0000008"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        assert train_main(arguments(recipe_file, data_folder, out)) == 1
    said = f"linnet-train: {out / 'checkpoint-0000008.pt'} cannot be written: No space left on"
    assert said in capsys.readouterr().err
    assert [path.name for path in checkpoints(out)] == ["checkpoint-0000004.pt"]
    assert list(out.glob("*.partial")) == []
    assert train_main(arguments(recipe_file, data_folder, out, "--resume")) == 0


@pytest.mark.parametrize("flag", ["--init-from", "--tokenizer-from"])
def test_training_killed_before_its_first_checkpoint_begins_with_the_same(
    recipe_file: Path, data_folder: Path, tmp_path: Path, capsys, flag: str
):
    first, out = tmp_path / "first", tmp_path / "run"
    settings = ["--set", "train.updates=2"]
    assert train_main(arguments(recipe_file, data_folder, first, *settings)) == 0
    with_start = [*settings, flag, str(first)]
    assert train_main(arguments(recipe_file, data_folder, out, *with_start)) == 0
    once = load_checkpoint(out)["model"]
    for file in checkpoints(out):
        file.unlink()
    (out / "checkpoint-0000002.pt.partial").write_bytes(b"half of a")
    assert train_main(arguments(recipe_file, data_folder, out, *settings, "--resume")) == 1
    said = f"{out} has no checkpoint yet and was started with {flag} {first}: give the flag again"
    assert said in capsys.readouterr().err
    assert train_main(arguments(recipe_file, data_folder, out, *with_start, "--resume")) == 0
    again = load_checkpoint(out)["model"]
    assert all(torch.equal(once[name], again[name]) for name in once)
    assert list(out.glob("*.partial")) == []


def test_resume_refuses_every_setting_that_changes_numbers(
    recipe_file: Path, data_folder: Path, tmp_path: Path, capsys
):
    out = tmp_path / "run"
    assert train_main(arguments(recipe_file, data_folder, out, "--set", "train.updates=1")) == 0
    changed = ("train.seed=2", "train.clip_norm=0.5", "data.domains.odd=1.0", "model.dropout=0.2")
    more = [word for setting in changed for word in ("--set", setting)]
    assert train_main(arguments(recipe_file, data_folder, out, "--resume", *more)) == 1
    said = capsys.readouterr().err
    assert f"linnet-train: {out} cannot be resumed with another recipe: " in said
    for part in (
        "model.dropout is 0.2 and was 0.1; data.domains is {'even': 1.0, 'odd': 1.0} and was",
        "train.seed is 2 and was 1; train.clip_norm is 0.5 and was 1.0. Set them back",
    ):
        assert part in said
    assert load_checkpoint(out)["position"]["update"] == 1


def test_resume_refuses_other_training_data(
    recipe_file: Path, data_folder: Path, tmp_path: Path, capsys
):
    out, file = tmp_path / "run", data_folder / "toy" / "train.tsv.xz"
    assert train_main(arguments(recipe_file, data_folder, out, "--set", "train.updates=1")) == 0
    whole = lzma.decompress(file.read_bytes()).decode()
    settings = (out / "settings.json").read_bytes()
    for changed, message in (
        (whole + "one two\tone two\teven\n", r"even has 121 rows and had 120"),
        (whole.replace("\t", " one\t", 1), r"odd has [0-9,]+ source tokens and had [0-9,]+"),
        ("\n".join(reversed(whole.splitlines())), "other texts have as many tokens"),
    ):
        file.write_bytes(lzma.compress(changed.encode()))
        assert train_main(arguments(recipe_file, data_folder, out, "--resume")) == 1
        said = capsys.readouterr().err
        assert f"linnet-train: {out} cannot be resumed with other training data: " in said
        assert re.search(message, said)
        assert "Set the files of --data and the version of linnet-train back, or start" in said
        assert (out / "settings.json").read_bytes() == settings
    file.write_bytes(lzma.compress(whole.encode()))
    older = json.loads(settings)
    del older["train_sha256"]
    (out / "settings.json").write_text(json.dumps(older))
    for _ in range(2):
        assert train_main(arguments(recipe_file, data_folder, out, "--resume")) == 0
        assert json.loads((out / "settings.json").read_text())["train_sha256"]


def test_resume_may_extend_move_and_measure_otherwise(
    recipe_file: Path, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    out, digests, digest = tmp_path / "run", [], PairDataset.sha256
    monkeypatch.setattr(PairDataset, "sha256", lambda data: digests.append(1) or digest(data))
    assert train_main(arguments(recipe_file, data_folder, out, "--set", "train.updates=1")) == 0
    changed = ["train.updates=2", "train.decay_updates=1", "train.bfloat16=false"]
    changed += ["train.checkpoint_seconds=7", "train.valid_rows=2", "data.valid_domains=['odd']"]
    changed += ["bundle.beam_size=2", "bundle.intended_use='toys'"]
    more = [word for setting in changed for word in ("--set", setting)]
    assert train_main(arguments(recipe_file, data_folder, out, "--resume", *more)) == 0
    checkpoint = load_checkpoint(out)
    assert checkpoint["position"]["update"] == 2
    assert checkpoint["recipe"]["bundle"]["intended_use"] == "toys"
    assert len(digests) == 2  # one of each training, which takes a while for much text


def test_last_checkpoint_is_that_of_most_updates(tmp_path: Path):
    for update in (9_999_999, 10_000_000, 25):
        (tmp_path / f"checkpoint-{update:07d}.pt").touch()
    names = [path.name for path in checkpoints(tmp_path)]
    assert names == [f"checkpoint-{n}.pt" for n in ("0000025", "9999999", "10000000")]


def test_keys_that_resume_may_change_exist():
    keys = {f"{table}.{key}" for table, keys in to_tables(Recipe()).items() for key in keys}
    assert keys > RESUME_MAY_CHANGE


def test_resume_drops_log_after_last_checkpoint(tmp_path: Path):
    log = Log(tmp_path, tensorboard=False)
    for update in (1, 2, 3):
        log.write("train", update, {"nll": update})
    log.close()
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"kind": "train", "upd')  # line truncated by a kill
    log = Log(tmp_path, tensorboard=False, update=2)
    log.write("train", 3, {"nll": 30})
    log.close()
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [json.loads(line).get("nll") for line in lines] == [1, 2, 30]
