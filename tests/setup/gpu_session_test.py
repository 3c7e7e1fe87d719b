"""The sessions of tests/gpu.sh: shares of time, crashes, and continuation in a later call."""

import json
import os
import subprocess
import sys
import textwrap
import threading
import time
import types
from pathlib import Path

import pytest
from sandbox import ROOT

sys.path.insert(0, str(ROOT / "tests/gpu"))
import counters
import decode
import kernels
import report
import serving
import session


def rows_in(folder, *lines):
    rows = session.Rows([folder])
    for line in lines:
        rows.write(**line)
    return rows


def test_row_is_on_disk_before_the_next_case(tmp_path):
    rows = rows_in(tmp_path)
    seen = []

    def second():
        seen.extend(rows.read())
        raise ValueError("no such shape")

    cases = iter([("first", lambda: [{"us": 1}]), ("second", second), ("third", lambda: [])])
    assert session.run_cases(cases, "operators", rows) == 0
    assert [line["case"] for line in seen] == ["first", "first", "second"]
    assert seen[1]["rows"] == [{"us": 1}]
    assert [line.get("error") for line in rows.read() if "begun" not in line] == [
        None,
        "ValueError: no such shape",
        None,
    ]


def test_part_uses_the_packed_operators(tmp_path, monkeypatch):
    seen = []
    module = types.SimpleNamespace(
        cases=lambda *_: [("x", lambda: seen.append(os.environ["LINNET_OPS_LIBRARY"]) or [])]
    )
    monkeypatch.setattr(session.importlib, "import_module", lambda _: module)
    monkeypatch.setenv("LINNET_OPS_LIBRARY", "another")  # monkeypatch restores this value later
    setup = session.Setup(tmp_path / "liblinnet_ops.so", None, None, dry=True)
    assert session.child("base", setup, [tmp_path]) == 0
    assert seen == [str(tmp_path / "liblinnet_ops.so")]


def test_child_processes_keep_the_packed_python_path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/carried")
    assert session.with_package()["PYTHONPATH"] == f"{ROOT}/model:/carried"
    monkeypatch.delenv("PYTHONPATH")
    assert session.with_package()["PYTHONPATH"] == f"{ROOT}/model"


def test_failed_context_ends_only_the_process(tmp_path):
    rows = rows_in(tmp_path)

    def broken():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    cases = [("a", broken), ("b", lambda: [{"us": 2}])]
    assert session.run_cases(iter(cases), "operators", rows) == session.CRASHED
    assert session.due_cases(rows.read(), "operators", ["a", "b"]) == ["b"]


def test_case_is_tried_at_most_twice(tmp_path):
    begun = {"part": "base", "case": "a", "begun": True}
    done = {"part": "base", "case": "b", "rows": []}
    rows = rows_in(tmp_path, begun, done).read()
    assert session.due_cases(rows, "base", ["a", "b", "c"]) == ["a", "c"]
    assert session.due_cases([*rows, begun], "base", ["a", "b", "c"]) == ["c"]
    assert session.due_cases(rows, "big", ["a", "b"]) == ["a", "b"]


def part_process(tmp_path, body):
    """Replaces a part by a process with the given output and exit."""
    file = tmp_path / "part.py"
    file.write_text(
        textwrap.dedent(f"""
        import os, signal, subprocess, sys, time
        sys.path.insert(0, {str(ROOT / "tests/gpu")!r})
        from pathlib import Path
        import session
        rows = session.Rows([Path({str(tmp_path)!r})])
        """)
        + textwrap.dedent(body)
    )
    return [sys.executable, str(file)]


def test_new_process_continues_after_a_crash(tmp_path):
    command = part_process(
        tmp_path,
        """
        cases = [("dies", lambda: os.kill(os.getpid(), signal.SIGSEGV)), ("b", lambda: [{}])]
        sys.exit(session.run_cases(iter(cases), "base", rows))
        """,
    )
    rows = session.Rows([tmp_path])
    assert session.run_part(command, "base", 60, rows) == "complete"
    lines = rows.read()
    assert [line["case"] for line in lines if "begun" in line] == ["dies", "dies", "b"]
    assert [line["case"] for line in lines if "rows" in line] == ["b"]


