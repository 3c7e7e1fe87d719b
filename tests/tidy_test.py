"""clang-tidy finds nothing in some folders; `./test.sh --all` checks all with tests/tidy.py."""

from __future__ import annotations

import shutil

import pytest
from tidy import ROOT, TIDY, commands, findings

# Without torch and gRPC, whose headers take most of the time: 18 s of CPU together.
FOLDERS = ["model/runtime/search", "server/base", "server/schedule"]

pytestmark = pytest.mark.skipif(
    shutil.which(TIDY) is None, reason=f"{TIDY} is not installed; ./test.sh --all installs it"
)


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_has_no_findings(folder, binaries):
    known = commands(binaries.parent)
    files = sorted(path for path in known if path.rpartition("/")[0] == folder)
    assert files
    assert findings(files, known) == []


def test_finding_is_found(tmp_path, binaries):
    source = tmp_path / "model" / "a.cc"
    source.parent.mkdir()
    source.write_text(
        "#include <string>\n#include <utility>\n"
        "std::string Twice(std::string text) {\n"
        "  std::string taken = std::move(text);\n"
        "  return taken + text;\n"
        "}\n"
    )
    (entry,) = [e for p, e in commands(binaries.parent).items() if p == "server/base/log.cc"]
    found = findings([str(source)], {str(source): entry})
    assert len(found) == 1
    assert "bugprone-use-after-move" in found[0]


def test_clang_tidy_that_fails_is_no_clean_source(tmp_path, binaries):
    entry = dict(commands(binaries.parent)["server/base/log.cc"])
    entry["command"] += " --no-such-flag-of-a-compiler"
    source = str(tmp_path / "a.cc")
    (tmp_path / "a.cc").write_text("int main() {}\n")
    entry["file"] = "server/base/log.cc"
    with pytest.raises(RuntimeError, match="ended with 1"):
        findings([source], {source: entry})


def test_names_that_clash_between_sources_are_no_findings(tmp_path, binaries):
    paths = [tmp_path / "model" / name for name in ("a.cc", "b.cc")]
    paths[0].parent.mkdir()
    for path in paths:
        path.write_text("namespace { int Value() { return 1; } }\nint main() { return Value(); }\n")
    entry = commands(binaries.parent)["server/base/log.cc"]
    assert findings([str(path) for path in paths], {str(path): entry for path in paths}) == []


def test_every_source_has_a_compile_command(binaries):
    known = commands(binaries.parent)
    assert len(known) > 300
    assert all((ROOT / path).is_file() for path in known)
