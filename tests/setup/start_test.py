"""start.sh on fake machines. ./test.sh runs it for real: ./start.sh --check."""

import fcntl
import os
import re
import signal
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox import Sandbox

NOBODY = 65534
SCRIPT = (Path(__file__).resolve().parents[2] / "start.sh").read_text()
SUDO = """#!/bin/sh
[ "$1" = -v ] || { echo "sudo: $*" >>"$SANDBOX/commands"; "$@"; }
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be it or another user")


@pytest.fixture
def machine() -> Iterator[Sandbox]:
    with (
        tempfile.TemporaryDirectory() as folder
    ):  # not tmp_path: another user must be able to enter it
        yield Sandbox(Path(folder))


def test_help_names_every_flag(machine):
    status, output = machine.run("start.sh", "--help")
    assert status == 0
    (cases,) = re.findall(r"^  case \$1 in\n(.*?)^  esac", SCRIPT, re.MULTILINE | re.DOTALL)
    flags = re.findall(r"--[a-z-]*", " ".join(re.findall(r"^ +(-.*)\)", cases, re.MULTILINE)))
    assert len(flags) > 8
    for flag in set(flags) - {"--help"}:
        assert re.search(rf"^  {flag}\b|^  {flag} ", output, re.MULTILINE), flag
    assert machine.commands() == []


@pytest.mark.parametrize("script", ["start.sh", "test.sh"])
def test_rejects_unknown_flag_before_any_work(machine, script):
    status, output = machine.run(script, "--fast")
    assert status == 1
    assert output == f"error: unknown flag '--fast': see ./{script} --help\n"
    assert machine.commands() == []


def test_rejects_unknown_device_and_lists_devices(machine):
    status, output = machine.run("start.sh", "--device", "tpu")
    assert (status, output) == (1, "error: --device 'tpu' is not supported: cpu or cuda\n")


def test_second_run_finds_everything_installed(machine):
    status, first = machine.run("start.sh", "--build")
    assert status == 0, first
    called = machine.commands()
    assert [line for line in called if line.startswith("pip")] == [
        "pip libtorch.txt",
        "pip python-build.txt",
        "pip requirements.txt",
    ]
    link = (machine.tree / ".deps/python").readlink()
    assert link == Path("../.venv/lib/python3.11/site-packages")
    assert (machine.tree / ".deps/sentencepiece/lib/libsentencepiece.a").exists()
    assert (machine.tree / ".deps/sentencepiece/include/sentencepiece_processor.h").exists()
    assert (machine.tree / ".deps/sentencepiece/darts_clone.LICENSE").exists()

    status, second = machine.run("start.sh", "--build")
    assert status == 0, second
    assert machine.commands() == [
        "cmake --preset release",
        "cmake --build --preset release --target programs",
    ]
    assert second.count(" there\n") == 4


def test_installs_only_the_new_version(machine):
    machine.run("start.sh", "--deps")
    machine.commands()
    versions = machine.tree / "deps/versions.txt"
    versions.write_text(versions.read_text().replace("torch==2.11.0", "torch==2.12.0"))
    status, output = machine.run("start.sh", "--deps")
    assert status == 0, output
    assert machine.commands() == ["pip libtorch.txt"]
    assert "LibTorch 2.12.0" in output


def test_changed_build_of_sentencepiece_is_made(machine):
    machine.run("start.sh", "--deps")
    machine.commands()
    script = machine.tree / "deps/setup.sh"
    script.write_text(script.read_text().replace('rm -rf "$work"\n}', 'rm -rf "$work" && true\n}'))
    status, output = machine.run("start.sh", "--deps")
    assert status == 0, output
    assert "pip requirements.txt" in machine.commands()
    machine.run("start.sh", "--deps")
    assert machine.commands() == []


def test_removed_folder_is_created_again(machine):
    machine.run("start.sh", "--deps")
    machine.commands()
    for path in sorted((machine.tree / ".deps/sentencepiece").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    machine.run("start.sh", "--deps")
    assert "pip requirements.txt" in machine.commands()


def test_tools_adds_full_torch_and_linnet_model(machine):
    status, output = machine.run("start.sh", "--deps", "--tools")
    assert status == 0, output
    called = machine.commands()
    # Those without a list of packages install the client and the four packages of this tree.
    assert called[-9:] == [
        "pip import.txt",
        "pip http.txt",
        "pip http-build.txt",
        "pip files.txt",
        "pip ",
        "pip ",
        "pip corpus.txt",
        "pip python.txt",
        "pip ",
    ]
    machine.run("start.sh", "--deps", "--tools")
    assert machine.commands() == []


def test_import_adds_the_packages_of_linnet_model(machine):
    status, output = machine.run("start.sh", "--deps", "--import")
    assert status == 0, output
    assert machine.commands()[-1] == "pip import.txt"


def test_http_adds_linnet_http(machine):
    status, output = machine.run("start.sh", "--deps", "--http")
    assert status == 0, output
    assert machine.commands()[-5:] == [
        *("pip http.txt", "pip http-build.txt", "pip files.txt"),
        *("pip ", "pip "),
    ]


def fetched(commands: list[str]) -> list[str]:
    return [line for line in commands if line.startswith(("linnet-model", "deploy/"))]


def test_model_is_fetched_once_and_served(machine):
    """With the packages of --import; the second run neither fetches nor installs."""
    status, output = machine.run("start.sh", "--check", "--model", "en-pt", "--model", "pt-en")
    assert status == 0, output
    called = machine.commands()
    assert "pip import.txt" in called
    assert "pip python.txt" not in called
    assert fetched(called) == [
        "deploy/stage_model.py --links build/linnet-model",
        "linnet-model fetch en-pt --out models",
        "linnet-model fetch pt-en --out models",
    ]
    assert any(line.startswith("linnet-server --models models --device cpu ") for line in called)
    assert "    licence: MPL-2.0\n" in output
    assert 'linnet translate --from en --to pt "Where is the train station?"' in output
    assert 'linnet translate --from pt --to en "Onde está a estação de trem?"' in output
    assert "summarize" not in output

    status, output = machine.run("start.sh", "--build", "--model", "en-pt")
    assert status == 0, output
    called = machine.commands()
    assert fetched(called) == []
    assert not [line for line in called if line.startswith("pip")]
    assert re.search(r"Model en-pt +there\n", output)


def test_model_that_cannot_be_fetched_ends_the_start(machine):
    status, output = machine.run("start.sh", "--model", "en-pr", FAKE_FETCH_FAILS="1")
    assert status == 1
    assert "no model 'en-pr' in the catalogue" in output
    assert not [line for line in machine.commands() if line.startswith("linnet-server")]


@pytest.mark.parametrize("name", ["", "../x", "en", "--check", "en pt"])
def test_rejects_other_names_of_models(machine, name):
    status, output = machine.run("start.sh", "--model", name)
    assert (status, output) == (
        1,
        f"error: --model '{name}' is no name of a model, such as en-pt\n",
    )
    assert machine.commands() == []


def test_there_is_a_text_for_every_model_of_the_catalogue():
    text = (
        Path(__file__).resolve().parents[2] / "model/linnet_model/fetch/catalog.toml"
    ).read_text()
    languages = {model["source-language"] for model in tomllib.loads(text)["model"].values()}
    (texts,) = re.findall(r"^declare -A texts=\((.*)\)$", SCRIPT, re.MULTILINE)
    assert set(re.findall(r"\[(\w+)\]=", texts)) == languages


@needs_root
def test_root_installs_only_missing_packages(machine):
    machine.lack("mold", "ccache")
    status, output = machine.run("start.sh", "--deps")
    assert status == 0, output
    assert machine.commands()[:2] == [
        "apt-get update -qq",
        "apt-get install -y -q --no-install-recommends ccache mold",
    ]


@needs_root
def test_without_root_and_sudo_names_the_command(machine):
    machine.lack("mold", "ccache")
    status, output = machine.run("start.sh", "--deps", user=NOBODY)
    assert status == 1
    assert "apt-get update && apt-get install --no-install-recommends ccache mold\n" in output
    assert machine.commands() == []


@needs_root
def test_without_root_uses_sudo(machine):
    machine.lack("mold")
    machine.add_command("sudo", SUDO)
    status, output = machine.run("start.sh", "--deps", user=NOBODY)
    assert status == 0, output
    called = machine.commands()
    assert called[0] == "sudo: apt-get update -qq"
    assert called[3] == "apt-get install -y -q --no-install-recommends mold"


@needs_root
def test_without_root_needs_no_sudo_if_nothing_is_missing(machine):
    status, output = machine.run("start.sh", "--build", user=NOBODY)
    assert status == 0, output


def test_other_system_lists_missing_packages_and_docker(machine):
    machine.be("ubuntu", "24.04")
    machine.lack("libgrpc++-dev")
    status, output = machine.run("start.sh")
    assert status == 1
    assert "not Debian 12, and these packages of Debian 12 are missing: libgrpc++-dev\n" in output
    assert "docker compose up" in output
    assert machine.commands() == []


def test_other_system_with_all_packages_continues(machine):
    machine.be("ubuntu", "24.04")
    status, output = machine.run("start.sh", "--build")
    assert status == 0, output


def test_rejects_other_processor(machine):
    status, output = machine.run("start.sh", FAKE_MACHINE="aarch64")
    assert status == 1
    assert "this machine is aarch64; LibTorch is pinned for x86_64 alone" in output


def test_failed_step_shows_the_end_of_its_log(machine):
    status, output = machine.run("start.sh", "--build", FAKE_BUILD_FAILS="1")
    assert status == 2
    assert "convolution.cc:7: error: no" in output
    assert "build/logs/Building-the-programs.log" in output


def test_rejects_cuda_without_nvcc(machine):
    status, output = machine.run("start.sh", "--build", "--device", "cuda")
    assert status == 1
    assert "put nvcc of CUDA 13.0 on PATH" in output


def test_cuda_installs_libraries_and_sets_the_device(machine):
    machine.add_command("nvcc")
    status, output = machine.run("start.sh", "--check", "--device", "cuda")
    assert status == 0, output
    called = machine.commands()
    assert "pip cuda.txt" in called
    assert "cmake --preset release -DLINNET_CUDA=ON" in called
    assert any("linnet-server --models model/bundles --device cuda " in line for line in called)


def test_check_shows_four_answers_and_stops_the_server(machine):
    status, output = machine.run("start.sh", "--check")
    assert status == 0, output
    for command in ("translate", "summarize", "health"):
        assert f"answer to {command} of 127.0.0.1:7" in output
    assert "linnet_requests_total 2" in output
    called = machine.commands()
    assert "--listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0" in called[-2]
    assert called[-1] == "linnet-server stopped"


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        ((), "config=/dev/null tls=false\n"),
        (("--", "--threads", "2"), "config=/dev/null tls=false\n"),
        (("--", "--tls-cert", "c", "--tls-key", "k"), "config=mine tls=\n"),
        (("--", "--tokens=t"), "config=mine tls=\n"),
    ],
)
def test_check_takes_settings_of_the_user_only_where_the_server_needs_them(
    machine, flags, settings
):
    """They may be those of another server, which has TLS."""
    status, output = machine.run("start.sh", "--check", *flags, LINNET_CONFIG="mine")
    assert status == 0, output
    assert (machine.folder / "settings-of-linnet").read_text() == settings


def test_check_takes_the_address_of_administration(machine):
    status, output = machine.run("start.sh", "--check", "--", "--admin-listen", "127.0.0.1:9")
    assert status == 0, output


def test_check_leaves_the_log_of_a_serving_server(machine):
    log = machine.tree / "build/logs/server.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("of a server that serves\n")
    status, output = machine.run("start.sh", "--check")
    assert status == 0, output
    assert log.read_text() == "of a server that serves\n"
    assert "ready grpc=" in log.with_name("check.log").read_text()


def test_waits_for_another_set_up_in_the_folder(machine):
    (machine.tree / "build").mkdir(exist_ok=True)
    folder = os.open(machine.tree / "build", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        process = machine.popen("start.sh", "--deps")
        told = [process.stdout.readline() for _ in range(2)]
        assert "Another set-up runs in" in told[1]
        assert not machine.commands()
    finally:
        os.close(folder)
    assert process.wait(60) == 0
    assert machine.commands()


@pytest.mark.parametrize("command", ["translate", "summarize", "health"])
@pytest.mark.parametrize("how", ["FAKE_CLIENT_FAILS", "FAKE_CLIENT_SILENT"])
def test_check_fails_with_the_failed_call(machine, command, how):
    status, output = machine.run("start.sh", "--check", **{how: command})
    assert status == 1
    assert f"error: linnet {command} " in output
    assert machine.commands()[-1] == "linnet-server stopped"


def test_check_fails_without_metrics(machine):
    status, output = machine.run("start.sh", "--check", FAKE_SERVER="no metrics")
    assert status == 1
    assert "error: no metrics at" in output


def test_check_fails_if_the_server_exits_with_an_error(machine):
    status, output = machine.run("start.sh", "--check", FAKE_SERVER="stops badly")
    assert status == 1
    assert "did not stop cleanly" in output


def test_shows_the_log_of_a_server_that_dies(machine):
    status, output = machine.run("start.sh", FAKE_SERVER="dies")
    assert status == 1
    assert "cannot listen on 127.0.0.1:50051: taken" in output


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_serves_until_it_is_stopped(machine, how):
    process = machine.popen("start.sh", "--", "--listen", "127.0.0.1:7")
    printed = ""
    for line in process.stdout:
        printed += line
        if "Ctrl-C stops the server" in line:
            break
    assert process.poll() is None, printed
    assert "answer to translate" in printed
    assert "answer to summarize" in printed
    assert "export LINNET_SERVER=127.0.0.1:7" in printed
    os.killpg(process.pid, how) if how == signal.SIGINT else process.send_signal(how)
    assert process.wait(timeout=30) == 0
    called = machine.commands()
    assert "linnet-server --models model/bundles --device cpu --listen 127.0.0.1:7" in called
    assert "at http://127.0.0.1:8080. " in printed
    assert called[-2] == "linnet-http stopped"
    # Ctrl-C reaches the whole group: a server that got both SIGINT and SIGTERM would not drain.
    assert called[-1] == "linnet-server stopped"
    assert "linnet-server interrupted" not in called


def test_a_taken_port_moves_the_page_to_a_free_one(machine):
    process = machine.popen("start.sh", FAKE_PORT_TAKEN="1")
    printed = ""
    for line in process.stdout:
        printed += line
        if "Ctrl-C stops the server" in line:
            break
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0
    assert "at http://127.0.0.1:8123. " in printed
