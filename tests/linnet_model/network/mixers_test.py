"""Properties of every mixer: it equals the formula of its paper, its steps equal the whole
sequence, future and padding have no effect, its gradient is right, and scripted equals eager."""

from __future__ import annotations

import pytest
import torch
from mixer_reference import CASES, ENCODERS, MAX, SIDES, WIDTH, Case, whole
from torch import Tensor

from linnet_model.network.convolutions import band_matrix
from linnet_model.network.dropout import Dropout, KeepAll

KEEP = KeepAll()
CLOSE = {"rtol": 1e-5, "atol": 2e-6}  # float32 sums in another order
LENGTHS = torch.tensor([11, 4, 1], dtype=torch.int32)

each_mixer = pytest.mark.parametrize("case", CASES, ids=str)
each_encoder = pytest.mark.parametrize("case", ENCODERS, ids=str)
each_side = pytest.mark.parametrize(
    ("case", "causal"),
    SIDES,
    ids=[f"{case}-{'decoder' if causal else 'encoder'}" for case, causal in SIDES],
)


def scenario(seed: int = 2) -> tuple[Tensor, Tensor]:
    """Returns x [3, 11, d], with large values in the padding, and the mask of valid positions."""
    torch.manual_seed(seed)
    valid = torch.arange(11) < LENGTHS.unsqueeze(1)
    return torch.randn(3, 11, WIDTH).masked_fill(~valid.unsqueeze(-1), 1e3), valid


@each_side
@pytest.mark.parametrize("length", [1, 2, 9])
def test_mixer_equals_formula_of_paper(case: Case, causal: bool, length: int):
    mixer = case.make(causal).double()
    x = torch.randn(2, length, WIDTH, dtype=torch.float64)
    with torch.no_grad():
        y = mixer(x, None, KEEP)
    for i in range(2):
        # 1e-12: float64 sums in another order
        torch.testing.assert_close(y[i], whole(mixer, x[i], causal), rtol=0, atol=1e-12)


@each_encoder
def test_encode_equals_forward(case: Case):
    mixer, (x, valid) = case.make(causal=False), scenario()
    with torch.no_grad():
        trained, served = mixer(x, valid, KEEP), mixer.encode(x, LENGTHS)
    torch.testing.assert_close(served[valid], trained[valid], **CLOSE)


@each_encoder
def test_source_padding_has_no_effect(case: Case):
    mixer, (x, valid) = case.make(causal=False), scenario()
    with torch.no_grad():
        forms = {"training": mixer(x, valid, KEEP), "serving": mixer.encode(x, LENGTHS)}
        for form, y in forms.items():
            for i, length in enumerate(LENGTHS.tolist()):
                alone = mixer(x[i : i + 1, :length], None, KEEP)[0]
                torch.testing.assert_close(
                    y[i, :length], alone, **CLOSE, msg=lambda m, form=form: f"{form}: {m}"
                )


@each_mixer
def test_decoder_ignores_future(case: Case):
    mixer = case.make(causal=True)
    x = torch.randn(2, 11, WIDTH)
    for last in (0, 4, 9):
        changed = x.clone()
        changed[:, last + 1 :] = 50 * torch.randn(2, 10 - last, WIDTH)
        with torch.no_grad():
            before, after = mixer(x, None, KEEP), mixer(changed, None, KEEP)
        torch.testing.assert_close(after[:, : last + 1], before[:, : last + 1], **CLOSE)
        assert not torch.allclose(after[:, last + 1 :], before[:, last + 1 :])


@each_mixer
def test_target_padding_has_no_effect(case: Case):
    mixer, (x, _) = case.make(causal=True), scenario()
    with torch.no_grad():
        together = mixer(x, None, KEEP)
        for i, length in enumerate(LENGTHS.tolist()):
            alone = mixer(x[i : i + 1, :length], None, KEEP)[0]
            torch.testing.assert_close(together[i, :length], alone, **CLOSE)


