"""linear: its formula, packed and unpacked; properties of packed weights; refusals."""

import os
import subprocess
import sys

import pytest
import torch
from torch import Tensor

ops = torch.ops.linnet

# Full and partial panels of 64 outputs, full and partial groups of 4 inputs.
SIZES = [(1, 2), (3, 8), (31, 66), (32, 48), (64, 64), (130, 250), (512, 1024)]
# Row counts around a tile (6), a block (48, 96), and the number at which threads share rows (16).
ROWS = [1, 2, 5, 6, 7, 13, 15, 16, 48, 49, 97, 200]
ACTIVATIONS = ["none", "relu", "swish", "gelu", "glu"]
KINDS = ["float32", "int8"]


def arguments(rows: int, inputs: int, outputs: int, activation: str = "none", seed: int = 1):
    """x, weight, bias, residual, norm_weight, norm_bias."""
    random = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random)

    width = outputs // 2 if activation == "glu" else outputs
    return (
        normal(rows, inputs),
        normal(outputs, inputs) / inputs**0.5,
        normal(outputs),
        (normal(rows, width), normal(width), normal(width)),
    )


def formula(x, weight, bias, activation, residual=None, norm_weight=None, norm_bias=None) -> Tensor:
    """The formula in double."""
    y = x.double() @ weight.double().T
    if bias is not None:
        y = y + bias.double()
    if activation == "relu":
        y = y.clamp(min=0)
    elif activation == "swish":
        y = y / (1 + torch.exp(-y))
    elif activation == "gelu":
        y = y * 0.5 * (1 + torch.erf(y / 2**0.5))
    elif activation == "glu":
        first, gate = y.chunk(2, dim=-1)
        y = first / (1 + torch.exp(-gate))
    if residual is not None:
        y = y + residual.double()
    if norm_weight is not None:
        centred = y - y.mean(dim=-1, keepdim=True)
        y = centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
        y = y * norm_weight.double() + norm_bias.double()
    return y


HALVES = [torch.bfloat16, torch.float16]
BFLOAT16 = pytest.param("bfloat16", marks=pytest.mark.bfloat16_gemm)


def check_linear_in_float32(dtype: torch.dtype, device: str) -> None:
    """Logits are not rounded to half precision: factors are exact, and float32 keeps 24 bits of
    sums of 512 terms, of size 12."""
    x, weight, bias, _ = arguments(7, 512, 250)
    x, weight = (12 * x).to(dtype), weight.to(dtype)
    wanted = formula(x, weight, bias, "none")
    got = ops.linear_in_float32(x.to(device), weight.to(device), bias.to(device))
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.cpu().double(), wanted, atol=1e-4, rtol=1e-5)
    without = ops.linear_in_float32(x.to(device), weight.to(device), None)
    wanted = formula(x, weight, None, "none")
    torch.testing.assert_close(without.cpu().double(), wanted, atol=1e-4, rtol=1e-5)
    rounded = ops.linear(x, weight, bias.to(dtype)) if device == "cpu" else got.to(dtype)
    assert (rounded.cpu().double() - wanted).abs().max() > 1e-2, "as half precision would have it"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_does_not_round_half_precision_logits(dtype: torch.dtype):
    if dtype in HALVES:
        return check_linear_in_float32(dtype, "cpu")
    x, weight, bias, _ = arguments(3, 31, 66)
    assert torch.equal(ops.linear_in_float32(x, weight, bias), ops.linear(x, weight, bias))
    return None


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_does_not_round_half_precision_logits_on_a_gpu(dtype: torch.dtype, cuda):
    check_linear_in_float32(dtype, "cuda")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": torch.zeros(2, 3, 4)}, r"x has shape \[2, 3, 4\], needs 2 dimensions \[R, I\]"),
        ({"weight": torch.zeros(5, 3)}, r"x has shape \[2, 4\], dimension 1 \(inputs\) must be 3"),
        ({"bias": torch.zeros(5, dtype=torch.bfloat16)}, "bias is BFloat16, it must be float32"),
        ({"bias": torch.zeros(4)}, r"bias has shape \[4\], dimension 0 \(outputs\) must be 5"),
    ],
)
def test_linear_in_float32_refuses(change, message):
    given = {"x": torch.zeros(2, 4), "weight": torch.zeros(5, 4), "bias": torch.zeros(5)}
    with pytest.raises(RuntimeError, match=message):
        ops.linear_in_float32(*(given | change).values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("inputs", "outputs"), SIZES)
