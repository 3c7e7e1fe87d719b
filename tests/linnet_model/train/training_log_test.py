"""Tests of the output of a training: statistics, progress with time left, tensorboard."""

from pathlib import Path

import pytest

from linnet_model.train.command import main as train_main
from linnet_model.train.training_log import Progress, duration, progress_line


def train(recipe: Path, data: Path, out: Path, *more: str) -> int:
    arguments = ["--recipe", recipe, "--data", data, "--out", out, "--device", "cpu", *more]
    return train_main([str(argument) for argument in arguments])


def test_prints_statistics_then_settings(
    recipe_file: Path, data_folder: Path, tmp_path: Path, capsys
):
    assert train(recipe_file, data_folder, tmp_path / "run") == 0
    lines = capsys.readouterr().out.splitlines()
    head = lines[0].split()
    assert head[0] == "training"
    assert {"rows", "share", "longest"} <= set(head)
    even = next(line for line in lines if line.startswith("even")).split()
    assert int(even[1]) + int(even[-1].replace(",", "")) == 120  # kept and left out
    odd = next(line for line in lines if line.startswith("odd")).split()
    assert odd[2] == "0.5"
    assert [line.split()[0] for line in lines if line.startswith("[")] == [
        "[model]",
        "[tokenizer]",
        "[data]",
        "[train]",
        "[bundle]",
    ]
    assert "from update 0 to 6 on cpu" in lines[-2]


def test_warns_of_mojibake(
    recipe_file: Path, data_folder: Path, tmp_path: Path, tokenizer_file: Path, capsys
):
    folder = data_folder / "toy"
    (folder / "en").write_text("a word\n" * 30 + "fÃ¼r\n" + "Ã¶de Ã„pfel\n")
    files = [f"data.{split}_{side}='en'" for split in SPLITS for side in ("source", "target")]
    more = ["--set", "data.copy_share=0", "--tokenizer-from", str(tokenizer_file)]
    text = recipe_file.read_text().replace("[data.domains]\neven = 1.0\nodd = 0.5\n", "")
    recipe_file.write_text(text.replace("\neven = {", "\ntext = {"))
    for setting in files:
        more += ["--set", setting]
    assert train(recipe_file, data_folder, tmp_path / "run", *more) == 0
    said = capsys.readouterr().err
    assert "warning: 4 rows look like text decoded with the wrong encoding" in said
    assert "en:31 has 'Ã¼' in its source" in said
    refuse = [*more, "--set", "data.mojibake='refuse'"]
    assert train(recipe_file, data_folder, tmp_path / "no", *refuse) == 1
    assert "en:31 has 'Ã¼' in its source, text decoded with the" in capsys.readouterr().err


SPLITS = ("train", "valid")


def test_progress_shows_time_left():
    assert progress_line(1200, 4800, 4.3217, 1530.4, 4321.0) == (
        "update 1,200 of 4,800 (25 %), 4.322 nats per token, 1,530 tokens/s, 1 h 12 min left"
    )
    assert [duration(s) for s in (0.4, 29, 31, 3599, 3600, 90_000)] == [
        "0 s",
        "29 s",
        "1 min",
        "1 h 00 min",
        "1 h 00 min",
        "25 h 00 min",
    ]


def test_progress_without_terminal_is_periodic_line(monkeypatch: pytest.MonkeyPatch, capsys):
    now = [100.0]
    monkeypatch.setattr("linnet_model.train.training_log.time.monotonic", lambda: now[0])
    progress = Progress(update=10, updates=110)
    for update in range(11, 31):
        now[0] += 5.0
        progress.advance()
        progress.log(update, 2.0, 100.0)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3  # after 30, 60 and 90 seconds
    # 30 seconds for 6 updates, 94 to go
    assert said[0].endswith(
        "update 16 of 110 (14 %), 2.000 nats per token, 100 tokens/s, 8 min left"
    )


def test_progress_follows_the_length_of_a_timed_training(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linnet_model.train.training_log.sys.stderr.isatty", lambda: True)
    progress = Progress(update=0, updates=1000)
    progress.expect(400)
    assert progress.bar is not None
    assert (progress.updates, progress.bar.total) == (400, 400)
    progress.close()


def test_writes_log_for_tensorboard(recipe_file: Path, data_folder: Path, tmp_path: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = tmp_path / "run"
    assert train(recipe_file, data_folder, run, "--tensorboard") == 0
    events = EventAccumulator(str(run / "tensorboard")).Reload()
    scalars = events.Tags()["scalars"]
    assert {"train/nll", "train/tokens_per_second", "valid/nll_all", "valid/bleu"} <= set(scalars)
    assert [event.step for event in events.Scalars("train/nll")] == [1, 2, 3, 4, 5, 6]
    assert events.Scalars("train/nll")[0].value == pytest.approx(5.99, abs=0.5)  # log(400)
