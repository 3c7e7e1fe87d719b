"""`cmake --install` writes below its prefix and nowhere else; packages have their /etc."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from programs import ROOT


def install(prefix: str, destination: Path | None = None) -> None:
    """The settings of the service alone: the rest takes a build."""
    environment = {**os.environ, "DESTDIR": str(destination) if destination else ""}
    subprocess.run(
        ["cmake", "--install", ROOT / "build/release", "--component", "etc", "--prefix", prefix],
        check=True,
        capture_output=True,
        env=environment,
    )


def files(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("binaries")
def test_nothing_is_written_outside_of_the_prefix(tmp_path):
    install(str(tmp_path / "x"))
    assert files(tmp_path) == ["x/etc/default/linnet-server"]


@pytest.mark.usefixtures("binaries")
@pytest.mark.parametrize("prefix", ["/usr", "/usr/"])
def test_packages_have_it_in_etc(tmp_path, prefix):
    install(prefix, tmp_path)
    assert files(tmp_path) == ["etc/default/linnet-server"]


def test_no_file_is_installed_to_an_absolute_place():
    rules = (ROOT / "cmake/packaging.cmake").read_text()
    assert not re.search(r"DESTINATION \"?/", rules)


def test_the_page_says_how_packages_are_built():
    """With the targets and files that there are."""
    page = (ROOT / "docs/DEPLOYMENT.md").read_text()
    (block,) = re.findall(r"^## Packages$.*?^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert "--target programs" in block
    assert "cpack" in block
    cmake = "".join(path.read_text() for path in ROOT.glob("CMakeLists.txt"))
    assert "programs" in cmake + (ROOT / "cmake/packaging.cmake").read_text()
    for name in ("linnet-server", "linnet-client", "linnet-dev"):
        assert f"| `{name}` |" in page