def test_taken_outputs_give_the_same_bits(inputs: int, outputs: int, kind: str):
    x, weight, bias, _ = arguments(7, inputs, outputs)
    packed = ops.pack_linear(weight, kind)
    whole = ops.linear(x, packed, bias)
    random = torch.Generator().manual_seed(outputs)
    for count in {1, min(outputs, 65), outputs}:
        taken = torch.randperm(outputs, generator=random)[:count]
        few = ops.take_outputs(packed, taken.to(torch.int32))
        assert few.shape == (count, inputs)
        assert torch.equal(ops.linear(x, few, bias[taken]), whole[:, taken])


def test_refuses_outputs_that_cannot_be_taken():
    weight = torch.randn(5, 8)
    packed = ops.pack_linear(weight, "float32")
    for outputs in ([5], [0, -1]):
        with pytest.raises(RuntimeError, match=r"there is no output -?\d, weight has 5"):
            ops.take_outputs(packed, torch.tensor(outputs, dtype=torch.int32))
    with pytest.raises(RuntimeError, match="outputs is empty"):
        ops.take_outputs(packed, torch.zeros(0, dtype=torch.int32))
    with pytest.raises(RuntimeError, match="must have been packed by pack_linear"):
        ops.take_outputs(weight, torch.zeros(1, dtype=torch.int32))


@pytest.mark.parametrize(("inputs", "outputs"), SIZES)
def test_unpacked_outputs_are_the_weights(inputs: int, outputs: int):
    _, weight, _, _ = arguments(7, inputs, outputs)
    taken = torch.randint(outputs, (3, 5))
    exact = ops.unpack_outputs(ops.pack_linear(weight, "float32"), taken)
    assert torch.equal(exact, weight[taken])
    rounded = ops.unpack_outputs(ops.pack_linear(weight, "int8"), taken)
    assert rounded.shape == (3, 5, inputs)
    # within half a step of 127 to the largest magnitude of each output
    steps = weight[taken].abs().amax(dim=-1, keepdim=True) / 127
    assert bool(((rounded - weight[taken]).abs() <= 0.5001 * steps).all())


def test_refuses_outputs_that_cannot_be_unpacked():
    weight = torch.randn(5, 8)
    packed = ops.pack_linear(weight, "int8")
    with pytest.raises(RuntimeError, match="there is no output 5, weight has 5"):
        ops.unpack_outputs(packed, torch.tensor([0, 5]))
    with pytest.raises(RuntimeError, match="outputs is Int, it must be int64"):
        ops.unpack_outputs(packed, torch.zeros(1, dtype=torch.int32))
    with pytest.raises(RuntimeError, match="must have been packed by pack_linear"):
        ops.unpack_outputs(weight, torch.zeros(1, dtype=torch.int64))


def quantized(x: Tensor) -> Tensor:
    """Rows quantised to int8: one scale each, 127 steps to the largest magnitude."""
    scale = x.abs().amax(dim=-1, keepdim=True).double() / 127
    return torch.where(scale > 0, (x.double() / scale).round() * scale, 0.0)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("inputs", "outputs"), SIZES, ids=str)
