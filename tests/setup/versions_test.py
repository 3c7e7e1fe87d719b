"""deps/versions.txt pins everything that is installed; also checks the version of Linnet."""

import re

import pytest
from sandbox import ROOT

CMAKE = (ROOT / "CMakeLists.txt").read_text()
(VERSION,) = re.findall(r"^project\(linnet VERSION (\S+)", CMAKE, re.MULTILINE)
# Files that repeat the version, because their readers do not use CMake.
REPEATED = {
    "client/corpus/linnet_corpus/version.py": r'^__version__ = "(.+)"',
    "client/files/linnet_files/version.py": r'^__version__ = "(.+)"',
    "client/http/linnet_http/version.py": r'^__version__ = "(.+)"',
    "client/python/linnet/version.py": r'^__version__ = "(.+)"',
    "deploy/Dockerfile": r'image\.version="(.+)"',
    "deploy/kubernetes/overlays/cpu/kustomization.yaml": r"newTag: ([^}]+)",
    "deploy/kubernetes/overlays/gpu/kustomization.yaml": r"newTag: ([^}]+)",
    "model/linnet_model/__init__.py": r'^__version__ = "(.+)"',
}


def sections() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (ROOT / "deps/versions.txt").read_text().splitlines():
        if line.startswith("["):
            found[line.strip("[]")] = lines = []
        elif line and not line.startswith("#"):
            lines.append(line)
    return found


def test_every_python_package_is_pinned_with_a_hash():
    for name, lines in sections().items():
        if name.startswith("debian"):
            continue
        for line in lines:
            requirement, _, digest = line.partition(" --hash=sha256:")
            assert requirement.count("==") == 1, line
            assert len(digest) == 64, line


def test_cpp_and_python_use_the_same_sentencepiece():
    (source,) = sections()["sentencepiece"]
    (wheel,) = [line for line in sections()["import"] if line.startswith("sentencepiece==")]
    assert source.split()[0] == wheel.split()[0]


@pytest.mark.parametrize("file", REPEATED)
def test_linnets_version_equals_cmakes(file):
    assert re.findall(REPEATED[file], (ROOT / file).read_text(), re.MULTILINE) == [VERSION]
