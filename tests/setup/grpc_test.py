"""start.sh --patched-grpc: gRPC from Debian's source package, with the patches of deps/grpc."""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox import ROOT, Sandbox

PATCHES = sorted((ROOT / "deps/grpc").glob("*.patch"))


@pytest.fixture
def machine() -> Iterator[Sandbox]:
    with tempfile.TemporaryDirectory() as folder:
        yield Sandbox(Path(folder))


def build(machine: Sandbox, **environment: str) -> tuple[int, str]:
    return machine.run("start.sh", "--deps", "--patched-grpc", **environment)


def stanzas(machine: Sandbox) -> str:
    """The lists of source packages that are derived from the machine's."""
    return subprocess.run(
        ["bash", "-c", ". deps/setup.sh; deb_src_lines; deb_src_stanzas"],
        cwd=machine.tree,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_builds_once_with_every_patch(machine):
    status, output = build(machine)
    assert status == 0, output
    called = machine.commands()
    assert sum(line.startswith("patch ") for line in called) == len(PATCHES) > 0
    built = [line for line in called if "--target grpc++ grpc++_reflection grpcpp_channelz" in line]
    assert len(built) == 1
    names = {path.name for path in (machine.tree / ".deps/grpc/lib").iterdir()}
    assert {"libgrpc++.so.1", "libgrpc.so.1", "libgpr.so.1", "libupb.so.1"} <= names
    assert not (machine.tree / "build/grpc").exists()
    status, output = build(machine)
    assert status == 0, output
    assert machine.commands() == []
    assert re.search(r"gRPC \S+, patched +there", output)


@pytest.fixture
def configure(tmp_path):
    """Configures Linnet with a gRPC whose CMake configuration says what `config` says."""

    def configure(config: str) -> subprocess.CompletedProcess:
        (tmp_path / "gRPCConfig.cmake").write_text(config)
        command = ["cmake", "--preset", "dev", "-B", tmp_path / "build"]
        return subprocess.run(
            [*command, f"-DCMAKE_PREFIX_PATH={tmp_path}", "-DLINNET_CUDA=OFF"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )

    return configure


def test_cmake_refuses_a_grpc_that_is_too_old(configure, tmp_path):
    done = configure('set(gRPC_VERSION "1.50.1")\n')
    assert done.returncode == 1
    error = " ".join(done.stderr.split())
    assert f"gRPC 1.50.1 in {tmp_path} is too old: 1.51 or newer is needed" in error


def test_cmake_uses_the_grpc_of_the_prefix_path(configure, tmp_path):
    """The newer one is Debian's with another number, so that there are targets to link."""
    done = configure(
        "file(GLOB config /usr/lib/*/cmake/grpc/gRPCConfig.cmake)\ninclude(${config})\n"
        'set(gRPC_VERSION "1.99.0")\n'
    )
    assert done.returncode == 0, done.stderr
    cache = (tmp_path / "build/CMakeCache.txt").read_text()
    assert f"gRPC_DIR:PATH={tmp_path}\n" in cache


def test_without_the_flag_uses_debians_grpc(machine):
    status, output = machine.run("start.sh", "--deps")
    assert status == 0, output
    assert not (machine.tree / ".deps/grpc").exists()


def test_new_patch_triggers_a_build(machine):
    build(machine)
    machine.commands()
    (machine.tree / "deps/grpc" / PATCHES[0].name).open("a").write("\n")
    status, output = build(machine)
    assert status == 0, output
    assert any("grpcpp_channelz" in line for line in machine.commands())


def test_names_a_changed_source_package(machine):
    status, output = build(machine, FAKE_SOURCE_MOVED="1")
    assert status == 1
    assert re.search(r"does not offer the source package grpc \S+ but: 9\.99\.9-1", output)
    assert "change its section [debian-grpc]" in output
    assert not (machine.tree / ".deps/grpc/.linnet").exists()


def test_rejects_source_package_with_wrong_hash(machine):
    for path in (machine.folder / "grpc-source").glob("*.dsc"):
        path.write_text("another one")
    status, output = build(machine)
    assert status == 1
    assert "is not the one whose hashes deps/versions.txt has" in output
    assert not any(line.startswith("cmake") for line in machine.commands()[-2:])


def test_names_a_patch_that_does_not_apply(machine):
    status, output = build(machine, FAKE_PATCH_FAILS="1")
    assert status == 1
    assert f"deps/grpc/{PATCHES[0].name} does not fit" in output


def test_tells_which_source_lists_to_add(machine):
    (machine.folder / "apt/sources.list").unlink()
    status, output = build(machine)
    assert status == 1
    assert "deb http://deb.debian.org/debian bookworm main" in output


def test_derives_source_lists_from_binary_ones(machine):
    machine.add_sources(
        "sources.list",
        "# deb http://commented/debian bookworm main\n"
        "deb [signed-by=/key arch=amd64] http://mirror/debian bookworm main contrib\n"
        "deb http://mirror/debian bookworm-updates main\n"
        "deb-src http://mirror/debian bookworm main\n"
        "deb http://elsewhere/apt nodistro main\n",
    )
    machine.add_sources(
        "sources.list.d/debian.sources",
        "Types: deb\n# a comment\nURIs: http://new/debian\nSuites: bookworm bookworm-updates\n"
        "Components: main\nSigned-By: /key\n\n"
        "Types: deb\nURIs: http://off/debian\nSuites: bookworm\nEnabled: no\n\n"
        "Types: deb\nURIs: http://elsewhere\nSuites: nodistro\n",
    )
    assert stanzas(machine) == (
        "deb-src [signed-by=/key arch=amd64] http://mirror/debian bookworm main contrib\n"
        "deb-src http://mirror/debian bookworm-updates main\n"
        "Types: deb-src\nURIs: http://new/debian\nSuites: bookworm bookworm-updates\n"
        "Components: main\nSigned-By: /key\n\n"
    )


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.name)
def test_patch_states_purpose_and_licence(path):
    head = path.read_text().partition("\ndiff --git")[0]
    assert "copyright The gRPC Authors" in head
    assert "Version 2.0: http://www.apache.org/licenses/LICENSE-2.0" in head
