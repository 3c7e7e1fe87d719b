"""Tests of presets: they have the sizes of the papers, and each can be built."""

import pytest
import torch

from linnet_model.config import ConfigError
from linnet_model.network.encoder_decoder import EncoderDecoder, parameter_count
from linnet_model.network.model_config import MIXERS
from linnet_model.network.presets import PRESETS, preset, with_mixer

MILLION = 1e6


def millions(name: str, vocabulary: int, **changes) -> float:
    with torch.device("meta"):
        return parameter_count(EncoderDecoder(preset(name, vocabulary, **changes))) / MILLION


@pytest.mark.parametrize(
    ("name", "vocabulary", "changes", "expected"),
    [
        ("dynamic_big", 32768, {}, 213.2),  # the paper: 213M
        ("dynamic_big", 32768, {"glu": False}, 199.6),  # the paper's ablation: 200M
        ("light_big", 32768, {}, 208.9),
        ("self_attention_big", 32768, {}, 209.9),  # Ott et al. 2018: 210M
        ("self_attention_base", 37000, {}, 63.1),
        ("dynamic_base", 32768, {}, 61.7),
        ("light_base", 32768, {}, 60.7),
        ("csan_base", 32768, {}, 60.9),
        ("iwslt", 8848, {"target_vocabulary": 6632}, 38.7),
        ("summarization", 30000, {}, 91.0),
        ("student_tiny", 32000, {}, 16.9),
        ("student_base", 32000, {}, 42.7),
        ("language_model", 32768, {}, 34.6),
        ("tay_base", 32128, {}, 210.5),
        ("tay_dilated", 32128, {}, 209.0),
    ],
)
def test_presets_have_parameters_of_table(
    name: str, vocabulary: int, changes: dict, expected: float
):
    assert round(millions(name, vocabulary, **changes), 1) == expected


def test_windows_and_neighbour_heads_add_no_parameters():
    assert millions("csan_base", 500) == millions("self_attention_base", 500)


@pytest.mark.parametrize("mixer", MIXERS)
@pytest.mark.parametrize("name", ["tiny", "self_attention_base", "tay_base"])
def test_preset_accepts_any_mixer(mixer: str, name: str):
    sizes = preset(name, 100, mixer)
    assert set(sizes.decoder_mixers) == {mixer}
    assert set(sizes.encoder_mixers) == {"self_attention" if mixer == "ssru" else mixer}
    for side in ("encoder", "decoder"):
        assert len(getattr(sizes, f"{side}_kernels")) == len(
            getattr(preset(name, 100), f"{side}_kernels")
        )


def test_dilated_filter_spans_original_filter():
    sizes = with_mixer(preset("dynamic_base", 100), "dilated")
    spans = [
        (k - 1) * d + 1 for k, d in zip(sizes.encoder_kernels, sizes.encoder_dilations, strict=True)
    ]
    assert spans == preset("dynamic_base", 100).encoder_kernels


def test_dilated_preset_keeps_its_context():
    as_it_is = preset("tay_dilated", 100)
    assert preset("tay_dilated", 100, "dilated") == as_it_is
    dynamic = preset("tay_dilated", 100, "dynamic")
    assert dynamic.encoder_kernels == [2 * dilation + 1 for dilation in as_it_is.encoder_dilations]
    assert set(dynamic.encoder_dilations) == {1}


def test_using_preset_does_not_change_it():
    preset("tay_dilated", 100).encoder_dilations.append(99)
    assert 99 not in PRESETS["tay_dilated"]["encoder_dilations"]


def test_unknown_preset_lists_known_ones():
    with pytest.raises(ConfigError, match="no preset 'huge', known are dynamic_base, dynamic_big"):
        preset("huge", 100)