@pytest.mark.parametrize("kind", ["plain", "float32"])
def test_equals_formula(kind, inputs, outputs, activation):
    for rows in (1, 7, 49):
        x, weight, bias, behind = arguments(rows, inputs, outputs, activation)
        given = weight if kind == "plain" else ops.pack_linear(weight, kind)
        for rest in ((), behind[:1], behind):
            if len(rest) == 3 and behind[1].numel() < 4:
                continue  # the norm of two numbers is a step function, which amplifies rounding
            for one_bias in (None, bias):
                got = ops.linear(x, given, one_bias, activation, *rest)
                want = formula(x, weight, one_bias, activation, *rest)
                # 2e-5: sums of up to 512 products in float32, and a norm that may scale them up.
                torch.testing.assert_close(got.double(), want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("kind", ["plain", "float32"])
def test_adds_epsilon_to_variance_of_norm(kind: str):
    x, weight, bias, behind = arguments(3, 31, 66)
    given = weight if kind == "plain" else ops.pack_linear(weight, kind)
    for epsilon in (1e-6, 0.5):
        got = ops.linear(x, given, bias, "none", *behind, epsilon)
        _, scale, shift = behind
        y = formula(x, weight, bias, "none", behind[0])
        norm = torch.nn.functional.layer_norm(y, (66,), scale.double(), shift.double(), epsilon)
        torch.testing.assert_close(got.double(), norm, rtol=2e-5, atol=2e-5)
    with pytest.raises(RuntimeError, match="linear: epsilon is -1, must be above 0"):
        ops.linear(x, given, bias, "none", *behind, -1.0)


@pytest.mark.parametrize(("inputs", "outputs"), SIZES, ids=str)
def test_int8_is_the_exact_product_of_quantised_factors(inputs, outputs):
    for rows in (1, 7, 49):
        x, weight, bias, _ = arguments(rows, inputs, outputs)
        got = ops.linear(x, ops.pack_linear(weight, "int8"), bias)
        # A value half way between two steps may round either way, which changes one product by a
        # step. Few such values are in a sum.
        want = formula(quantized(x), quantized(weight), bias, "none")
        step = x.abs().amax(dim=-1, keepdim=True) / 127 * weight.abs().amax(dim=-1)
        assert ((got - want).abs() <= 1.01 * step + 1e-5).all()
        # Nearly all are equal up to float32's last bits.
        close = torch.isclose(got.double(), want, rtol=1e-5, atol=1e-5)
        assert close.double().mean() > 0.95


def test_int8_error_does_not_depend_on_row_size():
    x, weight, _, _ = arguments(64, 512, 1024)
    x = x * torch.logspace(-6, 6, 64).unsqueeze(1)
    got = ops.linear(x, ops.pack_linear(weight, "int8"), None).double()
    want = formula(x, weight, None, "none")
    relative = (got - want).norm(dim=-1) / want.norm(dim=-1)
    assert (
        relative.max() < 0.02
    )  # steps of 1/127 of a row's largest value, which is 3 or 4 deviations


@pytest.mark.parametrize("activation", ["none", "glu"])
@pytest.mark.parametrize("kind", KINDS)
def test_is_batch_invariant(kind, activation):
    inputs, outputs = 130, 250
    x, weight, bias, behind = arguments(200, inputs, outputs, activation)
    packed = ops.pack_linear(weight, kind)

    def rows(chosen: Tensor) -> Tensor:
        rest = (behind[0][chosen], *behind[1:])
        return ops.linear(x[chosen], packed, bias, activation, *rest)

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = torch.cat([rows(torch.tensor([r])) for r in range(200)])
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            for many in ROWS:
                chosen = torch.randperm(200, generator=torch.Generator().manual_seed(many))[:many]
                assert torch.equal(rows(chosen), alone[chosen]), (many, count)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("kind", KINDS)
def test_nan_affects_only_its_row(kind):
    x, weight, bias, behind = arguments(9, 32, 48)
    packed = ops.pack_linear(weight, kind)
    want = ops.linear(x, packed, bias, "relu", *behind)
    for bad in (float("nan"), float("inf")):
        x[4, 31] = bad
        got = ops.linear(x, packed, bias, "none", *behind)
        assert got[4].isnan().all()
        others = [r for r in range(9) if r != 4]
        got = ops.linear(x, packed, bias, "relu", *behind)
        assert torch.equal(got[others], want[others])


def test_int8_of_an_infinite_row_is_nan():
    x, weight, bias, _ = arguments(9, 32, 48)
    packed = ops.pack_linear(weight, "int8")
    for bad in (float("inf"), -float("inf")):
        for at in (0, 31):
            broken = x.clone()
            broken[4, at] = bad
            assert ops.linear(broken, packed, bias)[4].isnan().all()


def test_int8_refuses_a_weight_that_is_not_finite():
    for bad in (float("nan"), float("inf"), -float("inf")):
        weight = torch.ones(48, 32)
        weight[40, 7] = bad
        with pytest.raises(RuntimeError, match="weight has a value that is not finite"):
            ops.pack_linear(weight, "int8")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_zeros_and_tiny_values_give_the_bias(kind):
    _, weight, bias, _ = arguments(1, 32, 48)
    for value in (0.0, 1e-38, -1e-42):
        x = torch.full((3, 32), value)
        got = ops.linear(x, ops.pack_linear(weight, kind), bias)
        torch.testing.assert_close(got, bias.expand(3, 48), rtol=0, atol=1e-30)


@pytest.mark.parametrize("kind", KINDS)
def test_accepts_leading_dimensions_and_strides(kind):
    x, weight, bias, _ = arguments(24, 32, 48)
    packed = ops.pack_linear(weight.T.contiguous().T, kind)
    want = ops.linear(x, ops.pack_linear(weight, kind), bias)
    assert torch.equal(ops.linear(x.view(2, 3, 4, 32), packed, bias).view(24, 48), want)
    assert torch.equal(ops.linear(x.T.contiguous().T, packed, bias), want)
    assert torch.equal(ops.linear(x[5], packed, bias), want[5])
    assert ops.linear(x[:0], packed, bias).shape == (0, 48)


@pytest.mark.bfloat16_gemm
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_packed_bfloat16_equals_torch(activation):
    x, weight, bias, behind = arguments(13, 64, 96, activation)
    x, weight, bias = x.bfloat16(), weight.bfloat16(), bias.bfloat16()
    behind = tuple(tensor.bfloat16() for tensor in behind)
    got = ops.linear(x, ops.pack_linear(weight, "bfloat16"), bias, activation, *behind)
    want = ops.linear(x, weight, bias, activation, *behind)
    # 4e-2: bfloat16 keeps 8 bits, rounded after each operator, of values up to 4.
    torch.testing.assert_close(got, want, rtol=2e-2, atol=4e-2)


def test_unpacked_weights_have_gradients():
    x, weight, bias, behind = arguments(3, 4, 6)
    inputs = [tensor.double().requires_grad_() for tensor in (x, weight, bias, *behind)]

    def call(x, weight, bias, *rest):
        return ops.linear(
            x.float(), weight.float(), bias.float(), "swish", *[r.float() for r in rest]
        )

    # Computed in float32, so differences of 1e-2 are well above its rounding.
    assert torch.autograd.gradcheck(call, inputs, eps=1e-2, atol=2e-2, rtol=2e-2)
    with pytest.raises(RuntimeError, match="packed weights have no gradients"):
        ops.linear(x.requires_grad_(), ops.pack_linear(weight, "float32"), bias)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a | {"x": torch.randn(5, 9)}, "dimension 1 .inputs. must be 8"),
        (lambda a: a | {"x": torch.tensor(1.0)}, "x has no dimensions"),
        (lambda a: a | {"x": torch.randn(5, 8).bfloat16()}, "weight is"),
        (lambda a: a | {"weight": torch.randn(6)}, "weight"),
        (lambda a: a | {"bias": torch.randn(5)}, "bias"),
        (lambda a: a | {"activation": "tanh"}, 'no activation "tanh": there are none, relu'),
        (lambda a: a | {"residual": torch.randn(5, 5)}, "residual"),
        (lambda a: a | {"residual": torch.randn(4, 6)}, "residual"),
        (
            lambda a: a | {"norm_weight": torch.randn(6)},
            "norm_weight and norm_bias must be given together",
        ),
        (
            lambda a: a | {"norm_weight": torch.randn(7), "norm_bias": torch.randn(7)},
            "norm_weight",
        ),
        (
            lambda a: a | {"weight": torch.randn(7, 8), "bias": None, "activation": "glu"},
            "7 outputs, glu needs an even number",
        ),
    ],
)
def test_linear_refuses_wrong_arguments(change, message):
    given = {"x": torch.randn(5, 8), "weight": torch.randn(6, 8), "bias": torch.randn(6)}
    with pytest.raises(RuntimeError, match=message):
        ops.linear(**change(given))


