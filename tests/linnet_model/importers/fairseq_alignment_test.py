"""The alignment of fairseq's transformer_align models: the layer and head that they were taught,
defaults as in fairseq (layer 4, one head), read and written."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from fairseq_export_test import exported
from fairseq_import_test import DYNAMIC, TRANSFORMER, changed, command

from linnet_model.bundle import BundleFacts, read_manifest, write_bundle
from linnet_model.config import BundleConfig
from linnet_model.importers.fairseq import export_fairseq, import_fairseq
from linnet_model.importers.fairseq.import_fairseq import read_model
from linnet_model.network.encoder_decoder import EncoderDecoder
from linnet_model.network.model_config import ConfigError, ModelConfig

ALIGN = {"arch": "transformer_align", "alignment_layer": 0, "alignment_heads": 1}


def sizes(tmp_path, name: str = TRANSFORMER, **options):
    return read_model(changed(tmp_path, name, options)).facts.config


@pytest.mark.parametrize(
    ("options", "layer", "head"),
    [
        (ALIGN, 0, 0),
        (ALIGN | {"alignment_layer": 1}, 1, 0),
        (ALIGN | {"arch": "transformer_wmt_en_de_big_align"}, 0, 0),
        (ALIGN | {"arch": None, "_name": "transformer_align"}, 0, 0),
        (ALIGN | {"alignment_heads": 4}, 0, -1),  # all heads of this model
        (ALIGN | {"alignment_heads": 9}, 0, -1),
        (ALIGN | {"alignment_heads": None}, 0, -1),
        # Another class of fairseq does not look at these options.
        (ALIGN | {"arch": "transformer"}, -1, -1),
    ],
)
def test_alignment_is_that_of_the_options(tmp_path, options, layer, head):
    found = sizes(tmp_path, **options)
    assert (found.alignment_layer, found.alignment_head) == (layer, head)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alignment_layer": 2}, "alignment_layer is 2, the decoder has the layers 0 to 1"),
        ({"alignment_layer": -1}, "alignment_layer is -1, the decoder has"),
        ({"alignment_layer": "last"}, "alignment_layer is 'last', the decoder has"),
        ({"alignment_heads": 2}, "alignment_heads is 2, supported are 1 and 4, all heads"),
        ({"alignment_heads": 0}, "alignment_heads is 0, supported are 1 and 4"),
    ],
)
def test_other_alignments_are_refused(tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        sizes(tmp_path, **(ALIGN | options))


def test_layer_that_fairseq_assumes_is_refused_where_there_is_none(tmp_path):
    """fairseq's default is layer 4; with two layers it has no alignment at all."""
    with pytest.raises(ConfigError, match="alignment_layer is 4, the decoder has the layers 0 to"):
        sizes(tmp_path, arch="transformer_align")


def test_alignment_by_the_full_context_is_told(tmp_path, capsys):
    path = changed(tmp_path, TRANSFORMER, ALIGN | {"full_context_alignment": True})
    bundle = tmp_path / "bundle"
    import_fairseq.main(command(TRANSFORMER, bundle, checkpoint=path))
    assert read_manifest(bundle)["architecture"]["alignment_layer"] == 0
    told = "full_context_alignment is left out: alignments are worse than those of fairseq"
    assert f"note: {told}" in capsys.readouterr().out
    assert told in (bundle / "MODEL_CARD.md").read_text()


def test_convolutions_keep_their_alignment(tmp_path):
    assert sizes(tmp_path, DYNAMIC, alignment_layer=0).alignment_layer == -1


def test_attention_of_one_head_is_the_alignment(tmp_path):
    """As fairseq: softmax(q k / sqrt(d)) of head 0 of the layer, not the mean of the heads."""
    model = read_model(changed(tmp_path, TRANSFORMER, ALIGN)).model
    attention = model.decoder[0].attention
    torch.manual_seed(3)
    width = attention.query.in_features
    query, keys = torch.randn(1, width), torch.randn(1, 5, 2, width)
    found = attention.weights(
        attention.query(query),
        keys,
        torch.zeros([1, 1], dtype=torch.int32),
        torch.tensor([5], dtype=torch.int32),
    )
    size = width // 4
    projected = attention.query(query)[0, :size]
    scores = keys[0, :, 0, :size] @ projected / size**0.5
    torch.testing.assert_close(found[0, :5], scores.softmax(0))


@pytest.mark.parametrize("head", [0, -1, 1])
def test_alignment_survives_round_trip(tmp_path, head, capsys):
    mixers = {"encoder_mixers": ["self_attention"], "decoder_mixers": ["self_attention"]}
    kernels = {"encoder_kernels": [0], "decoder_kernels": [0, 0]}
    sizes = ModelConfig(vocabulary=20, width=8, ffn_width=12, heads=2, **mixers, **kernels)
    sizes = replace(sizes, alignment_layer=1, alignment_head=head, weight_dropout=0.0)
    sizes.check()
    bundle = BundleConfig(name="random", max_source_tokens=90, max_target_tokens=80)
    facts = BundleFacts(version="1")
    model = EncoderDecoder(sizes)
    write_bundle(tmp_path / "b", model, sizes, bundle, None, "float32", facts)
    file = tmp_path / "model.pt"
    if head > 0:
        assert export_fairseq.main(["--bundle", str(tmp_path / "b"), "--out", str(file)]) == 1
        assert "alignment_head is 1, fairseq aligns with the first" in capsys.readouterr().err
        return
    found = read_model(exported(["--bundle", str(tmp_path / "b")], file, "new")).facts.config
    assert (found.alignment_layer, found.alignment_head) == (1, head)
