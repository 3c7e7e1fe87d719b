"""test.sh runs all suites, counts their tests, and fails if any test failed."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox import LOGGED, VENV_PYTHON, Sandbox

REPORT = """
echo '<testsuites><testsuite tests="4" failures="'${%s:-0}'" skipped="1"/></testsuites>' >"$report"
exit ${%s:-0}
"""

CTEST = (
    LOGGED
    + """
while [ $# -gt 0 ]; do
  case $1 in --output-junit) report=$2 ;; esac
  shift
done
"""
    + REPORT % ("CTEST_FAILS", "CTEST_FAILS")
)

# A fake python: pip as in the other tests, a fake pytest, and the real count of all reports.
PYTHON = (
    """#!/bin/sh
case $1 in -) exec python3 "$@" ;; esac
case $* in
  *"-m pytest"*)
    echo pytest >>"$SANDBOX/commands"
    printf '%b' "${PYTEST_PRINTS:-}"
    for last; do :; done
    report=${last#--junitxml=}
"""
    + REPORT % ("PYTEST_FAILS", "PYTEST_FAILS")
    + "esac\n"
    + VENV_PYTHON.removeprefix("#!/bin/sh\n")
)

NPROC = "#!/bin/sh\necho 2\n"


@pytest.fixture
def machine() -> Iterator[Sandbox]:
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Sandbox(Path(folder))
        (sandbox.folder / "venv-python").write_text(PYTHON)
        sandbox.add_command("ctest", CTEST)
        sandbox.add_command("nproc", NPROC)
        programs = sandbox.tree / ".venv/bin"
        programs.mkdir(parents=True)
        for name in ("ruff", "mypy"):
            program = programs / name
            fails = f"${{{name.upper()}_FAILS:-0}}"
            program.write_text(f'#!/bin/sh\necho {name} >>"$SANDBOX/commands"\nexit {fails}\n')
            program.chmod(0o755)
        yield sandbox


def test_runs_all_suites_and_counts_their_tests(machine):
    status, output = machine.run("test.sh")
    assert status == 0, output
    assert output.splitlines()[-1] == "tests: 6 passed, 0 failed, 2 skipped"
    called = " ".join(machine.commands())
    assert "--build --preset release ctest" in called
    for expected in ("pytest", "linnet-server stopped", "ruff", "mypy"):
        assert expected in called


@pytest.mark.parametrize(
    ("broken", "failed"),
    [
        ("CTEST_FAILS", 1),
        ("PYTEST_FAILS", 1),
        ("RUFF_FAILS", 0),
        ("MYPY_FAILS", 0),
        ("FAKE_CLIENT_FAILS", 0),
    ],
)
def test_failure_does_not_stop_other_suites(machine, broken, failed):
    value = "health" if broken == "FAKE_CLIENT_FAILS" else "1"
    status, output = machine.run("test.sh", **{broken: value})
    assert status == 1
    assert output.count(" FAILED ") == 1
    assert output.count(" passed ") == 3  # the other suites
    assert output.splitlines()[-1] == f"tests: {6 - failed} passed, {failed} failed, 2 skipped"


def test_place_of_a_crash_is_printed_after_the_report(machine):
    crash = r"Fatal Python error: Aborted\n\nThread 1:\n  wait\n\nCurrent thread 2:\n  call\n\n"
    status, output = machine.run("test.sh", PYTEST_FAILS="1", PYTEST_PRINTS=crash + r"report\n")
    assert status == 1
    assert "Fatal Python error: Aborted\nCurrent thread 2:\n  call\n" in output.split("report")[1]


def test_failed_build_ends_without_a_count(machine):
    status, output = machine.run("test.sh", FAKE_BUILD_FAILS="1")
    assert status != 0
    assert "convolution.cc:7: error: no" in output
    assert " passed, " not in output


def test_all_adds_sanitizers_and_containers(machine):
    (machine.tree / "build/fuzz/bin").mkdir(parents=True)  # the build creates it
    status, output = machine.run("test.sh", "--all")
    assert status == 0, output
    called = machine.commands()
    assert "cmake --build --preset asan --target tests/all" in called
    assert "cmake --build --preset tsan --target tests/server/all" in called
    assert "cmake --build --preset fuzz --target tests/fuzz/all" in called
    assert "cmake --build --preset asan --target programs" in called
    # The suites plus sanitizer, transport, soak, corpus, http, research and deployment.
    assert called.count("pytest") == 9
    assert output.splitlines()[-1] == "tests: 36 passed, 0 failed, 12 skipped"


def test_research_is_tested_on_request(machine):
    status, output = machine.run("test.sh", "--research")
    assert status == 0, output
    called = machine.commands()
    assert called.count("mypy") == 5
    assert called.count("pytest") == 2


def test_failure_of_the_suite_beside_others_counts(machine):
    (machine.tree / "build/fuzz/bin").mkdir(parents=True)
    status, output = machine.run("test.sh", "--all", PYTEST_FAILS="1")
    assert status == 1
    assert re.search(r"^  soak +FAILED", output, re.MULTILINE), output


def test_installs_the_compiler_of_the_fuzz_targets(machine):
    (machine.tree / "build/fuzz/bin").mkdir(parents=True)
    (machine.folder / "missing").write_text("clang-14 libclang-rt-14-dev")
    status, output = machine.run("test.sh")
    assert status == 0, output
    assert not [it for it in machine.commands() if "clang" in it]  # these tests are not among them
    status, output = machine.run("test.sh", "--all")
    assert status == 0, output
    (install,) = [it for it in machine.commands() if it.startswith("apt-get install")]
    assert install.split()[-2:] == ["clang-14", "libclang-rt-14-dev"]
