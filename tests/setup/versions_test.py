"""deps/versions.txt: everything that is installed is pinned."""

from sandbox import ROOT


def sections() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (ROOT / "deps/versions.txt").read_text().splitlines():
        if line.startswith("["):
            found[line.strip("[]")] = lines = []
        elif line and not line.startswith("#"):
            lines.append(line)
    return found


def test_every_python_package_has_one_version_and_its_hash():
    for name, lines in sections().items():
        if name.startswith("debian"):
            continue
        for line in lines:
            requirement, _, digest = line.partition(" --hash=sha256:")
            assert requirement.count("==") == 1, line
            assert len(digest) == 64, line


def test_c_plus_plus_and_python_use_the_same_sentencepiece():
    (source,) = sections()["sentencepiece"]
    (wheel,) = [line for line in sections()["python"] if line.startswith("sentencepiece==")]
    assert source.split()[0] == wheel.split()[0]
