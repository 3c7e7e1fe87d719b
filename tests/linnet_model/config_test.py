"""Tests of recipes: valid ones are read, and errors name key and value."""

from pathlib import Path

import pytest

from linnet_model.config import ConfigError, Recipe, from_tables, read_recipe, to_tables

RECIPES = Path(__file__).resolve().parents[2] / "model" / "recipes"
SHIPPED = sorted(path.stem for path in RECIPES.glob("*.toml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_recipes_in_repository_are_valid(name: str):
    assert name.startswith(read_recipe(RECIPES / f"{name}.toml").bundle.name)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.widht=3", "unknown key model.widht"),
        ("train.updates='many'", "train.updates is 'many', must be of type int"),
        ("train.updates=0", "train.updates is 0, must be at least 1"),
        ("model.width=250", "model.width 250 is no multiple of heads 4"),
        ("model.width=32768", "model.width is 32768, must be between 4 and 16384"),
        ("model.ffn_width=65537", "model.ffn_width is 65537, must be between 1 and 65536"),
        ("model.vocabulary=16777217", "model.vocabulary is 16777217, must be between 5 and"),
        ("model.encoder_kernels=[3, 4]", "has 4, kernel widths are odd"),
        ("model.decoder_kernels=[]", "model.decoder_kernels is empty"),
        ("model.encoder_mixers=['fft']", "has 'fft', known are dynamic, light"),
        ("model.encoder_mixers=['light', 'light']", "names 2 layers and encoder_kernels 4"),
        (
            "model.encoder_mixers=['csan_1d']\nmodel.encoder_kernels=[4]",
            "of the encoder are centred",
        ),
        ("model.decoder_mixers=['csan_2d']\nmodel.decoder_kernels=[0]", "which needs a window"),
        ("model.decoder_mixers=['self_attention']\nmodel.decoder_kernels=[-1]", "has -1, a window"),
        (
            "model.decoder_mixers=['ssru']",
            "has 3 with ssru, which always sees the whole past",
        ),
        ("model.encoder_mixers=['ssru']", "reads only the past: give it to the decoder"),
        ("model.encoder_kernels=[0]", "has 0, kernel widths are odd and positive"),
        ("model.encoder_dilations=[2]", "has 2 with dynamic, only dilated has dilations above 1"),
        (
            "model.encoder_mixers=['dilated']\nmodel.encoder_dilations=[0]",
            "dilations are at least 1",
        ),
        ("model.decoder_dilations=[1, 1]", "model.decoder_dilations names 2 layers and decoder_k"),
        ("model.neighbour_heads=2", "model.neighbour_heads is 2, must be odd and positive"),
        ("model.positions='rotary'", "known are sinusoidal, sinusoidal_marian, learned, none"),
        ("model.activation='elu'", "model.activation is 'elu', known are relu, swish, gelu"),
        ("model.first_position=-1", "model.first_position is -1, must be at least 0"),
        ("model.max_positions=1", "model.max_positions is 1, must be at least 2"),
        (
            "model={positions='learned', max_positions=99}",
            "data.max_source_tokens is 100 and the learned positions are model.max_positions 99, "
            "raise it or lower data.max_source_tokens",
        ),
        (
            "model={positions='learned', max_positions=50}\ndata.max_source_tokens=50",
            "data.max_target_tokens is 100 and the learned positions are model.max_positions 50",
        ),
        (
            "model={positions='learned', max_positions=200}",
            "bundle: sources of 256 tokens do not fit model.max_positions 200, raise it or lower",
        ),
        (
            "model={decoder_mixers=['self_attention'], decoder_kernels=[0], max_positions=320}",
            "bundle: targets of 320 tokens and an end token do not fit model.max_positions 320",
        ),
        ("bundle.max_target_tokens=0", "bundle.max_target_tokens is 0, must be between 1 and"),
        (
            "bundle.max_target_tokens=10",
            "bundle.target_offset is 20, must be between 0 and 10, bundle.max_target_tokens",
        ),
        ("bundle.min_target_tokens=21", "is 21, must be between 0 and 20, bundle.target_offset"),
        ("bundle.beam_size=33", "bundle.beam_size is 33, must be between 1 and 32"),
        ("bundle.length_penalty=nan", "bundle.length_penalty is nan, must be between 0 and 10"),
        ("bundle.target_ratio=-1", "bundle.target_ratio is -1.0, must be between 0 and 1000"),
        ("bundle.unknown_penalty=2e6", "bundle.unknown_penalty is 2000000.0, must be between"),
        ("bundle.max_ngram_repeats=-1", "bundle.max_ngram_repeats is -1, must be between 0 and"),
        ("bundle.task='summarize'", "bundle.target_language is 'de' and bundle.source_language"),
        ("train.seed=1099511627777", "train.seed is 1099511627777, must be at most 1099511627776"),
        ("tokenizer.sentences=0", "tokenizer.sentences is 0, must be at least 1"),
        (
            "model={sharing='none', target_vocabulary=300}",
            "model.target_vocabulary is 300 and model.vocabulary 6000: a training has one",
        ),
        ("model.sharing='some'", "known are all, output, none"),
        ("model.target_vocabulary=7", "sharing is 'all' with vocabularies of 6000 and 7"),
        ("model.norm_epsilon=0.0", "model.norm_epsilon is 0.0, must be above 0 and at most 1"),
        ("model.dropout=1.0", "model.dropout is 1.0, must be in [0, 1)"),
        ("train.schedule='step'", "known are inverse_sqrt, cosine, trapezoid"),
        ("train.clip_norm=-1", "train.clip_norm is -1.0, must be at least 0"),
        ("train.warmup_updates=-1", "train.warmup_updates is -1, must be at least 0"),
        ("train.decay_updates=-1", "train.decay_updates is -1, must be at least 0"),
        ("train.weight_decay=nan", "train.weight_decay is nan, must be at least 0"),
        ("train.seed=-1", "train.seed is -1, must be at least 0"),
        ("train.threads=-2", "train.threads is -2, must be at least 0"),
        ("train.valid_rows=-1", "train.valid_rows is -1, must be at least 0"),
        ("train.beta1=1", "train.beta1 is 1.0, must be in [0, 1)"),
        ("train.beta2=-0.1", "train.beta2 is -0.1, must be in [0, 1)"),
        ("train.epsilon=0", "train.epsilon is 0.0, must be above 0"),
        ("train.final_share=2", "train.final_share is 2.0, must be in [0, 1]"),
        ("data.domains.tatoeba=-1", "data.domains.tatoeba is -1.0, must be above 0"),
        (
            "data.domains.facts=1",
            "the domain facts of data.domains or data.valid_domains has a name",
        ),
        (
            "data={lowercase_share=0.7, uppercase_share=0.6}",
            "data.lowercase_share and data.uppercase_share are 1.3 together, must be at most 1",
        ),
        (
            "data={valid_source='v.en', valid_target='v.de', valid_domains=['tatoeba']}",
            "data.valid_domains names tatoeba, rows of plain files are of the domain text",
        ),
        ("data.valid_domains=['all']", "the domain all of data.domains or data.valid_domains has"),
        ("data.short_share=0.1", "data.short_share is 0.1, only cut sources are short"),
        (
            "bundle.target_language='fr'",
            "data.quote_share is 0.03 and the languages are en to fr: the marks and verbs of",
        ),
        (
            "data.placeholder_share=0.1\ntokenizer.placeholders=4",
            "tokenizer.placeholders is 4 and data.placeholder_share needs 5",
        ),
        ("data.files=[]", "data.files is empty, the usual one is train"),
        ("data.files=['train.tsv.xz']", "data.files has 'train.tsv.xz', it takes names of files"),
        ("data.files=['train', 'valid']", "data.files has 'valid', it takes"),
        ("data.files=['a', 'a']", "data.files is ['a', 'a'], name each file once"),
        ("data={files=['a'], train_source='b', train_target='c'}", "['a'] and data.train_source"),
        ("tokenizer.kind='word'", "known are unigram, bpe"),
        ("bundle.task='sing'", "known are translate, summarize"),
        ("nonsense", "is not table.key=value in TOML"),
        ("train.simcut=3.0", "train.simcut is 3.0, but linnet-train no longer has this feature"),
        ("data.both_directions=true", "data.both_directions is True, but linnet-train no longer"),
    ],
)
def test_refuses_invalid_setting_with_key_and_value(setting: str, message: str):
    with pytest.raises(ConfigError) as error:
        read_recipe(RECIPES / "en-de.toml", [setting])
    assert message in str(error.value)