@pytest.mark.parametrize(
    ("weight", "kind", "message"),
    [
        (torch.randn(6, 8), "int4", 'no type "int4": there are float32, bfloat16 and int8'),
        (torch.randn(6, 8).double(), "int8", "Double, it must be Float, BFloat16 or Half"),
        (torch.ones(6, 8, dtype=torch.int8), "int8", "Char, it must be .*, or Char with scales"),
        (torch.randn(6), "int8", "weight"),
        (torch.randn(0, 8), "int8", "no outputs"),
        (torch.randn(8, 0), "float32", "0 inputs, it must have between 1 and 65536"),
        (torch.randn(1, 65537), "int8", "65537 inputs"),
    ],
)
def test_pack_linear_refuses(weight, kind, message):
    with pytest.raises(RuntimeError, match=message):
        ops.pack_linear(weight, kind)


def test_bfloat16_is_packed_where_the_processor_has_instructions_for_it():
    """With AVX-512 alone oneDNN would emulate them."""
    instructions = ("avx512_bf16", "amx_bf16", "avx_ne_convert")
    weight = torch.randn(6, 8)
    if any(torch.cpu.get_capabilities()[name] for name in instructions):
        assert ops.pack_linear(weight, "bfloat16").shape == weight.shape
    else:
        with pytest.raises(RuntimeError, match="bfloat16, pack float32 or int8"):
            ops.pack_linear(weight, "bfloat16")


