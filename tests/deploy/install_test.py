"""`cmake --install` writes only below its prefix; packages use /etc."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from programs import ROOT

BUILD = ROOT / "build/release"


def install(component: str, prefix: str, destination: Path | None = None) -> None:
    """Installs only the settings of the service: the rest needs a build."""
    environment = {**os.environ, "DESTDIR": str(destination) if destination else ""}
    subprocess.run(
        ["cmake", "--install", BUILD, "--component", component, "--prefix", prefix],
        check=True,
        capture_output=True,
        env=environment,
    )


def files(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("binaries")
@pytest.mark.parametrize("service", ["server", "http"])
def test_install_writes_only_below_the_prefix(tmp_path, service):
    install(f"etc_{service}", str(tmp_path / "x"))
    assert files(tmp_path) == [f"x/etc/default/linnet-{service}"]


@pytest.mark.usefixtures("binaries")
@pytest.mark.parametrize("prefix", ["/usr", "/usr/"])
def test_packages_install_the_defaults_in_etc(tmp_path, prefix):
    install("etc_server", prefix, tmp_path)
    assert files(tmp_path) == ["etc/default/linnet-server"]


def test_install_rules_have_no_absolute_path():
    rules = (ROOT / "cmake/packaging.cmake").read_text()
    assert not re.search(r"DESTINATION \"?/", rules)


def test_page_builds_packages_with_existing_targets():
    """The commands of the page name existing targets and files."""
    page = (ROOT / "docs/DEPLOYMENT.md").read_text()
    (block,) = re.findall(r"^## Packages$.*?^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert "--target programs" in block
    assert "cpack" in block
    cmake = "".join(path.read_text() for path in ROOT.glob("CMakeLists.txt"))
    assert "add_custom_target(programs)" in cmake
    for name in ("linnet-server", "linnet-model", "linnet-http", "linnet-client", "linnet-dev"):
        assert f"| `{name}` |" in page
