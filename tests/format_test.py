"""C++ is formatted by .clang-format: `.venv/bin/clang-format -i FILE` puts a file right."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tree import tree

ROOT = Path(__file__).resolve().parent.parent


def unformatted(files: list[str]) -> str:
    """The warnings of clang-format for these files; empty where all are formatted."""
    command = [str(Path(sys.executable).with_name("clang-format")), "--dry-run", "--Werror", *files]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return run.stderr if run.returncode else ""


def test_cpp_files_are_formatted() -> None:
    listed = [path for path in tree() if Path(path).suffix in {".cc", ".h", ".cu", ".cuh"}]
    assert len(listed) > 300
    parts = [listed[i::8] for i in range(8)]
    with ThreadPoolExecutor(2) as pool:
        assert "".join(pool.map(unformatted, parts)) == ""


def test_an_unformatted_file_is_found(tmp_path: Path) -> None:
    (tmp_path / ".clang-format").write_text((ROOT / ".clang-format").read_text())
    source = tmp_path / "a.cc"
    source.write_text("int  main( ) { return 0 ; }\n")
    assert "a.cc" in unformatted([str(source)])
