"""Tests the decoding benchmark at its smallest size. No time is asserted."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import peer_fairseq
import pytest
import torch
from decoding_report import markdown, ratio
from drift import Unsteady
from engines import Engine, Measured, Memory
from rounds import measure_group

HERE = Path(__file__).resolve().parent
SMALL = ["--size", "tiny", "--source", "6", "--target", "5", "--rounds", "1"]
SMALL += ["--max-drift", "inf"]  # other tests run beside


@pytest.fixture(scope="module")
def bundles(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("bundles")


@pytest.fixture
def run(tmp_path, bundles, program, binaries):
    """Runs the benchmark: (status, results or None, output)."""

    def measure(*flags: str):
        command = [sys.executable, HERE / "decoding.py", *flags, "--out", tmp_path / "results"]
        command += ["--programs", program("linnet-decode").parent, "--bundles", bundles]
        library = binaries.parent / "lib/liblinnet_ops.so"
        environment = os.environ | {"LINNET_OPS_LIBRARY": str(library)}
        done = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            env=environment,
            timeout=600,
        )
        found = list((tmp_path / "results").glob("*/*.json"))
        results = json.loads(found[0].read_text()) if found else None
        return done.returncode, results, done.stdout + done.stderr

    return measure


def test_measures_all_installed_engines_in_one_run(run):
    status, results, said = run(*SMALL, "--compute", "float32", "--batch", "2", "--beam", "2")
    assert status == 0, said
    (group,) = results["groups"]
    assert list(group["engines"]) == results["engines"]
    for name, engine in group["engines"].items():
        if (
            name.startswith("ctranslate2") and "unavailable" in engine
        ):  # tests/bench/run installs it
            assert "not installed" in engine["unavailable"]
            continue
        assert len(engine["rounds"]) == 1, (name, engine)
        assert engine["rounds"][0] > 0
        assert engine["peak_bytes"] > 1 << 20
        assert f"| {name} |" in said


def test_missing_type_of_an_engine_is_reported(run):
    status, results, said = run(
        *SMALL, "--compute", "int8", "--batch", "1", "--beam", "1", "--engines", "marian"
    )
    assert status == 0, said
    assert "unavailable" in results["groups"][0]["engines"]["marian"]
    assert "transformers has no int8" in said


def test_continue_measures_only_missing_settings(run):
    one = [*SMALL, "--engines", "linnet light", "--compute", "float32", "--beam", "2"]
    assert run(*one, "--batch", "1")[0] == 0
    status, results, said = run(*one, "--batch", "1", "2", "--continue")
    assert status == 0, said
    assert [group["batch"] for group in results["groups"]] == [1, 2]
    assert "batch 1, beam 2" not in said
    status, _, said = run(*one, "--batch", "1", "2", "--continue", "--rounds", "2")
    assert status == 1
    assert "measured with rounds 1, this is 2: leave out --continue" in said


@pytest.mark.parametrize(
    "flags",
    [["--batch", "0"], ["--cores", "many"], ["--cores", "4000"], ["--engines", "x"]],
    ids=" ".join,
)
def test_rejects_invalid_flags(run, flags):
    status, results, said = run(*flags)
    assert status == 2
    assert results is None
    assert flags[0] in said


def group(compute: str, batch: int, beam: int, ours: list[float], theirs: list[float]):
    def engine(rounds: list[float], megabytes: int):
        return {"rounds": rounds, "label": "x", "peak_bytes": megabytes << 20, "working_bytes": 1}

    found = {"linnet dynamic": engine(ours, 500), "ctranslate2": engine(theirs, 400)}
    return {"compute": compute, "batch": batch, "beam": beam, "engines": found}


def test_ratios_are_taken_round_by_round():
    # The machine was twice as fast in the second round, for both.
    drifting = group("int8", 32, 5, ours=[30, 60, 33], theirs=[10, 20, 10])
    assert ratio(drifting, "linnet dynamic") == 3
    assert ratio(drifting, "marian") is None


def test_reference_is_the_fastest_peer_of_a_setting():
    both = group("int8", 1, 5, ours=[60, 66], theirs=[10, 11])
    both["engines"]["ctranslate2 workers"] = {"rounds": [20, 22]}
    assert ratio(both, "linnet dynamic") == 3
    both["engines"]["ctranslate2 workers"] = {"rounds": [5, 5]}
    assert ratio(both, "linnet dynamic") == 6


def results_of(features: list[str], *groups: dict) -> dict:
    return {
        "machine": {"cpu": "X", "cores": 2, "features": features, "version": "1"},
        "sizes": {"name": "base", "width": 1, "vocabulary": 1, "source": 1, "target": 1},
        "rounds": 1,
        "max_drift": 0.1,
        "groups": list(groups),
    }


def test_targets_are_those_of_the_instruction_set():
    groups = [
        group("int8", 32, 5, [19, 26, 27], [10, 10, 10]),
        group("float32", 32, 5, [16, 17, 18], [10, 10, 10]),
    ]
    text = markdown(results_of(["avx512_vnni"], *groups))
    assert "| int8, batch 32, beam 5 | ≥ 2.50 | ≥ 4.00 | 2.60 | 2.25 | yes |" in text
    assert "| float32, batch 32, beam 5 | ≥ 1.50 | ≥ 1.50 | 1.70 | 1.65 | yes |" in text
    assert "Not measured on this machine: the targets with AMX." in text
    assert "batch 1, beam 5" not in text
    text = markdown(results_of(["avx512_vnni", "amx_int8"], *groups))
    assert "| int8, batch 32, beam 5 | ≥ 2.50 | ≥ 4.00 | 2.60 | 2.25 | no |" in text
    assert "the targets with AVX512-VNNI." in text
    text = markdown(results_of([], *groups))
    assert "| int8, batch 32, beam 5 | ≥ 2.50 | ≥ 4.00 | not measured |  |  |" in text


def test_low_rounds_miss_a_target_that_the_median_meets():
    text = markdown(
        results_of(["avx512_vnni"], group("int8", 1, 5, [20, 21, 30, 31, 32], [10] * 5))
    )
    assert "| int8, batch 1, beam 5 | ≥ 3.00 | ≥ 3.00 | 3.00 | 2.10 | no |" in text


def test_memory_and_bfloat16_are_beside_their_targets():
    groups = [group(compute, 32, 5, [12], [10]) for compute in ("int8", "float32", "bfloat16")]
    groups[2]["engines"]["linnet dynamic"]["rounds"] = [9]
    for one in groups:
        one["engines"]["linnet dynamic"]["working_bytes"] = 300 << 20
        one["engines"]["ctranslate2"]["working_bytes"] = 250 << 20
        one["engines"]["linnet self_attention"] = {"rounds": [9], "working_bytes": 240 << 20}
    text = markdown(results_of(["avx512_vnni"], *groups))
    assert "| int8, resident MiB after loading | 300 | 320 | yes |" in text
    assert "| float32, resident MiB after loading | 300 | 250 | no |" in text
    same = "float32, resident MiB with self-attention, the layers of ctranslate2"
    assert f"| {same} | 240 | 250 | yes |" in text
    assert "| batch 32, beam 5 | 0.75 | 1.00 | no |" in text


class FakeEngine(Engine):
    """Decodes a token a second, and counts its turns."""

    def __init__(self, name: str):
        super().__init__(name)
        self.turns = 0

    def measure(self, batch: int, beam: int, repeat: int) -> Measured:
        self.turns += 1
        return Measured([1.0], 1)


def test_rounds_with_drift_are_thrown_away():
    loop = iter([1.0, 1.05, 1.0, 1.2, 1.2, 1.2, 1.0, 0.8, 0.8, 0.8])
    ours, other = FakeEngine("linnet dynamic"), FakeEngine("marian")
    found = measure_group([ours, other], 1, 1, 3, 0.1, lambda: next(loop))
    assert found["linnet dynamic"]["rounds"] == [1.0, 1.0, 1.0]
    assert ours.turns == 5
    with pytest.raises(Unsteady, match="13 rounds were thrown away"):
        measure_group([ours], 1, 1, 3, 0.1, itertools.cycle([1.0, 2.0]).__next__)


def test_engines_without_a_target_take_part_in_the_first_rounds():
    ours, other = FakeEngine("linnet dynamic"), FakeEngine("marian")
    found = measure_group([ours, other], 1, 1, 5, 0.1, lambda: 1.0, always=[ours.name])
    assert len(found["linnet dynamic"]["rounds"]) == 5
    assert len(found["marian"]["rounds"]) == 3


def test_memory_measures_a_process():
    held = "x = bytearray(64 << 20); print('there', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        memory = Memory(process.pid)
        while not memory.working:
            pass
        process.communicate(b"\n")
    memory.stop()
    assert memory.peak >= memory.working > 64 << 20


def test_fairseq_steps_equal_the_whole_convolution():
    """Steps on the last K-1 inputs equal the whole causal convolution."""
    torch.manual_seed(3)
    conv = peer_fairseq.DynamicConv(width=8, heads=2, kernel=5).eval()
    x = torch.randn(9, 3, 8)
    state = [torch.zeros(3, 2, 4, 4)]
    with torch.inference_mode():
        steps = torch.stack([conv.step(x[t], state) for t in range(9)])
        gated = torch.nn.functional.glu(conv.inputs(x), dim=-1)
        taps = torch.softmax(conv.taps(gated).view(9, 3, 2, 5), dim=-1)
        gated = gated.view(9, 3, 2, 4)
        whole = torch.zeros(9, 3, 2, 4)
        for t in range(9):
            for k in range(5):
                if t + k - 4 >= 0:
                    whole[t] += taps[t, :, :, k, None] * gated[t + k - 4]
        torch.testing.assert_close(steps, conv.outputs(whole.view(9, 3, 8)))


def test_fairseq_band_equals_the_unfolded_form(monkeypatch):
    torch.manual_seed(4)
    conv = peer_fairseq.DynamicConv(width=8, heads=2, kernel=7).eval()
    x = torch.randn(11, 3, 8)
    with torch.inference_mode():
        band = conv(x)
        monkeypatch.setattr(peer_fairseq, "LONGEST_BAND", 0)
        torch.testing.assert_close(conv(x), band)


def score(
    model: peer_fairseq.EncoderDecoder, source: torch.Tensor, target: tuple[int, ...]
) -> float:
    """The log-probability of one target, step by step and without a beam or an end token."""
    memory = model.encode(source)
    width = model.width // model.heads
    states = [
        [memory.new_zeros(1, model.heads, width, 0), *layer.attention.memory(memory)]
        for layer in model.decoder
    ]
    total = 0.0
    for step, (before, token) in enumerate(itertools.pairwise((peer_fairseq.EOS, *target))):
        x = model.embed(torch.tensor([[before]]), step).squeeze(1)
        for layer, state in zip(model.decoder, states, strict=True):
            x = layer.step(x, state)
        total += torch.log_softmax(x @ model.table.weight.T, dim=-1)[0, token].item()
    return total


def test_fairseq_search_is_exact_with_a_full_beam():
    sizes = SimpleNamespace(layers=2, width=8, ffn=16, heads=2, vocab=6, source=4, target=2)
    tokens = [token for token in range(6) if token != peer_fairseq.EOS]
    for seed in range(5):
        torch.manual_seed(seed)
        model = peer_fairseq.EncoderDecoder(sizes).eval()
        source = torch.tensor([[3, 4, 5, 3]])
        with torch.inference_mode():
            found = peer_fairseq.beam_search(model, source, beam=5, steps=2)
            pairs = itertools.product(tokens, repeat=2)
            best = max(pairs, key=lambda pair: score(model, source, pair))
        assert tuple(found[0].tolist()) == best
