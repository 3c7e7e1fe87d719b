"""Tests that archives are unpacked inside of their folder, without links, up to a size."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard

from linnet_model.config import ConfigError
from linnet_model.fetch.unpack import decompress, unpack

FILES = {"model/model.bin": b"weights" * 1000, "model/vocab.spm": b"pieces", "README": b"text"}


def tar_of(files: dict[str, bytes], *more: tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for entry in more:
            archive.addfile(entry)
    return out.getvalue()


def zip_of(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


ARCHIVES = {
    "a.zip": zip_of(FILES),
    "a-1-py3-none-any.whl": zip_of(FILES),
    "a.tar": tar_of(FILES),
    "a.tar.gz": gzip.compress(tar_of(FILES)),
    "a.tgz": gzip.compress(tar_of(FILES)),
    "a.tar.zst": zstandard.compress(tar_of(FILES)),
    "decompressed-by-its-server.tar.gz": tar_of(FILES),
}


def write(tmp_path: Path, name: str, content: bytes) -> Path:
    (tmp_path / name).write_bytes(content)
    return tmp_path / name


def unpacked(folder: Path) -> dict[str, bytes]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


@pytest.mark.parametrize("name", ARCHIVES)
def test_archive_is_unpacked(tmp_path: Path, name: str):
    unpack(write(tmp_path, name, ARCHIVES[name]), tmp_path / "out")
    assert unpacked(tmp_path / "out") == FILES


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
def test_only_wanted_files_are_unpacked(tmp_path: Path, name: str):
    archive = write(tmp_path, name, ARCHIVES[name])
    unpack(archive, tmp_path / "out", lambda member: member.endswith(".spm"))
    assert unpacked(tmp_path / "out") == {"model/vocab.spm": b"pieces"}


@pytest.mark.parametrize("member", ["../evil", "a/../../evil", "/evil", "a\\..\\evil", ".."])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_entry_outside_of_the_folder_is_refused(tmp_path: Path, kind: str, member: str):
    make = zip_of if kind == "zip" else tar_of
    archive = write(tmp_path, f"a.{kind}", make({"fine": b"1", member: b"2"}))
    with pytest.raises(ConfigError, match="which is outside of its folder"):
        unpack(archive, tmp_path / "out")
    assert unpacked(tmp_path / "out").get("evil") is None
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_link_or_device_in_a_tar_is_refused(tmp_path: Path, kind: bytes):
    entry = tarfile.TarInfo("link")
    entry.type, entry.linkname = kind, "/etc/passwd"
    archive = write(tmp_path, "a.tar", tar_of({"fine": b"1"}, entry))
    with pytest.raises(ConfigError, match="'link', which is a link or a device"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out/link").exists()


def test_link_in_a_zip_is_refused(tmp_path: Path):
    entry = zipfile.ZipInfo("link")
    entry.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as opened:
        opened.writestr(entry, "/etc/passwd")
    with pytest.raises(ConfigError, match="'link', which is a link or a device"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


@pytest.mark.parametrize("name", ARCHIVES)
def test_content_beyond_the_limit_is_refused(tmp_path: Path, name: str):
    archive = write(tmp_path, name, ARCHIVES[name])
    with pytest.raises(ConfigError, match="has more than 5000 bytes of content, the limit"):
        unpack(archive, tmp_path / "out", limit=5000)


@pytest.mark.parametrize("name", ["model.bin.gz", "model.bin.zst"])
def test_bomb_is_refused_before_it_is_written(tmp_path: Path, name: str):
    pack = gzip.compress if name.endswith(".gz") else zstandard.compress
    file = write(tmp_path, name, pack(bytes(50_000_000)))
    assert file.stat().st_size < 100_000
    with pytest.raises(ConfigError, match="has more than 1000000 bytes"):
        decompress(file, tmp_path / "model.bin", limit=1_000_000)
    assert (tmp_path / "model.bin").stat().st_size <= 1_000_000


def test_many_entries_are_refused(tmp_path: Path):
    many = {f"f{i}": b"" for i in range(10_001)}
    with pytest.raises(ConfigError, match="has more than 10000 entries"):
        unpack(write(tmp_path, "a.zip", zip_of(many)), tmp_path / "out")


@pytest.mark.parametrize("name", ARCHIVES)
def test_damaged_archive_is_named(tmp_path: Path, name: str):
    archive = write(tmp_path, name, ARCHIVES[name][: min(4000, len(ARCHIVES[name]) // 2)])
    with pytest.raises(ConfigError, match=rf"{name} is damaged or is no such archive: "):
        unpack(archive, tmp_path / "out")


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tar.zst"])
def test_page_in_place_of_an_archive_is_named(tmp_path: Path, name: str):
    archive = write(tmp_path, name, b"<html>404</html>" * 100)
    with pytest.raises(ConfigError, match=rf"{name} is damaged or is no such archive: "):
        unpack(archive, tmp_path / "out")


def test_two_entries_of_one_name_are_refused(tmp_path: Path):
    entry = tarfile.TarInfo("fine")
    archive = write(tmp_path, "a.tar", tar_of({"fine": b"1"}, entry))
    with pytest.raises(FileExistsError):
        unpack(archive, tmp_path / "out")


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress, bytes])
def test_one_file_is_decompressed_by_its_first_bytes(tmp_path: Path, pack):
    file = write(tmp_path, "model.bin.gz", pack(b"weights"))
    decompress(file, tmp_path / "model.bin")
    assert (tmp_path / "model.bin").read_bytes() == b"weights"
    assert not file.exists()