def test_crash_before_the_first_case_is_final(tmp_path):
    command = part_process(tmp_path, "sys.exit(3)")
    assert session.run_part(command, "base", 60, session.Rows([tmp_path])) == "ended with status 3"


def test_part_is_stopped_with_its_children(tmp_path):
    child, part = tmp_path / "child", tmp_path / "part.py"
    part.write_text(  # imports little: its child is to run within the 5 s, also on a busy machine
        "import subprocess, sys\n"
        "process = subprocess.Popen(['sleep', '600'])\n"
        "open(sys.argv[1], 'w').write(str(process.pid))\n"
        "while True: pass\n"
    )
    command = [sys.executable, "-S", str(part), str(child)]
    rows = session.Rows([tmp_path])
    begin = time.monotonic()
    assert session.run_part(command, "base", 5, rows) == "stopped after 5 s"
    assert time.monotonic() - begin < 60
    pid = int(child.read_text())
    state = Path(f"/proc/{pid}/stat")
    end = time.monotonic() + 30
    while time.monotonic() < end:  # the kernel ends it when it gets a core
        try:
            if state.read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except OSError:
            return
        time.sleep(0.01)
    pytest.fail(f"process {pid} is still there")


def test_unused_time_goes_to_later_parts(tmp_path, monkeypatch):
    given = {}
    monkeypatch.setattr(session, "run_part", lambda _, part, s, __: given.update({part: s}) or "x")
    monkeypatch.setattr(session.time, "monotonic", lambda: 1000.0)
    rows = rows_in(tmp_path, {"part": "smoke", "end": "complete", "seconds": 9})
    session.run_session(["smoke", "base", "big"], lambda _: [], 80, rows)
    share = session.PARTS["base"].weight / session.weight_of(["base", "big"])
    assert given == {"base": pytest.approx(80 * share), "big": pytest.approx(80)}


def test_part_gets_no_more_than_its_limit(tmp_path, monkeypatch):
    given = {}
    monkeypatch.setattr(session, "run_part", lambda _, part, s, __: given.update({part: s}) or "x")
    parts = list(session.PARTS)
    session.run_session(parts, lambda _: [], 3600, rows_in(tmp_path))
    assert set(given) == set(parts)  # some run at once, in any order
    assert all(seconds <= session.PARTS[part].limit <= 90 for part, seconds in given.items())


def test_parts_that_time_nothing_run_at_once(tmp_path, monkeypatch):
    both = threading.Barrier(2, timeout=20)
    given = {}

    def run_part(_, part, seconds, rows):
        if part in ("kernels", "answers"):
            both.wait()
        given[part] = seconds
        return "complete"

    monkeypatch.setattr(session, "run_part", run_part)
    monkeypatch.setattr(session.time, "monotonic", lambda: 1000.0)
    rows = session.Rows([tmp_path])
    session.run_session(["answers", "kernels", "operators"], lambda _: [], 90, rows)
    weight = session.weight_of(["answers", "kernels"])
    share = 90 * weight / (weight + session.PARTS["operators"].weight)
    assert given == {"kernels": share, "answers": share, "operators": 90}
    assert {row["part"] for row in rows.read()} == set(given)


def test_cases_that_compute_elsewhere_run_at_once(tmp_path):
    two = threading.Barrier(2, timeout=20)
    rows = rows_in(tmp_path)

    def fails():
        two.wait()
        raise RuntimeError("linnet-decode ended with 1: CUDA error")

    cases = [("a", fails), ("b", lambda: [{"index": two.wait()}])]
    assert session.run_cases(iter(cases), "answers", rows) == 0
    assert {line["case"] for line in rows.read() if "rows" in line or "error" in line} == {"a", "b"}


