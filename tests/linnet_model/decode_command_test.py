"""Tests that linnet-decode is found and run: order of answers, errors, language pairs."""

import json
from pathlib import Path

import pytest

from linnet_model import decode_command
from linnet_model.config import ConfigError
from linnet_model.decode_command import decode_lines, decode_texts, find_decode


def test_decodes_json_lines_in_order(fake_decoder):
    echo = fake_decoder(
        "for line in sys.stdin:\n"
        "    text = json.loads(line)['text']\n"
        "    print(json.dumps({'hypotheses': [{'text': ' '.join(sys.argv[1:]) + text}]}))",
    )
    answers = decode_texts(echo, Path("b"), ["ä\u2028b", "c"], ["--threads=1"])
    assert answers == ["--bundle b --threads=1ä\u2028b", "--bundle b --threads=1c"]


def test_engine_error_is_passed_on(fake_decoder, tmp_path: Path):
    error = json.dumps({"error": {"code": "INVALID_ARGUMENT", "message": "text is too long"}})
    bad = fake_decoder(f"print('''{error}'''); sys.exit(1)")
    with pytest.raises(ConfigError, match="refused text 1: text is too long"):
        decode_texts(bad, tmp_path, ["a"], [])
    mute = fake_decoder("sys.exit('bundle is damaged')")
    with pytest.raises(ConfigError, match=r"gave 0 answers to 1 texts .*: bundle is damaged"):
        decode_texts(mute, tmp_path, ["a"], [])
    with pytest.raises(ConfigError, match="no linnet-decode at"):
        find_decode(tmp_path / "none")


def test_lines_name_their_language_pair(fake_decoder, tmp_path: Path):
    show = fake_decoder(
        "for line in sys.stdin:\n    print(json.dumps({'hypotheses': [{'text': line.strip()}]}))",
    )
    line = {"text": "a", "source_language": "en", "target_language": "de"}
    assert [json.loads(text) for text in decode_lines(show, tmp_path, [line])] == [line]


def test_named_program_is_not_searched_for_on_the_path(fake_decoder, tmp_path: Path, monkeypatch):
    fake_decoder("")
    monkeypatch.chdir(tmp_path)
    (name,) = (path.name for path in tmp_path.iterdir())
    assert find_decode(Path(name)) == tmp_path / name


def test_finds_the_installed_program_on_the_path(fake_decoder, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(decode_command, "CHECKOUT", tmp_path / "nowhere")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_decode(None) is None
    installed = fake_decoder("")
    assert find_decode(None) == installed
