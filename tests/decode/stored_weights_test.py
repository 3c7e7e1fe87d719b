"""The engine reads bundles that store int8: it answers as from the weights that the integers stand
for, and in int8 as from the weights that were rounded."""

from __future__ import annotations

from pathlib import Path

import pytest
from decode_lines import SOURCES, line, with_options
from tiny_sizes import SEED, VOCABULARY


@pytest.fixture(scope="module", params=["all", "output", "none"])
def bundles(request, tmp_path_factory, operators) -> dict[str, Path]:
    """One model with its weights as float32, as int8, and as float32 again. One table of tokens
    serves all sides, one the decoder's input and output, or each has its own."""
    import torch

    from linnet_model.bundle import BundleFacts, write_bundle
    from linnet_model.commands.convert import convert
    from linnet_model.config import BundleConfig
    from linnet_model.network.encoder_decoder import EncoderDecoder
    from linnet_model.network.presets import preset

    folder = tmp_path_factory.mktemp("bundles")
    sizes = preset("tiny", VOCABULARY, sharing=request.param, positions="learned")
    torch.manual_seed(SEED)
    model = EncoderDecoder(sizes).eval()
    config = BundleConfig(name="stored", max_source_tokens=64, max_target_tokens=60)
    for name in ("float32", "int8"):
        write_bundle(folder / name, model, sizes, config, None, name, BundleFacts(version="1"))
    convert(folder / "int8", folder / "restored", "float32")
    return {name: folder / name for name in ("float32", "int8", "restored")}


@pytest.fixture
def answers(run):
    def decode(bundle: Path, compute: str) -> list[dict]:
        done = run(bundle, "--compute", compute, lines=with_options(SOURCES, n_best=3))
        assert done.status == 0, done.stderr
        return done.answers

    return decode


@pytest.mark.parametrize(
    "compute", ["float32", pytest.param("bfloat16", marks=pytest.mark.bfloat16_gemm)]
)
def test_stored_integers_stand_for_weights(bundles, answers, compute: str):
    assert answers(bundles["int8"], compute) == answers(bundles["restored"], compute)
    assert answers(bundles["int8"], compute) != answers(bundles["float32"], compute)


def test_source_as_long_as_the_learned_positions_is_read(tmp_path, operators, run):
    """The encoder pads a batch, but not beyond the last row of the table."""

    from linnet_model.bundle import BundleFacts, write_bundle
    from linnet_model.config import BundleConfig
    from linnet_model.network.encoder_decoder import EncoderDecoder
    from linnet_model.network.presets import preset

    sizes = preset("tiny", VOCABULARY, positions="learned", max_positions=21)
    model = EncoderDecoder(sizes).eval()
    config = BundleConfig(name="short", max_source_tokens=21, max_target_tokens=20)
    facts = BundleFacts(version="1")
    write_bundle(tmp_path / "bundle", model, sizes, config, None, "float32", facts)
    lines = [line(1, 21), line(2, 20), line(3, 4)]
    done = run(tmp_path / "bundle", "--compute", "float32", lines=lines)
    assert done.status == 0, done.stderr
    assert all(answer["hypotheses"] for answer in done.answers)


@pytest.mark.parametrize("bundles", ["all"], indirect=True)
def test_int8_answers_do_not_depend_on_the_stored_type(bundles, answers):
    """Other tables of tokens than the output's are not rounded when they are loaded."""
    assert answers(bundles["int8"], "int8") == answers(bundles["float32"], "int8")
