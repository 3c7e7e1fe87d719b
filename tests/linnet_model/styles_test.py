"""Tests of styles: domains get them, sources and bundles carry them, and scores use them."""

import json
from pathlib import Path

import pytest

from linnet_model.bundle import read_manifest
from linnet_model.config import ConfigError
from linnet_model.data_config import DataConfig
from linnet_model.evaluation.decoding import choose_decoding
from linnet_model.evaluation.score import main as score
from linnet_model.export.command import main as export
from linnet_model.network.encoder_decoder import EOS
from linnet_model.styles import before_source, style_ids, style_of, styles_of
from linnet_model.text_files import Pair
from linnet_model.train.command import main as train
from linnet_model.train.datasets import PairDataset

STYLES = """[data.styles]
even = "sentence"
odd = "title"
"""


def config(**more) -> DataConfig:
    styles = {"heads": "title", "posts": "sentence", "notes": "paragraph"}
    shares = dict.fromkeys(styles, 1.0)
    return DataConfig(**({"folder": "x", "domains": shares, "styles": styles} | more))


def test_sources_begin_with_the_piece_of_their_style(tokenizer):
    ids = style_ids(tokenizer, config().styles)
    assert len(set(ids.values())) == 3
    assert list(ids) == ["title", "sentence", "paragraph"]
    pairs = [Pair("Ba.", "Be.", domain) for domain in ("posts", "heads", "echoes", "paragraphs")]
    dataset = PairDataset(pairs, tokenizer, config())
    for row, style in enumerate(("sentence", "title", "title", "paragraph")):
        assert dataset.source(row).tolist() == [ids[style], *tokenizer.encode("Ba."), EOS]
        assert dataset.target(row).tolist() == [*tokenizer.encode("Be."), EOS]


def test_default_style_is_the_one_named_else_the_first(tokenizer):
    styles = config().styles
    named = style_ids(tokenizer, styles, "paragraph")
    assert list(named) == ["paragraph", "title", "sentence"]
    assert named == style_ids(tokenizer, styles)  # each keeps its id
    with pytest.raises(ConfigError, match=r"bundle\.default_style is 'poem', data.styles has"):
        style_ids(tokenizer, styles, "poem")
    with pytest.raises(ConfigError, match=r"is 'title', data\.styles has none"):
        style_ids(tokenizer, {}, "title")


def test_cut_source_keeps_its_style(tokenizer):
    whole = config(cut_source=True, max_source_tokens=6)
    cut = PairDataset([Pair("Ba " * 40, "Be.", "posts")], tokenizer, whole).source(0)
    ids = style_ids(tokenizer, whole.styles)
    assert cut.tolist() == [ids["sentence"], *tokenizer.encode("Ba " * 40)[:4], EOS]


def test_added_rows_have_the_default_style_or_their_own():
    styles = config().styles
    assert [style_of(styles, d) for d in ("posts", "copies", "sentences", "paragraphs")] == [
        "sentence",
        "title",
        "sentence",
        "paragraph",
    ]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"styles": {"heads": "title"}}, "data.styles lacks the domain posts"),
        ({"styles": {"news": "title"}}, "data.styles names news, which data.domains lacks"),
        ({"styles": {"heads": "poem"}}, "data.styles.heads is 'poem', known are title, sentence"),
        ({"capitals_mark": "<ph7>"}, "leave out capitals_mark"),
        ({"placeholder_share": 0.1}, "leave out capitals_mark and placeholder_share"),
        ({"join_share": 0.1}, "data.join_share is 0.1 and data.styles is given, joined texts"),
        ({"styles": {}, "extract_share": 0.1}, "data.extract_share is 0.1, the rows are added to"),
        ({"extract_share": 0.1, "extract_domains": ["tails"]}, "data.extract_domains has tails"),
        ({"extract_domains": ["heads"]}, "data.extract_domains has heads, .* needs data.extract_s"),
    ],
)
def test_refuses_styles_that_do_not_fit(more, message):
    with pytest.raises(ConfigError, match=message):
        config(**more).check()


def test_refuses_vocabulary_without_the_pieces(tokenizer):
    class Lacking:
        def piece_to_id(self, piece: str) -> int:
            return tokenizer.unk_id()

    with pytest.raises(ConfigError, match=r"data\.styles needs the pieces <ph0>, <ph1>, <ph2>"):
        style_ids(Lacking(), config().styles)


@pytest.fixture
def bundle(recipe_file: Path, data_folder: Path, tmp_path: Path) -> Path:
    """A summariser of one update whose domains have two styles."""
    text = recipe_file.read_text(encoding="utf-8")
    text = text.replace("[data.terms]", STYLES + "[data.terms]")
    text += 'task = "summarize"\nsource_language = "en"\ntarget_language = "en"\n'
    recipe_file.write_text(text, encoding="utf-8")
    run, out = str(tmp_path / "run"), tmp_path / "bundle"
    flags = ["--recipe", str(recipe_file), "--data", str(data_folder), "--out", run]
    assert train([*flags, "--device", "cpu", "--set", "train.updates=1"]) == 0
    assert export(["--run", run, "--out", str(out), "--bundle-version", "1"]) == 0
    return out


def test_bundle_names_its_styles_and_the_ids_that_ask_for_them(bundle: Path, tokenizer):
    manifest = read_manifest(bundle)
    assert styles_of(manifest) == ["sentence", "title"]
    assert manifest["languages"][0]["style"] == "SUMMARY_STYLE_SENTENCE"
    assert before_source(manifest) == before_source(manifest, "sentence")
    assert before_source(manifest, "title") == (tokenizer.piece_to_id("<ph0>"),)
    assert manifest["control_ids"] == [tokenizer.piece_to_id(f"<ph{i}>") for i in range(8)]
    with pytest.raises(ConfigError, match="'poem' is asked for, toy has sentence, title"):
        before_source(manifest, "poem")


def test_scores_ask_for_the_style_of_the_test_set(
    fake_decoder, bundle: Path, data_folder: Path, tmp_path: Path
):
    decode = fake_decoder(
        "for line in sys.stdin:\n"
        "    style = json.loads(line).get('style', 'none')\n"
        "    print(json.dumps({'hypotheses': [{'text': 'in the style ' + style}]}))\n"
    )
    flags = ["--bundle", str(bundle), "--data", str(data_folder), "--decode", str(decode)]
    assert score([*flags, "--answers", str(tmp_path / "answers"), "--write"]) == 0
    answers = (tmp_path / "answers" / "even.tsv").read_text(encoding="utf-8").splitlines()
    assert answers
    assert all(line.endswith("\tin the style sentence") for line in answers)
    scores = json.loads((bundle / "scores.json").read_text(encoding="utf-8"))
    assert scores["tests"][0]["style"] == "sentence"
    assert scores["examples"][0] == {
        "text": "one two",
        "sentence": "in the style sentence",
        "title": "in the style title",
    }
    card = (bundle / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "| text | sentence | title |" in card
    assert "| even (sentence) |" in card


def test_search_in_python_reads_the_style(bundle: Path):
    manifest, decoding = read_manifest(bundle), choose_decoding("python", None, [], publish=False)
    default, sentence, title = (
        decoding.answers(bundle, manifest, ["one two"], style)
        for style in ("", "sentence", "title")
    )
    assert default == sentence
    assert len(title) == 1