@pytest.mark.parametrize("kind", ["float32", "int8", BFLOAT16])
@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float16, torch.float32])
def test_pack_linear_converts_stored_weights(stored, kind):
    torch.manual_seed(20)
    compute = torch.bfloat16 if kind == "bfloat16" else torch.float32
    weight = torch.randn(150, 70).to(stored)  # three panels, the last one not full
    x = torch.randn(4, 70).to(compute)
    got = ops.linear(x, ops.pack_linear(weight, kind), None)
    want = ops.linear(x, ops.pack_linear(weight.to(compute), kind), None)
    assert got.dtype == compute
    assert torch.equal(got, want)


@pytest.mark.parametrize(
    ("weight", "scales", "message"),
    [
        (torch.randn(6, 8), torch.ones(6), "weight is Float, with scales it must be Char"),
        (torch.ones(6, 8).char(), torch.ones(6).double(), "scales is Double, it must be Float"),
        (
            torch.ones(6, 8).char(),
            torch.ones(5),
            r"scales has shape \[5\], dimension 0 \(outputs\) must be 6",
        ),
        (torch.ones(6, 8).char(), torch.ones(6, 1), "scales"),
    ],
)
def test_pack_linear_refuses_scales(weight, scales, message):
    with pytest.raises(RuntimeError, match=message):
        ops.pack_linear(weight, "int8", scales)


