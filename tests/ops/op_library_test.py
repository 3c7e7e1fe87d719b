"""The operator library as a whole: torch's checks, threads, instruction sets, loading."""

import io
import os
import subprocess
import sys

import pytest
import torch
from op_cases import (
    attention_arguments,
    conv_arguments,
    depthwise_arguments,
    depthwise_step_arguments,
    gated_step_arguments,
    ints,
    normed_arguments,
    numbers,
    self_attention_arguments,
    sequence_arguments,
    ssru_arguments,
    step_arguments,
)
from torch import Tensor

ops = torch.ops.linnet


def calls(dtype: torch.dtype) -> list:
    """Arguments of one call of each operator, by name."""
    return [
        ("dynamic_conv", (*conv_arguments(2, 9, 32, 4, 7, True, dtype), 3)),
        ("light_conv", (*conv_arguments(2, 9, 32, 4, 7, False, dtype), 6)),
        ("dynamic_conv_step", step_arguments(6, 32, 4, 7, True, dtype)),
        ("light_conv_step", step_arguments(6, 32, 4, 7, False, dtype)),
        ("depthwise_conv", (*depthwise_arguments(2, 9, 32, 7, dtype), 6, 2)),
        ("depthwise_conv_step", depthwise_step_arguments(6, 32, 7, 2, dtype)),
        ("gated_conv_step", gated_step_arguments(6, 32, 4, 7, dtype)),
        ("add_norm", normed_arguments(5, 16, dtype)),
        ("add_norm_sum", normed_arguments(5, 16, dtype)),
        (
            "add_positions",
            (numbers(1, 2, 5, 16, dtype=dtype), ints(0, 1, 2, 3, 4), None, 3.0, 2, 8.0),
        ),
        ("self_attention", (*sequence_arguments(2, 9, 32, dtype), 4)),
        ("self_attention_step", (*self_attention_arguments(6, 32, 7, dtype), 4, 3)),
        ("source_attention", (*attention_arguments([5, 0, 9], 32, 4, dtype), 4)),
        ("source_attention_weights", (*attention_arguments([5, 0, 9], 32, 4, dtype), 4, -1)),
        ("ssru_step", ssru_arguments(6, 32, dtype)),
    ]


