"""Tests of the grammar of targets: valid UTF-8 without control pieces, as in the engine."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from linnet_model.bundle import BundleFacts, TokenizerFiles, read_manifest, write_bundle
from linnet_model.config import BundleConfig, TokenizerConfig
from linnet_model.evaluation.decoding import Decoding
from linnet_model.export.grammar import START, Grammar
from linnet_model.export.random_bundle import made_up_lines
from linnet_model.network.encoder_decoder import EOS, PAD, UNK, EncoderDecoder
from linnet_model.network.presets import preset
from linnet_model.tokenizer import free_placeholders, load_tokenizer, spells, train_tokenizer

MARK = "<ph7>"
FEW = [0x41, 0x80, 0x8F, 0x90, 0xA0, 0xBF, 0xC0, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1]
FEW += [0xF4, 0xF5, 0xFF]


def is_valid(some: bytes) -> bool:
    try:
        some.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_allows_exactly_the_bytes_of_utf8(tokenizer):
    """All sequences of up to four of some bytes, the edges of the ranges among them."""
    grammar = Grammar(tokenizer)
    tokens = {byte: tokenizer.piece_to_id(f"<0x{byte:02X}>") for byte in FEW}
    begun = [(b"", START)]
    for _ in range(4):
        longer = []
        for some, state in begun:
            for byte, token in tokens.items():
                if grammar.allows(state, 3, token):
                    longer.append((some + bytes([byte]), grammar.after(state, token)))
        for some, state in longer:
            assert is_valid(some) or state.rest, some
        whole = {some for some, state in longer if not state.rest}
        for some, _ in begun:
            for byte in FEW:
                if is_valid(more := some + bytes([byte])):
                    assert more in whole
        begun = longer


def test_a_character_begins_only_where_it_can_end(tokenizer):
    grammar = Grammar(tokenizer)
    for byte, following in ((0xC3, 1), (0xE2, 2), (0xF0, 3)):
        token = tokenizer.piece_to_id(f"<0x{byte:02X}>")
        assert [grammar.allows(START, left, token) for left in range(4)] == [
            left >= following for left in range(4)
        ]
        state = grammar.after(START, token)
        assert not grammar.allows(state, 3, EOS)
        assert grammar.forbidden(START, following - 1)[token]
        assert not grammar.forbidden(START, 9)[token]


def test_control_pieces_do_not_occur_but_for_the_mark_at_the_start(tokenizer):
    mark, other, blank = (tokenizer.piece_to_id(piece) for piece in (MARK, "<ph0>", "\u2581"))
    word = tokenizer.piece_to_id("a")
    grammar = Grammar(tokenizer, MARK, [other])
    for state in (START, grammar.after(START, word)):
        assert not any(grammar.allows(state, 9, token) for token in (PAD, UNK, other))
        assert grammar.allows(state, 9, EOS)
        assert grammar.allows(state, 9, mark) == (not state.begun)
    assert grammar.after(START, blank) == START
    assert Grammar.of_manifest(tokenizer, {}) is None


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("a b", True),
        ("a~", True),  # a byte of ASCII
        ("a \U0001f600", False),
        ("a\tb", False),
        ("a\u00a0b", False),
        ("a <PH0>", False),
        ("\u2581", False),
    ],
)
def test_names_texts_of_which_the_server_copies_a_part(tokenizer, text: str, whole: bool):
    assert spells(tokenizer, text) is whole


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator with random weights, which would write anything but text."""
    folder = tmp_path_factory.mktemp("grammar")
    train_tokenizer(made_up_lines(500, seed=1), 400, TokenizerConfig(), folder / "source.spm")
    tokenizer = load_tokenizer(folder / "source.spm", MARK)
    torch.manual_seed(7)
    sizes = preset("tiny", 400)
    model = EncoderDecoder(sizes).eval()
    with torch.no_grad():
        model.decoder_norm.weight.mul_(2)  # peaked distributions: no ties
    files = TokenizerFiles(
        folder / "source.spm",
        capitals_mark=MARK,
        text_grammar=True,
        placeholders=free_placeholders(tokenizer, MARK),
    )
    config = BundleConfig(name="random", target_ratio=1.0, target_offset=4, max_ngram_repeats=2)
    write_bundle(
        folder / "random", model, sizes, config, files, "float32", BundleFacts(version="1")
    )
    return folder / "random"


def test_the_search_in_python_answers_as_the_engine(bundle: Path, program: Callable[[str], Path]):
    texts = made_up_lines(40, seed=3)
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    flags = ["--compute", "float32", "--threads", "1"]
    done = subprocess.run(
        [str(program("linnet-decode")), "--bundle", str(bundle), *flags],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = [json.loads(line)["hypotheses"][0]["text"] for line in done.stdout.splitlines()]
    assert Decoding(None).answers(bundle, read_manifest(bundle), texts) == wanted
    assert not any("\ufffd" in answer or "<ph" in answer for answer in wanted)
