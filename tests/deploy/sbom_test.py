"""Bills of materials: deploy/sbom.py writes CycloneDX and names all components."""

from __future__ import annotations

import fnmatch
import json
import re
import subprocess
from pathlib import Path

import programs
import pytest
import yaml
from programs import ROOT

VALIDATE = """
import sys
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation import make_schemabased_validator
validator = make_schemabased_validator(OutputFormat.JSON, SchemaVersion.V1_6)
found = validator.validate_str(sys.stdin.read())
sys.exit(str(found) if found else 0)
"""
STATUS = """Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u10

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""


def section(name: str) -> list[str]:
    versions = (ROOT / "deps/versions.txt").read_text()
    (lines,) = re.findall(rf"^\[{name}\]\n((?:.+\n)+)", versions, re.MULTILINE)
    return lines.splitlines()


def run(*arguments: str | Path) -> str:
    command = [programs.checker("python"), ROOT / "deploy/sbom.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def valid(text: str) -> bool:
    command = [programs.checker("python"), "-c", VALIDATE]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0 or "Traceback" not in done.stderr, done.stderr
    return done.returncode == 0


def parts(bill: str) -> dict[str, dict]:
    """The components by their purl without qualifiers."""
    return {it["purl"].partition("?")[0]: it for it in json.loads(bill)["components"]}


@pytest.fixture(scope="module")
def notices(tmp_path_factory) -> Path:
    """The notices of this tree, as in the image."""
    file = tmp_path_factory.mktemp("notices") / "THIRD_PARTY_NOTICES"
    file.write_text(printed_notices())
    return file


def printed_notices(*arguments: str) -> str:
    done = subprocess.run([ROOT / "deploy/notices.sh", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def image(notices) -> list[str | Path]:
    """The arguments for an image with one package of Debian's."""
    status = notices.with_name("status")
    status.write_text(STATUS)
    return ["image", "--status", status, "--notices", notices]