NAMES = [name for name, _ in calls(torch.float32)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_passes_opcheck(name, dtype):
    """Schema, aliasing, shapes without data, symbolic shapes, autograd registration."""
    arguments = dict(calls(dtype))[name]
    results = torch.library.opcheck(getattr(ops, name).default, arguments)
    assert set(results.values()) == {"SUCCESS"}


@pytest.mark.parametrize("name", NAMES)
def test_backward_pass_is_an_error(name):
    arguments = list(dict(calls(torch.float32))[name])
    arguments[0] = arguments[0].requires_grad_()
    y = getattr(ops, name)(*arguments)
    y = y[-1] if isinstance(y, tuple) else y
    with pytest.raises(RuntimeError, match=f"derivative for linnet::{name} is not implemented"):
        y.sum().backward()


class StepModule(torch.nn.Module):
    """Like an exported model: it gets its state as a list, and operators change it in place."""

    def forward(
        self,
        x: Tensor,
        weight: Tensor,
        state: list[Tensor],
        positions: Tensor,
        backpointers: Tensor,
    ) -> Tensor:
        for layer_state in state:
            x = torch.ops.linnet.dynamic_conv_step(x, weight, layer_state, positions, backpointers)
        return x

    @torch.jit.export
    def encode(self, x: Tensor, weight: Tensor, lengths: Tensor) -> Tensor:
        return torch.ops.linnet.light_conv(x, weight, lengths, 1)

    @torch.jit.export
    def attend(
        self, query: Tensor, encoder_cache: Tensor, blocks: Tensor, lengths: Tensor
    ) -> Tensor:
        return torch.ops.linnet.source_attention(query, encoder_cache, blocks, lengths, 2)


@pytest.mark.parametrize("frozen", [False, True])
def test_scripted_module_changes_state_in_place(frozen):
    saved = io.BytesIO()
    torch.jit.save(torch.jit.script(StepModule()), saved)
    saved.seek(0)
    module = torch.jit.load(saved).eval()
    if frozen:
        module = torch.jit.freeze(module, preserved_attrs=["encode", "attend"])
    x, weight, layer_state, *indices = step_arguments(6, 32, 4, 7, True)
    state = [layer_state, layer_state * 2]
    want_state = [layer_state.clone(), layer_state * 2]
    with torch.inference_mode():
        for _ in range(3):  # the first calls are profiled, the third runs the optimised graph
            got = module(x, weight, state, *indices)
            want = x
            for one in want_state:
                want = ops.dynamic_conv_step(want, weight, one, *indices)
            assert torch.equal(got, want)
            assert all(map(torch.equal, state, want_state))
        x, weight, lengths = conv_arguments(2, 9, 32, 4, 7, False)
        want = ops.light_conv(x, weight, lengths, 1)
        assert torch.equal(module.encode(x, weight, lengths), want)
        arguments = attention_arguments([5, 9], 32, 4)
        assert torch.equal(module.attend(*arguments), ops.source_attention(*arguments, 2))


LARGE = """
import torch, sys
torch.ops.load_library(sys.argv[1])
sys.path.insert(0, sys.argv[2])
from op_cases import *
torch.set_num_threads(int(sys.argv[3]))
results = []
for dtype in (torch.float32, torch.bfloat16):
    for dynamic, whole, step in (
        (True, torch.ops.linnet.dynamic_conv, torch.ops.linnet.dynamic_conv_step),
        (False, torch.ops.linnet.light_conv, torch.ops.linnet.light_conv_step),
    ):
        results.append(whole(*conv_arguments(3, 70, 520, 8, 31, dynamic, dtype), 15))
        x, weight, state, *indices = step_arguments(40, 520, 8, 31, dynamic, dtype)
        results += [step(x, weight, state, *indices), state]
    results.append(torch.ops.linnet.depthwise_conv(
        *depthwise_arguments(3, 70, 520, 31, dtype), 30, 2))
    x, weight, state, *indices = depthwise_step_arguments(40, 520, 31, 2, dtype)
    results += [torch.ops.linnet.depthwise_conv_step(x, weight, state, *indices), state]
    *inputs, cache, positions, backpointers = self_attention_arguments(40, 520, 70, dtype)
    results += [torch.ops.linnet.self_attention_step(
        *inputs, cache, positions, backpointers, 8, 3), cache]
    results.append(torch.ops.linnet.self_attention(*sequence_arguments(3, 70, 520, dtype), 8))
    results.append(torch.ops.linnet.add_positions(
        numbers(5, 3, 70, 520, dtype=dtype), ints(*range(70)), None, 3.0, 2, 260.0))
    results.append(torch.ops.linnet.source_attention(
        *attention_arguments([70] * 12, 520, 16, dtype), 8))
    projected, state, *indices = ssru_arguments(40, 523, dtype)
    results += [torch.ops.linnet.ssru_step(projected, state, *indices), state]
torch.save([result.double() for result in results], sys.argv[4])
"""


def large_results(library, path, threads: int = 1, **environment: str) -> list[Tensor]:
    """Runs all operators on large inputs in a new process, since both are read at start."""
    here = os.path.dirname(__file__)
    command = [sys.executable, "-c", LARGE, str(library), here, str(threads), str(path)]
    subprocess.run(command, env=os.environ | environment, check=True)
    return torch.load(path)


@pytest.fixture(scope="module")
def results_of_one_thread(library, tmp_path_factory) -> list[Tensor]:
    return large_results(library, tmp_path_factory.mktemp("ops") / "one")


def test_two_threads_give_the_bits_of_one(library, tmp_path, results_of_one_thread):
    got = large_results(library, tmp_path / "two", threads=2)
    assert all(map(torch.equal, got, results_of_one_thread))


@pytest.mark.parametrize("capability", ["default", "avx2", "avx512"])
def test_instruction_sets_agree(library, tmp_path, results_of_one_thread, capability):
    known = ["default", "avx2", "avx512"]
    best = torch.backends.cpu.get_cpu_capability().lower()
    if best not in known or known.index(capability) > known.index(best):
        pytest.skip(f"this processor, or ATEN_CPU_CAPABILITY, has {best} at most")
    got = large_results(library, tmp_path / capability, ATEN_CPU_CAPABILITY=capability)
    for i, (one, other) in enumerate(zip(got, results_of_one_thread, strict=True)):
        # float32 first: one more rounding per product without FMA; bfloat16: the last bit
        tolerance = 8e-6 if i < len(got) // 2 else 2**-7
        torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_uses_two_threads(name):
    """Measures the processor time of threads other than this one."""
    large = {
        "dynamic_conv": (*conv_arguments(4, 100, 512, 8, 31, True), 15),
        "light_conv": (*conv_arguments(4, 100, 512, 8, 31, False), 15),
        "dynamic_conv_step": step_arguments(160, 512, 8, 31, True),
        "light_conv_step": step_arguments(160, 512, 8, 31, False),
        "depthwise_conv": (*depthwise_arguments(8, 100, 512, 31), 15, 1),
        "depthwise_conv_step": depthwise_step_arguments(320, 512, 31, 1),
        "gated_conv_step": gated_step_arguments(40, 512, 8, 31),
        "add_norm": normed_arguments(4000, 512),
        "add_norm_sum": normed_arguments(4000, 512),
        "add_positions": (numbers(1, 4000, 512), ints(*range(4000)), None, 3.0, 2, 256.0),
        "self_attention": (*sequence_arguments(4, 100, 512), 8),
        "self_attention_step": (*self_attention_arguments(60, 512, 60), 8, 1),
        "source_attention": (*attention_arguments([60] * 60, 512, 16), 8),
        "source_attention_weights": (*attention_arguments([60] * 60, 512, 16), 8, -1),
        "ssru_step": ssru_arguments(640, 512),
    }
    shares = {}
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            getattr(ops, name)(*large[name])
            shares[threads] = time_elsewhere(lambda: getattr(ops, name)(*large[name]))
    finally:
        torch.set_num_threads(before)
    # With two threads half of the work runs elsewhere, with one nothing; libgomp's spinning adds to
    # it, so the bound is loose.
    assert shares[1] < 0.1, shares
    assert shares[2] > 0.25, shares


def time_elsewhere(work) -> float:
    """The share of the process' processor time spent by other threads while `work` repeats."""
    import time

    process, thread = time.process_time(), time.thread_time()
    while time.process_time() - process < 0.2:
        work()
    process, thread = time.process_time() - process, time.thread_time() - thread
    return 1 - thread / process


def test_cuda_library_loads_without_a_gpu(cuda_library):
    """A CPU process never loads it, but loading it in an image for both must not fail."""
    torch.ops.load_library(cuda_library)
    for name in set(NAMES) - {"add_positions", "self_attention", "source_attention_weights"}:
        assert torch._C._dispatch_has_kernel_for_dispatch_key(f"linnet::{name}", "CUDA")
