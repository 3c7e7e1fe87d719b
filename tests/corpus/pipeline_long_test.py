"""The pipeline of docs/CORPUS.md with the shipped bundles: a monolingual corpus of 300,000 lines to
a filtered synthetic parallel corpus. LINNET_CORPUS_LINES is another number of lines.
"""

from __future__ import annotations

import os
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]
SECTION = (ROOT / "docs/CORPUS.md").read_text().partition("## From a monolingual")[2]
LINES = int(os.environ.get("LINNET_CORPUS_LINES", "300000"))

pytestmark = pytest.mark.long


def different_lines(count: int) -> list[str]:
    """Everyday sentences in which one word is another one of them; each is there once."""
    text = (ROOT / "tests/data/everyday-en.txt").read_text()
    sentences = [line.split() for line in text.splitlines()]
    words = sorted({word for sentence in sentences for word in sentence})
    rng = random.Random(1)
    found: dict[str, None] = {}
    while len(found) < count:
        sentence = list(rng.choice(sentences))
        sentence[rng.randrange(len(sentence))] = rng.choice(words)
        found[" ".join(sentence)] = None
    return list(found)


def test_commands_of_the_page_make_a_filtered_parallel_corpus(program, tmp_path):
    lines = different_lines(LINES)
    (tmp_path / "mono.txt").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "model").symlink_to(ROOT / "model")
    environment = {**os.environ, "LINNET_DECODE": str(program("linnet-decode"))}

    def corpus(*arguments: str) -> None:
        command = [sys.executable, "-m", "linnet_corpus.command", *arguments]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True)

    (commands,) = re.findall(r"^```sh\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
    for line in commands.splitlines():
        corpus(*shlex.split(line)[1:])
    (code,) = re.findall(r"^```python\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)

    scored = pq.read_table(tmp_path / "scored.parquet")
    assert scored["c1"].to_pylist() == lines
    assert scored["error"].null_count == LINES
    parallel = pq.read_table(tmp_path / "parallel.parquet")
    assert parallel.num_rows == pc.sum(pc.greater(scored["score"], -1.5)).as_py()
    assert 0.2 * LINES < parallel.num_rows < 0.98 * LINES
    corpus("verify", "back", "--sample", "1e-3", "--bundle", "model/bundles/en-de")
    corpus("verify", "scored", "--sample", "1e-3", "--bundle", "model/bundles/de-en")