@pytest.fixture(scope="module")
def package(notices, tmp_path_factory):
    """package(name, depends) → a Debian package with the notices in it."""

    def make(name: str, depends: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        (folder / "DEBIAN").mkdir(mode=0o755)
        control = f"Package: {name}\nVersion: 1\nArchitecture: amd64\nMaintainer: a <a@localhost>\n"
        control += f"Depends: {depends}\nDescription: for a test\n"
        (folder / "DEBIAN/control").write_text(control)
        documents = folder / "usr/share/doc" / name
        documents.mkdir(parents=True)
        (documents / "THIRD_PARTY_NOTICES").write_bytes(notices.read_bytes())
        file = folder.with_suffix(".deb")
        subprocess.run(["dpkg-deb", "--build", folder, file], check=True, capture_output=True)
        return file

    return make


def test_bill_matches_the_schema_of_cyclonedx(image, package):
    for bill in (
        run(*image),
        run(*image, "--cuda"),
        run("package", package("linnet-dev", "libc6")),
    ):
        assert valid(bill)
    assert not valid(run(*image).replace('"components"', '"parts"'))


def test_the_same_input_gives_the_same_bytes(image):
    assert run(*image) == run(*image)
    assert (
        json.loads(run(*image))["serialNumber"] != json.loads(run(*image, "--cuda"))["serialNumber"]
    )


@pytest.mark.parametrize("cuda", [False, True])
def test_pypi_packages_have_the_checked_hash(image, cuda):
    found = parts(run(*image, *(["--cuda"] if cuda else [])))
    for line in section("libtorch") + section("sentencepiece") + section("cuda") * cuda:
        name, version, digest = re.fullmatch(r"(\S+)==(\S+) --hash=sha256:(\w+)", line).groups()
        part = found[f"pkg:pypi/{name}@{version}"]
        assert part["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert ("pkg:pypi/nvidia-cublas@13.1.0.3" in found) == cuda


def test_grpc_is_debians_with_our_patches(image):
    (grpc,) = [
        it for name, it in parts(run(*image)).items() if name.startswith("pkg:deb/debian/grpc@")
    ]
    assert section("debian-grpc")[0].startswith(f"grpc_{grpc['version']}.dsc ")
    patches = {it["diff"]["text"]["content"] for it in grpc["pedigree"]["patches"]}
    assert patches == {file.read_text() for file in (ROOT / "deps/grpc").glob("*.patch")}
    assert patches


def test_every_part_of_the_notices_is_in_the_bill(image, notices):
    """Also finds a part that was added to the notices but not to the script."""
    titles = re.findall(r"^={100}\n(.*)\n={100}$", notices.read_text(), re.MULTILINE)
    ours = {
        "LibTorch": "torch",
        "NVIDIA CUPTI": "nvidia-cuda-cupti",
        "CUDA runtime": "nvidia-cuda-runtime",
        "gRPC": "grpc",
        "CLI11": "libcli11-dev",
        "JSON for Modern C++": "nlohmann-json3-dev",
        "SentencePiece": "sentencepiece",
    }
    names = {part["name"] for part in parts(run(*image)).values()}
    for title in titles:
        known = [part for word, part in ours.items() if word in title]
        assert known, title
        assert set(known) <= names


@pytest.mark.parametrize(
    ("title", "namespace"),
    [("CLI11", "CLI"), ("JSON for Modern C++", "nlohmann"), ("darts-clone", "Darts")],
)
def test_notices_name_the_programs_that_hold_a_part(notices, program, title, namespace):
    names = ("linnet-server", "linnet-decode", "linnet", "linnet-load")
    (where,) = re.findall(rf"^{re.escape(title)}.*: in (.*)$", notices.read_text(), re.MULTILINE)
    told = set(names) if where == "all programs" else set(re.split(", | and ", where))
    symbols = {
        name: subprocess.run(
            ["nm", "-C", program(name)], capture_output=True, text=True, check=True
        ).stdout
        for name in names
    }
    assert told == {name for name in names if f" {namespace}::" in symbols[name]}


def test_notices_have_the_licence_of_a_part_of_sentencepiece(notices):
    """The source package has parts under other licences; of these the programs hold this one."""
    (text,) = re.findall(
        r"^={100}\ndarts-clone, a part of SentencePiece.*\n={100}$(.*?)(?:^={100}$|\Z)",
        notices.read_text(),
        re.MULTILINE | re.DOTALL,
    )
    assert "Susumu Yata" in text
    assert "Redistributions in binary form must reproduce" in text


def test_notices_of_the_image_for_a_gpu_have_every_library_of_its_bill(image):
    texts = printed_notices("--cuda")
    names = [part for part in parts(run(*image, "--cuda")).values() if "nvidia-" in part["name"]]
    assert len(names) > len(section("cuda")) > 10
    for part in names:
        title = part["name"].removeprefix("nvidia-cuda-")
        assert re.search(
            rf"^.*\b{title} {part['version']}\b.*: ", texts, re.MULTILINE | re.IGNORECASE
        )


def test_debian_packages_are_the_installed_ones(image):
    found = parts(run(*image))
    assert found["pkg:deb/debian/libc6@2.36-9%2Bdeb12u10"]["version"] == "2.36-9+deb12u10"
    assert not [name for name in found if "/gone@" in name]


def test_models_are_only_in_the_server(image, package):
    kinds = [part["type"] for part in parts(run(*image)).values()]
    assert kinds.count("machine-learning-model") == len(list((ROOT / "model/bundles").iterdir()))
    client = parts(run("package", package("linnet-client", "libc6 (>= 2.36), libssl3")))
    assert "machine-learning-model" not in {part["type"] for part in client.values()}
    assert not [name for name in client if name.startswith("pkg:pypi/")]
    assert {"pkg:deb/debian/libc6", "pkg:deb/debian/libssl3"} <= set(client)
    assert [name for name in client if name.startswith("pkg:deb/debian/grpc@")]


@pytest.mark.parametrize(
    ("package_name", "lines"),
    [
        ("linnet-model", section("libtorch")[:1] + section("import")),
        ("linnet-http", [*section("http"), *section("files")]),
    ],
)
def test_packages_in_python_list_their_wheels(package, package_name, lines):
    found = parts(run("package", package(package_name, "linnet-server, python3")))
    assert lines
    for line in lines:
        name, version, _ = re.fullmatch(r"(\S+)==(\S+) --hash=sha256:(\w+)", line).groups()
        assert f"pkg:pypi/{name}@{version}" in found
    assert "pkg:deb/debian/linnet-server" in found


def test_tests_use_the_tool_of_a_release():
    assert set(section("sbom")) <= {
        line.replace("typing_extensions", "typing-extensions")
        for line in (ROOT / "tests/deploy/checkers.txt").read_text().splitlines()
    }


@pytest.mark.parametrize("job", ["packages", "image"])
def test_release_publishes_a_bill_per_artifact(job):
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    steps = workflow["jobs"][job]["steps"]
    scripts = "".join(step.get("run", "") for step in steps)
    assert f"deploy/sbom.py {job.removesuffix('s')} " in scripts
    (kept,) = [step["with"]["path"] for step in steps if "upload-artifact" in step.get("uses", "")]
    file = {"packages": "build/release/packages/a.cdx.json", "image": "linnet-server.cdx.json"}[job]
    assert [pattern for pattern in kept.split() if fnmatch.fnmatch(file, pattern)]
