"""The bundles that ship give their golden examples at the first start, on every kind of processor:
PyTorch and Linnet's operators take fewer instructions where ATEN_CPU_CAPABILITY says so."""

from __future__ import annotations

from pathlib import Path

import pytest

BUNDLES = Path(__file__).resolve().parents[2] / "model/bundles"
INSTRUCTIONS = ("", "avx2", "default")  # "": all that this processor has
COMPUTE = ("auto", "float32", "int8", "bfloat16")
QUICK = {("", "auto"), ("default", "float32")}


@pytest.mark.parametrize(
    ("instructions", "compute"),
    [
        pytest.param(isa, compute, marks=() if (isa, compute) in QUICK else pytest.mark.slow)
        for isa in INSTRUCTIONS
        for compute in COMPUTE
    ],
)
def test_first_start_reports_no_other_answer(start, monkeypatch, instructions, compute):
    if instructions:
        monkeypatch.setenv("ATEN_CPU_CAPABILITY", instructions)
    server = start("--compute", compute, models=BUNDLES)
    assert server.stop() == 0
    log = server.log.read_text()
    # A processor without int8 or bfloat16 computes in float32, and tells.
    assert log.count(" info model_loaded ") == len(list(BUNDLES.iterdir())), log
    assert "golden_example_differs" not in log


TEXTS = ("A dog runs.", "Where is the train station?", "She reads a book in the old garden.")


@pytest.mark.parametrize("compute", ["float32", "int8"])
def test_answers_name_the_instruction_set_that_their_bytes_depend_on(start, monkeypatch, compute):
    said = {}
    for capability, name in {"avx2": "avx2", "default": "x86-64-v2"}.items():
        monkeypatch.setenv("ATEN_CPU_CAPABILITY", capability)
        server = start("--compute", compute, "--threads", "1", models=BUNDLES)
        answers = [server.translate(*TEXTS) for _ in range(2)]
        model = server.method("GetModel")(server.api.GetModelRequest(name="en-de")).model
        assert server.stop() == 0
        for answer in answers:
            assert answer.compute == model.compute == f"{compute} {name}"
            answer.ClearField("timings")
        assert answers[0] == answers[1]
        said[name] = answers[0].translations
    for one, other in zip(*said.values(), strict=True):
        assert one.text == other.text
        # The last bits differ: hence the name.
        assert one.segments[0].score == pytest.approx(other.segments[0].score, abs=1e-3)