LANGUAGE_MODEL = """
[model]
encoder_kernels = []
[data]
folder = "en-de"
objective = "language_model"
max_target_tokens = 100
[data.domains]
tatoeba = 1.0
[bundle]
name = "lm"
task = "language_model"
source_language = "de"
target_language = "de"
"""


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        # A sinusoidal position has no end, and a window holds no more than its positions.
        ("en-de", ["model.max_positions=20"]),
        # Nothing is served, and a language model reads no source.
        ("lm", ["model={positions='learned', max_positions=100}"]),
    ],
)
def test_lengths_without_learned_positions_or_bundle_are_free(
    tmp_path: Path, name: str, settings: list[str]
):
    (tmp_path / "lm.toml").write_text(LANGUAGE_MODEL)
    folder = RECIPES if name in SHIPPED else tmp_path
    read_recipe(folder / f"{name}.toml", settings)


def test_names_missing_and_invalid_recipe(tmp_path: Path):
    with pytest.raises(ConfigError, match="no recipe at"):
        read_recipe(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[model\n")
    with pytest.raises(ConfigError, match="is not TOML"):
        read_recipe(tmp_path / "bad.toml")
    with pytest.raises(ConfigError, match=r"^\. cannot be read: Is a directory"):
        read_recipe(Path("."))


def test_recipe_may_begin_with_a_byte_order_mark_and_must_be_utf_8(tmp_path: Path):
    path, text = tmp_path / "r.toml", (RECIPES / "en-de.toml").read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8-sig")
    assert read_recipe(path).bundle.name == "en-de"
    path.write_bytes(b"# Gr\xfc\xdfe\n")
    with pytest.raises(ConfigError, match=r"r.toml is not UTF-8: "):
        read_recipe(path)


def based(tmp_path: Path, base: str, text: str = "") -> Path:
    (tmp_path / "base.toml").write_text(base)
    path = tmp_path / "r.toml"
    path.write_text(f'base = "base.toml"\n{text}')
    return path


BASE = """
[data]
folder = "en-de"
max_source_tokens = 90
[data.domains]
debian = 0.5
tatoeba = 1.0
[bundle]
name = "small"
task = "translate"
source_language = "en"
target_language = "de"
"""


def test_recipe_has_the_keys_of_its_base_but_those_that_it_sets(tmp_path: Path):
    changes = "[data]\nmax_source_tokens = 80\n[data.domains]\ndebian = 0\nphpdoc = 2.0\n"
    recipe = read_recipe(based(tmp_path, BASE, changes))
    assert recipe.data.folder == "en-de"
    assert recipe.data.max_source_tokens == 80
    assert recipe.data.domains == {"tatoeba": 1.0, "phpdoc": 2.0}


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ('base = "other.toml"\n', "base.toml, the base of .*r.toml, has base: name one without"),
        ("[[stages]]\n", "base.toml, the base of .*r.toml, has stages: name one without"),
        ("[model\n", "base.toml is not TOML"),
    ],
)
def test_refuses_invalid_base(tmp_path: Path, base: str, message: str):
    with pytest.raises(ConfigError, match=message):
        read_recipe(based(tmp_path, base))


