"""Kernels that a decoder step and an encoder call launch on a GPU, counted on tensors without data.

A fake tensor says that it lies on a GPU, so operators choose what they do there, and nothing runs.
Every operator that is not a view or an allocation is one launch, the operators of linnet as well
(source_attention.cu and its neighbours launch one kernel each). The projection to the vocabulary
and the search follow: beam_inputs, the gemm, beam_step's two. An engine launches both as one graph
each (recorded_work.h), an encoder call after four copies of its inputs.
"""

from collections import Counter

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from linnet_model.network import ops
from linnet_model.network.encoder_decoder import EncoderDecoder
from linnet_model.network.presets import preset

ops.load()
LAYERS = 6


class Launches(TorchDispatchMode):
    """Counts the launches by operator."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        name = str(function).removesuffix(".default")
        if not function.is_view and "empty" not in name and not name.startswith("prim."):
            self.counts[name] += 1
        return function(*arguments, **(named or {}))


def launches_of_step(rows: int, **changes) -> Counter[str]:
    config = preset("dynamic_base", 1000, **changes)
    with FakeTensorMode(), torch.device("cuda"), torch.no_grad():
        model = EncoderDecoder(config)
        ints = {"dtype": torch.int32}
        tokens = torch.zeros(rows, dtype=torch.int64)
        positions = torch.zeros(rows, **ints)
        backpointers = torch.zeros(rows, 31, **ints)
        blocks, lengths = torch.zeros(rows, 4, **ints), torch.ones(rows, **ints)
        cache, state = model.new_encoder_cache(9, 16), model.new_state(rows)
        with Launches() as launches:
            model.features(tokens, positions, backpointers, blocks, lengths, cache, state)
    return launches.counts


def launches_of_encoder(in_blocks: bool, **changes) -> Counter[str]:
    config = preset("dynamic_base", 1000, **changes)
    with FakeTensorMode(), torch.device("cuda"), torch.no_grad():
        model = EncoderDecoder(config)
        source = torch.zeros(6, 16, dtype=torch.int64)
        lengths, starts = (torch.zeros(6, dtype=torch.int32) for _ in range(2))
        with Launches() as launches:
            if in_blocks:
                model.encode_blocks(source, lengths, starts)
            else:
                model.encode(source, lengths)
    return launches.counts


@pytest.mark.parametrize("pre_norm", [False, True], ids=["post_norm", "pre_norm"])
def test_step_of_few_rows_launches_eleven_kernels_a_layer(pre_norm):
    # 90 without the fused kernels, 109 with the norm before each block.
    counts = launches_of_step(5, pre_norm=pre_norm)
    closing = "linnet.add_norm_sum" if pre_norm else "linnet.add_norm"
    first = {"aten.native_layer_norm": 1} if pre_norm else {}
    assert counts == {
        "linnet.embed_tokens": 1,
        "aten.addmm": 5 * LAYERS,
        "aten._addmm_activation": LAYERS,
        "linnet.gated_conv_step": LAYERS,
        "linnet.source_attention": LAYERS,
        closing: 3 * LAYERS,
        **first,
    }


def test_step_of_many_rows_gates_and_projects_separately():
    counts = launches_of_step(160)
    assert counts["aten.glu"] == counts["aten.mm"] == counts["linnet.dynamic_conv_step"] == LAYERS
    assert "linnet.gated_conv_step" not in counts
    assert sum(counts.values()) == 1 + 13 * LAYERS


def test_learned_positions_are_part_of_the_embedding():
    counts = launches_of_step(5, positions="learned")
    assert counts["linnet.embed_tokens"] == 1
    assert "aten.embedding" not in counts


def test_encoder_call_in_blocks_launches_nine_kernels_a_layer():
    layers = 7
    counts = launches_of_encoder(in_blocks=True)
    assert counts == {
        "linnet.embed_tokens": 1,
        "aten.arange": 1,
        "aten.add.Tensor": 1,
        "aten.addmm": 3 * layers + LAYERS,  # with the keys and values of the decoder's layers
        "aten.glu": layers,
        "aten.mm": layers,
        "linnet.dynamic_conv": layers,
        "aten._addmm_activation": layers,
        "linnet.add_norm": 2 * layers,
    }
    padded = launches_of_encoder(in_blocks=False)
    assert sum(counts.values()) < sum(padded.values())