class Beam:
    """Rows as in a beam search: their backpointers, and the inputs of each hypothesis."""

    def __init__(self, mixer, rows: int, idle: int, seed: int):
        self.mixer, self.idle = mixer, idle
        self.draw = torch.Generator().manual_seed(seed)
        self.state = mixer.new_state(rows, torch.empty(0))
        self.state.normal_()  # state of earlier sequences
        self.backpointers = torch.arange(rows, dtype=torch.int32).unsqueeze(1)
        self.backpointers = self.backpointers.repeat(1, self.state.size(0))
        self.histories: list[list[Tensor]] = [[] for _ in range(rows)]

    def step(self, position: int) -> Tensor:
        """Runs a step with a random input per row -> [R, d]; then each row continues a random
        one."""
        rows = len(self.histories)
        x = torch.randn(rows, WIDTH, generator=self.draw)
        positions = torch.full((rows,), position, dtype=torch.int32)
        backpointers = self.backpointers.clone()
        backpointers[self.idle] = -1
        with torch.no_grad():
            y = self.mixer.step(x, self.state, positions, backpointers.contiguous())
        for row in range(rows):
            self.histories[row] = [*self.histories[row], x[row]]
        return y

    def reorder(self) -> None:
        rows = len(self.histories)
        # The slot of the idle row has no hypothesis to continue.
        live = torch.tensor([row for row in range(rows) if row != self.idle])
        parents = live[torch.randint(len(live), (rows,), generator=self.draw)]
        own = torch.arange(rows, dtype=torch.int32).unsqueeze(1)
        self.backpointers = torch.cat([own, self.backpointers[parents][:, :-1]], dim=1)
        self.histories = [self.histories[p] for p in parents.tolist()]


@each_mixer
def test_steps_of_reordered_beam_equal_forward(case: Case):
    mixer = case.make(causal=True)
    beam = Beam(mixer, rows=5, idle=3, seed=4)
    for position in range(MAX):
        y = beam.step(position)
        for row in (0, 1, 2, 4):
            with torch.no_grad():
                expected = mixer(torch.stack(beam.histories[row]).unsqueeze(0), None, KEEP)
            torch.testing.assert_close(y[row], expected[0, -1], **CLOSE)
        beam.reorder()


def test_full_attention_becomes_window_past_max_positions():
    mixer = Case("self_attention", 0).make(causal=True)
    window = Case("self_attention", MAX).make(causal=True)
    beam = Beam(mixer, rows=2, idle=1, seed=5)
    for position in range(2 * MAX):
        y = beam.step(position)[0]
        with torch.no_grad():
            expected = window(torch.stack(beam.histories[0]).unsqueeze(0), None, KEEP)[0, -1]
        torch.testing.assert_close(y, expected, **CLOSE)


@each_side
def test_gradient_equals_finite_differences(case: Case, causal: bool):
    x = torch.randn(2, 4, WIDTH, dtype=torch.float64, requires_grad=True)
    valid = None if causal else torch.tensor([[True] * 4, [True] * 2 + [False] * 2])
    for attention_dropout in (0.0, 0.1):  # attention with and without an explicit mask
        mixer = case.make(causal, attention_dropout=attention_dropout).double()
        names = [name for name, _ in mixer.named_parameters()]

        def output(x: Tensor, *weights: Tensor, mixer=mixer, names=names) -> Tensor:
            given = dict(zip(names, weights, strict=True))
            y = torch.func.functional_call(mixer, given, (x, valid, KEEP))
            return y if valid is None else y[valid]

        assert torch.autograd.gradcheck(output, (x, *mixer.parameters()), fast_mode=True)


@each_side
def test_weight_dropout_preserves_mean(case: Case, causal: bool):
    """Masks of 0 and 1/(1-p) preserve the mean of taps and of attention weights."""
    if case.mixer == "ssru":
        pytest.skip("it has neither taps nor attention weights")
    mixer = case.make(causal, weight_dropout=0.3, attention_dropout=0.3)
    drop, x = Dropout(seed=1), torch.randn(1, 6, WIDTH)
    drop.begin(0)
    with torch.no_grad():
        kept = mixer(x, None, KEEP)
        dropped = torch.stack([mixer(x, None, drop) for _ in range(400)])
    assert not torch.equal(dropped[0], kept)
    error = dropped.std(dim=0) / 400**0.5
    # 5 standard errors: with 48 numbers, one run in 10^5 exceeds it
    assert bool(((dropped.mean(dim=0) - kept).abs() <= 5 * error + 1e-6).all())