def test_refuses_missing_base(tmp_path: Path):
    path = based(tmp_path, BASE)
    (tmp_path / "base.toml").unlink()
    with pytest.raises(ConfigError, match=r"no recipe at .*base\.toml"):
        read_recipe(path)
    for base in ("3", "''"):
        path.write_text(f"base = {base}\n")
        with pytest.raises(ConfigError, match=f"base is {base}, must be the file name of another"):
            read_recipe(path)


def test_share_0_leaves_a_domain_out():
    recipe = read_recipe(RECIPES / "en-de.toml", ["data.domains={debian=0, tatoeba=0.5}"])
    assert "debian" not in recipe.data.domains
    assert recipe.data.domains["tatoeba"] == 0.5
    assert "phpdoc" in recipe.data.domains, "tables are merged"


def test_share_0_with_styles_that_are_no_table_is_refused():
    with pytest.raises(ConfigError, match=r"data.styles is 3, must be dict"):
        read_recipe(RECIPES / "en-de.toml", ["data={domains.debian=0, styles=3}"])


def test_settings_override_recipe():
    recipe = read_recipe(RECIPES / "en-de.toml", ["train.learning_rate=1", "data.domains.debian=2"])
    assert recipe.train.learning_rate == 1.0
    assert recipe.data.domains["debian"] == 2.0
    assert recipe.data.domains["tatoeba"] == 1.0


def test_stored_recipe_may_have_removed_keys_that_did_nothing():
    tables = to_tables(read_recipe(RECIPES / "en-de.toml"))
    tables["train"] |= {"simcut": 0.0, "simcut_share": 0.05}
    tables["data"] |= {"both_directions": False, "sampling_alpha": 0.0}
    assert from_tables(Recipe, tables, "") == read_recipe(RECIPES / "en-de.toml")


def test_recipe_survives_round_trip():
    recipe = read_recipe(RECIPES / "en-summary.toml")
    assert from_tables(Recipe, to_tables(recipe), "") == recipe