def test_report_lists_failures_and_stopped_parts(tmp_path):
    rows_in(
        tmp_path,
        {"part": "facts", "case": "machine", "rows": [{"device": "Some GPU", "driver": "580"}]},
        {"part": "answers", "case": "x", "begun": True},
        {"part": "answers", "case": "y", "rows": [{"bundle": "b", "compute": "bfloat16"}]},
        {"part": "answers", "end": "stopped after 9 s", "seconds": 9},
        {"part": "operators", "case": "z", "error": "RuntimeError: no\nmemory"},
    )
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"part": "operators", "ca')  # cut off
    assert report.write_report([tmp_path / "rows.jsonl"], tmp_path) == 1
    page = (tmp_path / "some-gpu/gpu.md").read_text()
    assert "| x | its process ended, or its time was over |" in page
    assert "| z | RuntimeError: no memory |" in page
    assert "This part is not complete: stopped after 9 s." in page
    results = json.loads((tmp_path / "some-gpu/gpu.json").read_text())
    assert report.wrong(results) == ["operators, z: RuntimeError: no\nmemory"]


def test_means_of_the_servers_histograms():
    page = """# TYPE linnet_step_rows histogram
linnet_step_rows_bucket{model="a",le="8"} 3
linnet_step_rows_sum{model="a"} 12
linnet_step_rows_count{model="a"} 3
linnet_step_rows_sum{model="b"} 8
linnet_step_rows_count{model="b"} 1
linnet_step_duration_seconds_sum{model="a"} 0.006
linnet_step_duration_seconds_count{model="a"} 3
linnet_queue_duration_seconds_sum{model="a"} 0
linnet_queue_duration_seconds_count{model="a"} 0
"""
    assert serving.means(page) == {"rows of a step": 5.0, "step, ms": 2.0}
    documented = (ROOT / "docs/METRICS.md").read_text()
    assert all(f"| `linnet_{name}` | histogram" in documented for name in serving.MEANS)


def test_only_float32_answers_must_be_equal():
    row = {"bundle": "x", "options": "beam 5", "way": "graphs", "different": 1}
    rows = [{**row, "compute": "bfloat16"}, {**row, "compute": "float32"}]
    part = {"rows": rows, "failed": {}, "end": "complete"}
    assert report.wrong({"parts": {"answers": part}}) == ["x, beam 5, graphs decode differently"]


def test_parses_a_row_for_each_kernel_of_ncu():
    metrics = list(counters.METRICS)
    lines = [
        "==PROF== Connected",
        '"ID","Kernel Name",' + ",".join(f'"{name}"' for name in metrics),
        '"","","nsecond","%","%","%","register/thread"',
        '"0","FindBest<float>","2,000","50","10","40","32"',
        '"1","FindBest<float>","4,000","70","10","40","32"',
        '"2","gemm","90,000","5","90","20","128"',
    ]
    assert counters.parse("\n".join(lines)) == [
        {"kernel": "gemm", "launches": 1, "us": 90.0, "DRAM %": 5.0, "SM %": 90.0}
        | {"warps %": 20.0, "registers": 128.0},
        {"kernel": "FindBest<float>", "launches": 2, "us": 3.0, "DRAM %": 60.0, "SM %": 10.0}
        | {"warps %": 40.0, "registers": 32.0},
    ]


def test_packed_kernel_tests_run_elsewhere(tmp_path):
    setup = session.Setup(tmp_path / "liblinnet_ops.so", tmp_path, None, dry=False)
    assert [name for name, _ in kernels.cases(setup, "kernels")] == ["operators"]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/cuda_kernels_gpu_test").touch()
    names = [name for name, _ in kernels.cases(setup, "kernels")]
    assert names == ["operators", "kernels", "device decoder", *kernels.SANITIZERS]


def test_each_bundle_gets_texts_of_its_language():
    texts = {bundle.name: decode.texts_for(bundle) for bundle in decode.bundles()}
    assert texts["de-en"] is decode.GERMAN
    assert texts["en-de"] is texts["en-summary"] is decode.TEXTS


def test_report_of_failed_tests_has_no_path_of_the_checkout():
    said = "[  FAILED  ] A.B\n/some/where/tests/torch/a_test.cc:7: Failure\n[  PASSED  ] 9 tests."
    done = subprocess.CompletedProcess(["a_test"], 1, stdout=said, stderr="")
    found = kernels.row("a_test", done)["said"]
    assert " tests/torch/a_test.cc:7: Failure" in found
    assert "/some/where" not in found
