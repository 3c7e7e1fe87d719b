"""Runs the commands of docs/TRAINING.md, from a generated corpus to an answer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from linnet_model.train.command import main as train

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/TRAINING.md").read_text(encoding="utf-8")


def shell(block: str, folder: Path, binaries: Path) -> str:
    """Runs a block with the commands of this tree instead of the installed ones."""
    python = str(sys.executable)
    commands = {"linnet-train": "train", "linnet-export": "export"}
    functions = [
        f'{name}() {{ {python} -m linnet_model.{module} "$@"; }}'
        for name, module in commands.items()
    ]
    functions.append(f'python() {{ {python} "$@"; }}')
    functions.append(f'linnet-decode() {{ {binaries / "linnet-decode"} "$@"; }}')
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join([*functions, block])],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "model")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_page_commands_give_an_answer(tmp_path, program):
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    binaries = program("linnet-decode").parent
    corpus, recipe, training, stages = blocks
    assert " 400 total" in shell(corpus, tmp_path, binaries)
    shell(recipe, tmp_path, binaries)
    for block in (training, stages):
        answer = json.loads(shell(block, tmp_path, binaries).splitlines()[-1])
        assert "sechs grüne Vögel." in json.dumps(answer, ensure_ascii=False)
    attribution = (tmp_path / "bundles/mine/ATTRIBUTION.md").read_text(encoding="utf-8")
    assert "CC0-1.0" in attribution
    assert "`pretrain` (100 updates" in (tmp_path / "staged/mine/MODEL_CARD.md").read_text()


def test_recipe_names_every_file_of_layout():
    (layout,) = re.findall(r"^```\nDATA/\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    recipe = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
    for name in ("train", "valid", "test"):
        assert f"{name}.en" in layout
        assert f'{name}_source = "{name}.en"' in recipe


def test_missing_licence_fails_before_training(recipe_file, data_folder, tmp_path, capsys):
    text = recipe_file.read_text(encoding="utf-8")
    before, _, rest = text.partition("[data.terms]")
    recipe_file.write_text(before + rest[rest.index("[train]") :], encoding="utf-8")
    flags = ["--recipe", str(recipe_file), "--data", str(data_folder)]
    assert train([*flags, "--out", str(tmp_path / "run")]) == 1
    said = capsys.readouterr().err
    assert "[data.terms.even]" in said
    assert not (tmp_path / "run").exists(), "nothing was begun"