@each_mixer
def test_scripted_equals_eager(case: Case):
    for causal in (False, True) if case in ENCODERS else (True,):
        mixer, (x, valid) = case.make(causal), scenario()
        scripted = torch.jit.script(mixer)
        with torch.no_grad():
            if case in ENCODERS:
                eager = mixer.encode(x, LENGTHS)
                assert torch.equal(scripted.encode(x, LENGTHS)[valid], eager[valid])
            states = [m.new_state(3, x) for m in (mixer, scripted)]
            backpointers = torch.arange(3, dtype=torch.int32).unsqueeze(1)
            backpointers = backpointers.repeat(1, states[0].size(0))
            for t in range(4):
                now = torch.full((3,), t, dtype=torch.int32)
                a, b = (
                    m.step(x[:, t].contiguous(), state, now, backpointers)
                    for m, state in zip((mixer, scripted), states, strict=True)
                )
                assert torch.equal(a, b)


@each_mixer
def test_state_is_bounded_and_has_requested_type(case: Case):
    state = case.make(causal=True).new_state(6, torch.empty(0, dtype=torch.bfloat16))
    if case.mixer == "ssru":
        assert tuple(state.shape) == (2, 6, WIDTH)
        assert state.dtype == torch.float32, "a cell carries the whole prefix"
        return
    attends = case.mixer in ("self_attention", "csan_1d", "csan_2d")
    reach = case.kernel or MAX if attends else (case.kernel - 1) * case.dilation + 1
    assert tuple(state.shape) == ((reach, 6, 2, WIDTH) if attends else (reach, 6, WIDTH))
    assert state.dtype == torch.bfloat16


@each_mixer
def test_step_touches_only_backpointer_columns(case: Case):
    mixer = case.make(causal=True)
    draw = torch.Generator().manual_seed(3)
    whole, short = (mixer.new_state(4, torch.empty(0)).zero_() for _ in range(2))
    slots = torch.arange(4, dtype=torch.int32).unsqueeze(1).repeat(1, whole.size(0))
    for t in range(6):
        x = torch.randn(4, WIDTH, generator=draw)
        now = torch.full((4,), t, dtype=torch.int32)
        columns = min(max(mixer.min_backpointers(), t + 1), whole.size(0))
        short[columns:] = torch.nan
        few = slots[:, :columns].contiguous()
        with torch.no_grad():
            assert torch.equal(
                mixer.step(x, short, now, few), mixer.step(x, whole, now, slots.contiguous())
            )
        assert torch.equal(short[:columns], whole[:columns])
        assert short[columns:].isnan().all()


def test_ssru_keeps_cells_precise_in_bfloat16():
    """A cell that gains less than half of bfloat16's last bit per step still grows."""
    mixer = Case("ssru", 0).make(causal=True).to(torch.bfloat16)
    with torch.no_grad():
        mixer.candidate_gate.weight.zero_()
        mixer.candidate_gate.bias[:WIDTH] = 1.0
        mixer.candidate_gate.bias[WIDTH:] = 6.0  # keeps 0.9975
        x = torch.zeros(1, 400, WIDTH, dtype=torch.bfloat16)
        expected = 1 - torch.sigmoid(torch.tensor(6.0, dtype=torch.float64)) ** 400
        # 2^-8: one rounding of the result, below 1
        torch.testing.assert_close(
            mixer(x, None, KEEP)[0, -1].double(), expected.expand(WIDTH), rtol=0, atol=2**-8
        )
        state, slots = mixer.new_state(1, x), torch.zeros(1, 2, dtype=torch.int32)
        for t in range(400):
            y = mixer.step(x[:, t], state, torch.tensor([t], dtype=torch.int32), slots)
        torch.testing.assert_close(y[0].double(), expected.expand(WIDTH), rtol=0, atol=2**-8)


def test_decoder_window_may_be_even():
    mixer = Case("csan_1d", 4).make(causal=True).double()
    x = torch.randn(1, 9, WIDTH, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(
            mixer(x, None, KEEP)[0], whole(mixer, x[0], True), rtol=0, atol=1e-12
        )


def test_band_matrix_places_taps():
    band = band_matrix(torch.tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]), padding_left=1)
    assert band.tolist() == [[[2.0, 3.0], [4.0, 5.0]]]
