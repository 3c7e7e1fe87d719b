"""Trainings on a GPU machine: what travels there, and how weights come back."""

import lzma
import subprocess
from pathlib import Path

import pack
import pytest
import torch
import train

ROOT = Path(__file__).resolve().parents[3]


def test_pieces_of_a_training_are_a_run_folder(tmp_path, monkeypatch):
    torch.manual_seed(1)
    average = {"table": torch.randn(100, 8), "bias": torch.randn(7)}
    run = tmp_path / "en-de-gpu"
    run.mkdir()
    (run / "output").write_text("validation 1.2 nats\n")
    (run / "source.spm").write_bytes(b"pieces")
    whole = {"recipe": {"a": 1}, "position": {"update": 12}, "average": average, "model": average}
    torch.save(
        whole | {"optimizer": {"moments": torch.zeros(10**6)}}, run / "checkpoint-0000012.pt"
    )
    monkeypatch.setattr(train, "PIECE", 5000)
    assert not train.collect(run, tmp_path / "unfinished")
    (run / "log.jsonl").write_text(
        '{"kind": "valid", "update": 12}\n{"kind": "end", "update": 12}\n'
    )
    assert train.collect(run, tmp_path / "out")
    pieces = sorted((tmp_path / "out").iterdir())
    count = len(pieces)
    assert count > 1
    assert {piece.name for piece in pieces} == {
        f"en-de-gpu.tar.{i}-of-{count}" for i in range(1, count + 1)
    }
    assert max(piece.stat().st_size for piece in pieces) <= 5000
    joined = train.join(list(reversed(pieces)), tmp_path / "joined")
    assert (joined / "source.spm").read_bytes() == b"pieces"
    checkpoint = torch.load(joined / "checkpoint-0000012.pt")
    assert checkpoint["recipe"] == {"a": 1}
    assert checkpoint["position"] == {"update": 12}
    for name, weight in average.items():
        assert torch.equal(checkpoint["average"][name], weight.to(torch.bfloat16).float())
    with pytest.raises(SystemExit, match=rf"pieces 1 of {count} of joined are missing"):
        train.join(
            [piece for piece in pieces if ".tar.1-of" not in piece.name], tmp_path / "joined"
        )


def test_training_without_a_checkpoint_returns_its_log(tmp_path):
    run = tmp_path / "runs/de-en-gpu"
    run.mkdir(parents=True)
    (run / "output").write_text("out of memory\n")
    assert not train.collect(run, tmp_path / "out")
    joined = train.join(list((tmp_path / "out").iterdir()), tmp_path / "joined")
    assert (joined / "output").read_text() == "out of memory\n"


def test_only_rows_of_the_domains_travel(tmp_path):
    (tmp_path / "en-de").mkdir()
    for name in ("train", "valid"):
        with lzma.open(tmp_path / f"en-de/{name}.tsv.xz", "wt") as file:
            file.write("a\tb\tchat\nc\td\tlaw\n")
    wanted = {"folder": "en-de", "files": ["train"], "domains": {"law": 1.0}}
    folder = tmp_path / "packed"
    (folder / "en-de").mkdir(parents=True)
    for _ in range(2):  # another recipe with the same rows
        pack.stage_rows(folder, wanted | {"valid_domains": ["chat"]}, tmp_path)
    assert (folder / "en-de/train.tsv").read_text() == "c\td\tlaw\n"
    assert (folder / "en-de/valid.tsv").read_text() == "a\tb\tchat\n"
    with pytest.raises(SystemExit, match="two recipes want other rows"):
        pack.stage_rows(folder, wanted | {"valid_domains": ["law"]}, tmp_path)
    more = wanted | {"valid_domains": ["chat"], "files": ["more", "forward"]}
    with pytest.raises(SystemExit, match=r"no .*more.tsv.xz"):
        pack.stage_rows(folder, more, tmp_path)
    (tmp_path / "en-de/more.tsv").write_text("e\tf\tlaw\ng\th\tchat\n")
    pack.stage_rows(folder, more, tmp_path)  # `forward` is made on the GPU machine
    assert (folder / "en-de/more.tsv").read_text() == "e\tf\tlaw\n"


@pytest.mark.parametrize(
    ("folder", "name", "bundle_name"),
    # The name of the second is that of its base.
    [("research", "en-summary-gpu", "en-summary"), ("model", "de-en-debates", "de-en")],
)
def test_training_starts_from_the_bundle_of_its_recipe(folder, name, bundle_name):
    recipe = ROOT / f"{folder}/recipes/{name}.toml"
    bundle = str(ROOT / "model/bundles" / bundle_name)
    assert train.beginning(recipe, from_bundle=True) == ["--init-from", bundle]
    assert train.beginning(recipe, from_bundle=False)[0] == "--tokenizer-from"


def test_packing_requires_the_decoder(tmp_path, monkeypatch):
    monkeypatch.setattr(pack, "BUILT", tmp_path)
    with pytest.raises(SystemExit, match=r"no bin/linnet-decode in .*: give --build"):
        pack.stage_programs(tmp_path / "folder", "commit", serving=False)


def test_package_stays_within_the_limit():
    # The tree leaves room for the programs in the 64 MiB of a call. With the texts of en-de they
    # pack to 22.3 MiB, so a session that trains leaves out a bundle.
    try:
        tracked = pack.tracked_bytes()
    except (subprocess.CalledProcessError, FileNotFoundError, SystemExit) as error:
        pytest.skip(f"the tracked files are not known without git and a repository: {error}")
    assert tracked < 42 * 2**20
    with pytest.raises(SystemExit, match=r"64.1 MiB are more than the 64 that may travel"):
        pack.check_size(60 * 2**20, 4 * 2**20 + 2**17)
    pack.check_size(60 * 2**20, 4 * 2**20)


def test_commands_are_short_and_known_to_the_script():
    for command in pack.commands(training=True):
        assert len(command) <= pack.MAX_COMMAND
        words = command.split()
        known = subprocess.run(
            ["bash", "-n", ROOT / words[1]], capture_output=True, text=True, check=False
        )
        assert known.returncode == 0, known.stderr
        usage = (ROOT / words[1]).read_text()
        assert all(word in usage for word in words[2:] if word.startswith("--"))


def test_call_without_package_explains_its_usage(tmp_path):
    call = ROOT / "research/gpu/call.sh"
    for words, said in (
        (["4"], "unknown argument '4'"),
        (
            ["1", "--out", "x", "--translate", "--train", "9"],
            "--translate belongs to a call before",
        ),
        (["1"], "usage: research/gpu/call.sh"),
        (["1", "--out"], "--out needs a value"),
        (["train", "--out", str(tmp_path)], "'train' needs --train SECONDS"),
    ):
        done = subprocess.run(["bash", call, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert said in done.stderr