@pytest.mark.parametrize(("inputs", "outputs"), SIZES)
def test_quantized_weights_are_within_half_a_step(inputs: int, outputs: int):
    _, weight, _, _ = arguments(7, inputs, outputs)
    values, scales = ops.quantize_linear(weight)
    assert values.dtype == torch.int8
    assert int(values.min()) >= -127
    error = (values.double() * scales.double().unsqueeze(1) - weight).abs()
    assert bool((error <= 0.5001 * weight.abs().amax(1, keepdim=True) / 127).all())


def test_quantizing_again_changes_nothing():
    torch.manual_seed(21)
    values, scales = ops.quantize_linear(torch.randn(150, 70))
    again, same = ops.quantize_linear(values.float() * scales.unsqueeze(1))
    assert torch.equal(again, values)
    torch.testing.assert_close(same, scales, rtol=2e-7, atol=0)  # one rounding of float32


def test_quantizing_keeps_multiples_of_a_step():
    """The matrix has one step, so most of its outputs use less than 127 of them."""
    torch.manual_seed(22)
    integers = torch.randint(-90, 91, (150, 70))
    values, scales = ops.quantize_linear(integers * 0.037)
    torch.testing.assert_close(values * scales.unsqueeze(1), integers * 0.037, rtol=3e-7, atol=0)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (torch.randn(6), "weight"),
        (torch.ones(6, 8).char(), "Char, it must be of a floating point type"),
        (torch.tensor([[1.0, float("nan")]]), "not finite"),
    ],
)
def test_quantize_linear_refuses(weight, message):
    with pytest.raises(RuntimeError, match=message):
        ops.quantize_linear(weight)


@pytest.mark.parametrize("kind", ["float32", "int8", BFLOAT16])
def test_packs_quantized_weights_by_their_scales(kind):
    torch.manual_seed(23)
    compute = torch.bfloat16 if kind == "bfloat16" else torch.float32
    weight = torch.randn(150, 70)  # three panels, the last one not full
    x = torch.randn(4, 70).to(compute)
    values, scales = ops.quantize_linear(weight)
    got = ops.linear(x, ops.pack_linear(values, kind, scales), None)
    # int8 rounds the weight to the same integers; other types have what the integers stand for
    given = weight if kind == "int8" else (values * scales.unsqueeze(1)).to(compute)
    assert torch.equal(got, ops.linear(x, ops.pack_linear(given, kind), None))


def test_packed_weight_is_opaque():
    packed = ops.pack_linear(torch.randn(6, 8), "int8")
    assert packed.shape == (6, 8)
    with pytest.raises(RuntimeError, match="packed already"):
        ops.pack_linear(packed, "int8")
    with pytest.raises(RuntimeError):
        packed + 1


LONG = """
import sys, torch
torch.ops.load_library(sys.argv[1])
ops = torch.ops.linnet
random = torch.Generator().manual_seed(3)
x = torch.randn(23, 130, generator=random)
w = torch.randn(250, 130, generator=random)
print(torch.backends.cpu.get_cpu_capability())
y = ops.linear(x, ops.pack_linear(w, "int8"), None)
f = ops.linear(x, ops.pack_linear(w, "float32"), None)
torch.testing.assert_close(f.double(), x.double() @ w.double().T, rtol=1e-5, atol=1e-4)
torch.save(y, sys.argv[2])
"""


def test_int8_agrees_on_every_instruction_set(library, tmp_path):
    """Sums are exact on AVX512-VNNI, AVX2 and the baseline; only the scales are rounded."""
    results = []
    every = ["default", "avx2", "avx512"]
    highest = torch.backends.cpu.get_cpu_capability().lower()  # of this processor
    for capability in every[: every.index(highest) + 1]:
        file = tmp_path / f"{capability}.pt"
        subprocess.run(
            [sys.executable, "-c", LONG, str(library), str(file)],
            env={**os.environ, "ATEN_CPU_CAPABILITY": capability},
            check=True,
        )
        results.append(torch.load(file))
    for other in results[1:]:
        # 1e-6: the scales are applied with or without FMA.
        torch.testing.assert_close(results[0], other, rtol=1e-6, atol=1e-5)
