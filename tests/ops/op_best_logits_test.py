"""best_logits compared with sorting and log-sums of whole rows."""

import os
import subprocess
import sys

import pytest
import torch
from torch import Tensor

ops = torch.ops.linnet

INPUTS = 36
# Sizes around a panel (64) and a piece (512), and several pieces.
TOKENS = [1, 5, 64, 511, 512, 513, 2000]
KINDS = ["plain", "float32", "int8", pytest.param("bfloat16", marks=pytest.mark.bfloat16_gemm)]


def arguments(kind: str, rows: int, tokens: int, seed: int = 1):
    """x, weight packed as `kind`, bias, counts, also, temperatures."""
    random = torch.Generator().manual_seed(seed)
    dtype = torch.bfloat16 if kind == "bfloat16" else torch.float32
    x = torch.randn(rows, INPUTS, generator=random).to(dtype)
    weight = torch.randn(tokens, INPUTS, generator=random).to(dtype)
    bias = torch.randn(tokens, generator=random).to(dtype)
    counts = torch.randint(0, min(tokens, 40) + 1, (rows,), generator=random, dtype=torch.int32)
    also = torch.randint(-1, tokens, (rows,), generator=random, dtype=torch.int32)
    temperatures = 0.2 + 3 * torch.rand(rows, generator=random)
    if kind != "plain":
        weight = ops.pack_linear(weight, kind)
    return x, weight, bias, counts, also, temperatures


def check_rows(got, logits: Tensor, counts: Tensor, also: Tensor) -> None:
    best, tokens, _ = got
    assert best.shape == tokens.shape == (logits.size(0), int(counts.max()) + 1)
    for r, row in enumerate(logits):
        n, token = int(counts[r]), int(also[r])
        values, order = row.sort(descending=True, stable=True)
        assert torch.equal(best[r, :n], values[:n])
        assert torch.equal(tokens[r, :n].long(), order[:n])
        assert tokens[r, n] == token
        assert best[r, n] == (row[token] if token >= 0 else -torch.inf)
        assert (tokens[r, n + 1 :] == -1).all()
        assert (best[r, n + 1 :] == -torch.inf).all()


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("kind", KINDS)
def test_equals_sort_of_linear(kind, tokens):
    for rows in (1, 2, 7, 100):
        x, weight, bias, counts, also, temperatures = arguments(kind, rows, tokens)
        got = ops.best_logits(x, weight, bias, counts, also, temperatures)
        logits = ops.linear(x, weight, bias).float()
        check_rows(got, logits, counts, also)
        want = (logits.double() / temperatures.double().unsqueeze(1)).logsumexp(dim=-1)
        # float32 keeps 24 bits of sums of size up to 100
        torch.testing.assert_close(got[2].double(), want, rtol=1e-6, atol=1e-5)


def test_breaks_ties_by_lower_token_across_pieces():
    tokens = 1500
    x = torch.ones(3, 1)
    weight = torch.zeros(tokens, 1)
    weight[[3, 700, 701, 1400]] = 1.0
    weight[::2] *= -0.0  # -0 is 0
    counts = torch.tensor([2, 4, 9], dtype=torch.int32)
    also = torch.full((3,), -1, dtype=torch.int32)
    for packed in (weight, ops.pack_linear(weight, "float32"), ops.pack_linear(weight, "int8")):
        got = ops.best_logits(x, packed, None, counts, also, torch.ones(3))
        check_rows(got, (x @ weight.T).abs(), counts, also)


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_is_batch_invariant(kind):
    x, weight, bias, counts, also, temperatures = arguments(kind, 130, 1300)
    threads = torch.get_num_threads()
    whole = ops.best_logits(x, weight, bias, counts, also, temperatures)
    try:
        for rows in (1, 2, 5, 97):
            torch.set_num_threads(rows % 3 + 1)
            some = slice(11, 11 + rows)
            more = counts[some] + torch.randint(0, 20, (rows,), dtype=torch.int32)
            got = ops.best_logits(x[some], weight, bias, more, also[some], temperatures[some])
            assert torch.equal(got[2], whole[2][some])
            for r in range(rows):
                n = int(counts[11 + r])
                assert torch.equal(got[0][r, :n], whole[0][11 + r, :n])
                assert torch.equal(got[1][r, :n], whole[1][11 + r, :n])
    finally:
        torch.set_num_threads(threads)


def test_nan_and_infinity_affect_only_their_row():
    tokens = 1100
    ones = torch.ones(4, dtype=torch.int32)
    for place in (0, 511, 512, 1099):
        weight = torch.randn(tokens, 2, generator=torch.Generator().manual_seed(1))
        weight[place, 1] = torch.inf
        x = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, -1.0], [1.0, 0.5]])
        x[0, 1] = 0  # 0 times infinity is NaN
        got = ops.best_logits(x, weight, None, ones, -ones, torch.ones(4))
        assert got[2][:2].isnan().all()
        assert got[2][2].isfinite()  # -infinity is an impossible token
        assert got[2][3].isnan()
    nothing = torch.full((tokens,), -torch.inf)
    got = ops.best_logits(
        x[2:3], torch.zeros(tokens, 2), nothing, ones[:1], -ones[:1], torch.ones(1)
    )
    assert got[2].isnan().all()
    assert (got[1] == -1).all()


def test_accepts_no_rows():
    empty = torch.zeros(0, dtype=torch.int32)
    logits, tokens, normalizers = ops.best_logits(
        torch.zeros(0, 8),
        ops.pack_linear(torch.ones(9, 8), "int8"),
        None,
        empty,
        empty,
        torch.zeros(0),
    )
    assert logits.shape == tokens.shape == (0, 1)
    assert normalizers.shape == (0,)


@pytest.mark.parametrize(
    ("index", "value", "message"),
    [
        (0, torch.zeros(2, 7), r"dimension 1 \(inputs\) must be 36"),
        (0, torch.zeros(2, 3, INPUTS), r"\[R, I\]"),
        (2, torch.zeros(3), "bias"),
        (3, torch.tensor([0, 101], dtype=torch.int32), "counts.1. is 101"),
        (3, torch.tensor([0, -1], dtype=torch.int32), "counts.1. is -1"),
        (3, torch.tensor([0, 1, 1], dtype=torch.int32), r"dimension 0 \(R\) must be 2"),
        (4, torch.tensor([100, 0], dtype=torch.int32), "also.0. is 100"),
        (4, torch.tensor([0, 0]), "also"),
        (5, torch.tensor([1.0, 0.0]), "temperatures.1. is 0"),
        (5, torch.ones(2, dtype=torch.bfloat16), "it must be float32"),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "float32"])
def test_refuses_wrong_arguments(kind, index, value, message):
    given = list(arguments(kind, 2, 100))
    given[index] = value
    with pytest.raises(RuntimeError, match=message):
        ops.best_logits(*given)


@pytest.mark.parametrize("capability", ["default", "avx2"])
def test_properties_hold_on_lower_instruction_sets(capability):
    properties = (
        "float32 and equals_sort and (513 or 2000)"
        " or breaks_ties or nan_and_infinity or batch_invariant"
    )
    pytest_command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command = [*pytest_command, __file__, "-k", properties]
    environment = os.environ | {"ATEN_CPU_CAPABILITY": capability}
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
    assert "6 passed" in run.stdout
