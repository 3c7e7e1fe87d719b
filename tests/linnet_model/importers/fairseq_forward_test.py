"""Tests that imported models compute the numbers of fairseq, for all checkpoint formats."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

import fairseq_oracle as oracle
import tiny_marian
import tiny_summarisers

from linnet_model.importers.fairseq.checkpoint import read_checkpoint
from linnet_model.importers.fairseq.import_fairseq import read_model
from linnet_model.network.dropout import KeepAll
from linnet_model.network.encoder_decoder import EOS, PAD, EncoderDecoder, forced_logits

# Float32 sums in another order; fairseq's own paths differ by up to 2.5e-5.
ENCODER, LOGITS = 2e-5, 1e-4


@pytest.fixture(scope="module", params=oracle.CHECKPOINTS, ids="-".join)
def imported(request) -> tuple[str, EncoderDecoder]:
    name, kind = request.param
    return name, read_model(oracle.checkpoint(name, kind)).model


def padded(rows: list[np.ndarray]) -> tuple[Tensor, Tensor]:
    """Returns sentences [B, T], padded at the end, and their lengths [B]."""
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.int32)
    ids = torch.full((len(rows), int(lengths.max())), PAD, dtype=torch.int64)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.from_numpy(row)
    return ids, lengths


def assert_close(found: Tensor, expected: np.ndarray, tolerance: float) -> None:
    torch.testing.assert_close(found, torch.from_numpy(expected), rtol=0, atol=tolerance)


@torch.no_grad()
def test_encoder_equals_fairseq(imported):
    name, model = imported
    arrays = oracle.forward(name)
    source, lengths = padded(arrays["source"])
    together, _ = model.encode_whole(source, lengths, KeepAll())
    for row, ids, expected in zip(together, arrays["source"], arrays["encoder_out"], strict=True):
        assert_close(row[: len(ids)], expected, ENCODER)
        alone, _ = model.encode_whole(
            torch.from_numpy(ids).long().unsqueeze(0), torch.tensor([len(ids)]), KeepAll()
        )
        assert_close(alone[0], expected, ENCODER)


@torch.no_grad()
def test_forced_logits_equal_fairseq(imported):
    name, model = imported
    arrays = oracle.forward(name)
    source, lengths = padded(arrays["source"])
    target, _ = padded(arrays["target"])
    together = forced_logits(model, source, lengths, target)
    for row, ids, expected, scores in zip(
        together,
        arrays["target"],
        arrays["forced_logits"],
        arrays["forced_target_log_probs"],
        strict=True,
    ):
        row = row[: len(ids)]
        assert_close(row, expected, LOGITS)
        chosen = row.log_softmax(-1).gather(1, torch.from_numpy(ids).long().unsqueeze(1))
        assert_close(chosen.squeeze(1), scores, LOGITS)


@torch.no_grad()
def test_step_log_probabilities_equal_fairseq(imported):
    """Runs all sentences as one batch of the serving path, one row and one cache block each."""
    name, model = imported
    arrays = oracle.forward(name)
    source, lengths = padded(arrays["source"])
    target, target_lengths = padded(arrays["target"])
    rows = len(lengths)
    memory = [layer.contiguous() for layer in model.encode(source, lengths)]
    state = model.new_state(rows)
    blocks = torch.arange(rows, dtype=torch.int32).unsqueeze(1)
    reach = max(ring.size(0) for ring in state)
    backpointers = (
        torch.arange(rows, dtype=torch.int32).unsqueeze(1).expand(rows, reach).contiguous()
    )
    previous = torch.full((rows,), EOS)
    for step in range(target.size(1)):
        positions = torch.full((rows,), step, dtype=torch.int32)
        logits = model.step(previous, positions, backpointers, blocks, lengths, memory, state)
        for row in torch.nonzero(target_lengths > step).flatten().tolist():
            assert_close(
                logits[row].log_softmax(-1),
                arrays["incremental_log_probs"][row][step],
                LOGITS,
            )
        previous = target[:, step]


@torch.no_grad()
@pytest.mark.parametrize("pre_norm", [False, True], ids=["bart", "mbart"])
def test_norm_of_embeddings_equals_transformers(tmp_path: Path, pre_norm: bool):
    """fairseq's layernorm_embedding, of BART and mBART: their weights under fairseq's names."""
    hf = tiny_marian.transformers_quietly()
    sizes = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "vocab_size": 40}
    sizes |= {f"{side}_ffn_dim": 24 for side in ("encoder", "decoder")}
    sizes |= {f"{side}_attention_heads": 2 for side in ("encoder", "decoder")}
    make, make_config = (
        (hf.MBartForConditionalGeneration, hf.MBartConfig)
        if pre_norm
        else (hf.BartForConditionalGeneration, hf.BartConfig)
    )
    theirs = make(make_config(**sizes, max_position_embeddings=30, scale_embedding=True)).eval()
    tiny_summarisers.randomize(theirs, 1, 0.0)
    theirs.final_logits_bias.zero_()
    weights = {
        name.removeprefix("model."): weight
        for name, weight in theirs.state_dict().items()
        if name.startswith(("model.encoder", "model.decoder"))
    }
    options: dict = {"arch": "transformer", "share_all_embeddings": True}
    options |= {"activation_fn": "gelu", "layernorm_embedding": True}
    for side in ("encoder", "decoder"):
        options |= {f"{side}_attention_heads": 2, f"{side}_learned_pos": True}
        options |= {f"{side}_normalize_before": pre_norm}
    file = tmp_path / "checkpoint.pt"
    torch.save({"args": argparse.Namespace(**options), "model": weights}, file)
    model = read_model(file).model
    source = torch.randint(4, 40, (2, 9), generator=torch.Generator().manual_seed(1))
    target = source.flip(0, 1)
    previous = torch.cat([torch.full((2, 1), EOS), target[:, :-1]], dim=1)
    expected = theirs(input_ids=source, decoder_input_ids=previous).logits
    assert expected.std() > 0.5
    found = forced_logits(model, source, torch.tensor([9, 9], dtype=torch.int32), target)
    assert_close(found, expected.numpy(), LOGITS)


@torch.no_grad()
def test_taps_without_a_softmax_equal_fairseq(tmp_path: Path):
    """A model whose taps went through the softmax before is, without it, the same model."""
    name = "light-noglu-prenorm-untied"
    read = read_checkpoint(oracle.checkpoint(name))
    taps = [key for key in read.weights if key.endswith("conv.weight")]
    assert len(taps) > 2
    for key in taps:
        read.weights[key] = read.weights[key].softmax(-1)
    file = tmp_path / "checkpoint.pt"
    args = argparse.Namespace(**(read.options | {"weight_softmax": False}))
    torch.save({"args": args, "model": read.weights}, file)
    model = read_model(file).model
    assert not read_model(file).facts.config.weight_softmax
    arrays = oracle.forward(name)
    source, lengths = padded(arrays["source"])
    target, _ = padded(arrays["target"])
    together = forced_logits(model, source, lengths, target)
    for row, ids, expected in zip(together, arrays["target"], arrays["forced_logits"], strict=True):
        assert_close(row[: len(ids)], expected, LOGITS)
