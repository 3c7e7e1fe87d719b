"""Bad lines get an error in their place; bad command lines exit at once."""

from __future__ import annotations

import json
import shutil

import pytest

GOOD = {"source_ids": [9, 8, 7, 2], "options": {"max_target_tokens": 4}}

BAD_LINES = [
    ("", "the line is not JSON"),
    ("{", "the line is not JSON"),
    ("[1]", "the line is [1], it must be a JSON object"),
    ('{"text": "a", "text": "b"}', 'the key "text" is there twice'),
    ('{"text": "\udcff"}', "the line is not JSON"),  # a byte that is not UTF-8
    ({}, "the line has neither text nor source_ids"),
    ({"text": "a", "source_ids": [2]}, "the line has both text and source_ids"),
    ({"text": ""}, "text is empty"),
    ({"text": 5}, "text is 5, it must be a string"),
    ('{"text": ' + "[" * 100000 + "]" * 100000 + "}", "the line is nested more than 64 deep"),
    ({"text": "a", "beam": 5}, 'the line has the unknown key "beam"'),
    ({"text": "a", "style": 1}, "style is 1, it must be a string"),
    ({"text": "a", "style": "title"}, 'the bundle has no style "title", its styles: none'),
    ({"source_ids": []}, "the source is empty"),
    ({"source_ids": [9, 8]}, "the source ends with token 8, it must end with the end token 2"),
    ({"source_ids": [9, 600, 2]}, "source token 600 is outside the vocabulary of 600 tokens"),
    ({"source_ids": [9, -1, 2]}, "source token -1 is outside"),
    ({"source_ids": [9, 1.5, 2]}, "source_ids[1] is 1.5, it must be an integer"),
    (
        {"source_ids": [9, 2**40, 2]},
        "source_ids[1] is 1099511627776, it must be an integer of 32 bits",
    ),
    ({"source_ids": "9 2"}, 'source_ids is "9 2", it must be a list of token ids'),
    ({"source_ids": [9] * 1024 + [2]}, "the source has 1025 tokens, this model reads at most 1024"),
    ({"source_ids": [9, 2], "prefix_ids": [2]}, "prefix token 2 is the end token"),
    ({"source_ids": [9, 2], "prefix_ids": [700]}, "prefix token 700 is outside"),
    ({"source_ids": [9, 2], "options": 3}, "options is 3, it must be a JSON object"),
    ({"source_ids": [9, 2], "options": {"sampling": 1}}, 'options has the unknown key "sampling"'),
    (
        {"source_ids": [9, 2], "options": {"beam_size": 0}},
        "beam_size is 0, it must be between 1 and",
    ),
    ({"source_ids": [9, 2], "options": {"beam_size": 1000}}, "beam_size is 1000"),
    (
        {"source_ids": [9, 2], "options": {"beam_size": 2.0}},
        "beam_size is 2.0, it must be an integer",
    ),
    ({"source_ids": [9, 2], "options": {"n_best": 6}}, "n_best is 6"),
    (
        {"source_ids": [9, 2], "options": {"length_penalty": "x"}},
        'length_penalty is "x", it must be a number',
    ),
    ({"source_ids": [9, 2], "options": {"length_penalty": -1}}, "length_penalty is -1"),
    ({"source_ids": [9, 2], "options": {"temperature": 0}}, "temperature is 0"),
    ({"source_ids": [9, 2], "options": {"max_target_tokens": 1025}}, "max_target_tokens is 1025"),
    (
        {"source_ids": [9, 2], "options": {"normalize_scores": 1}},
        "normalize_scores is 1, it must be true or false",
    ),
]


def test_answers_bad_lines_in_place(run, bundle):
    lines = [GOOD]
    for bad, _ in BAD_LINES:
        lines += [bad, GOOD]
    done = run(bundle, lines=lines)
    assert done.status == 1
    assert len(done.answers) == len(lines)
    expected = done.answers[0]
    assert "hypotheses" in expected
    assert all(answer == expected for answer in done.answers[::2])
    for (bad, message), answer in zip(BAD_LINES, done.answers[1::2], strict=True):
        assert list(answer) == ["error"], bad
        assert list(answer["error"]) == ["code", "message"]
        assert answer["error"]["code"] == "INVALID_ARGUMENT"
        assert message in answer["error"]["message"], bad


def test_last_line_needs_no_newline(run, bundle, binary):
    import subprocess

    done = subprocess.run(
        [str(binary), "--bundle", str(bundle), "--threads", "1"],
        input=b'{"source_ids": [9, 2], "options": {"max_target_tokens": 2}}',
        capture_output=True,
    )
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 1


def test_line_above_the_limit_says_the_limit(run, bundle):
    long = '{"text": "' + "a" * (16 << 20) + '"}'
    done = run(bundle, lines=[long, GOOD])
    assert (
        done.answers[0]["error"]["message"]
        == "the line has more than 16777216 bytes: split its text"
    )
    assert "hypotheses" in done.answers[1]


def test_failed_read_of_the_input_is_an_error(binary, bundle, tmp_path):
    import os
    import subprocess

    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        done = subprocess.run(
            [str(binary), "--bundle", str(bundle), "--threads", "1"],
            stdin=folder,
            capture_output=True,
            text=True,
        )
    finally:
        os.close(folder)
    assert done.returncode == 3
    assert "cannot read the input: Is a directory" in done.stderr


def test_empty_input_gives_no_answers(run, bundle):
    done = run(bundle)
    assert (done.status, done.answers) == (0, [])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--speed", "9"), "--speed"),
        (
            ("--compute", "int4"),
            'compute type "int4" is not built: there are auto, float32, bfloat16, on the CPU int8',
        ),
        (("--search", "gpu"), 'no place to search "gpu": there are auto, host and device'),
        (("--device", "tpu"), 'no device "tpu": there are cpu and cuda'),
        (("--batch", "0"), "--batch"),
        (("--beam", "0"), "beam_size is 0"),
        (("--beam", "2", "--n-best", "3"), "n_best is 3"),
        (("--max-target-tokens", "5000"), "max_target_tokens is 5000"),
        (("--threads", "-1"), "--threads: Value -1 not in range"),
        (("--threads", "1025"), "--threads: Value 1025 not in range"),
        (("--batch", "010"), "--batch: Value 010 begins with 0"),
        (("--batch", "4096", "--beam", "32"), "a beam of 32 needs 131072 rows, at most 65536"),
        (("--seed", "-1"), "--seed"),
        (("--top-p", "0"), "top_p is 0"),
        (("--source-tokens", "5"), "--synthetic"),
        (("--step-seconds",), "--synthetic"),
        (("--synthetic", "--source-tokens", "5000"), "--source-tokens is 5000, this model reads"),
        (("--synthetic", "--source-tokens", "1000000", "--batch", "4096"), "at most 1024"),
        (("--synthetic", "--min-target-tokens", "9"), "set --target-tokens in place"),
        (("--synthetic", "--max-target-tokens", "9"), "set --target-tokens in place"),
    ],
)
def test_bad_flags_exit_with_status_2(run, bundle, flags, message):
    done = run(bundle, *flags, lines=[GOOD])
    assert (done.status, done.answers) == (2, [])
    assert message in done.stderr


def test_bundle_is_required(run):
    done = run(None, lines=[GOOD])
    assert done.status == 2
    assert "--bundle" in done.stderr


def test_missing_bundle_exits_with_status_3(run, tmp_path):
    done = run(tmp_path / "none", lines=[GOOD])
    assert (done.status, done.answers) == (3, [])
    assert "none" in done.stderr


def test_float16_on_the_cpu_exits_with_status_3(run, bundle):
    done = run(bundle, "--compute", "float16", lines=[GOOD])
    assert done.status == 3
    assert "there are auto, float32, bfloat16 and int8" in done.stderr


# The synthetic benchmark.


def test_synthetic_prints_documented_fields(run, bundle):
    flags = (
        "--synthetic",
        "--source-tokens",
        "7",
        "--target-tokens",
        "9",
        "--repeat",
        "3",
        "--seed",
        "4",
    )
    done = run(bundle, *flags, "--batch", "2", "--beam", "3")
    assert done.status == 0, done.stderr
    (line,) = done.answers
    assert " ".join(line) == (
        "engine compute device search threads batch beam source_tokens target_tokens seconds "
        "tokens_per_second best_tokens_per_second"
    )
    assert (line["compute"], line["device"], line["threads"]) == ("float32", "cpu", 2)
    assert (line["batch"], line["beam"], line["source_tokens"], line["target_tokens"]) == (
        2,
        3,
        7,
        9,
    )
    # Two best hypotheses with nine tokens each.
    assert line["tokens_per_second"] == pytest.approx(18 / line["seconds"])
    assert line["best_tokens_per_second"] >= line["tokens_per_second"]


def test_synthetic_needs_ids_above_the_unknown_token(run, bundle_without_tokenizer, tmp_path):
    bundle = tmp_path / "unk-last"
    shutil.copytree(bundle_without_tokenizer, bundle)
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["vocabulary"]["unk_id"] = manifest["vocabulary"]["size"] - 1
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    done = run(bundle, "--synthetic", "--target-tokens", "3")
    assert done.status == 2
    assert "random sources have the ids above unk_id, which is 599" in done.stderr


def test_synthetic_prints_step_times_on_request(run, bundle):
    done = run(bundle, "--synthetic", "--target-tokens", "9", "--repeat", "3", "--step-seconds")
    assert done.status == 0, done.stderr
    (line,) = done.answers
    assert len(line["step_seconds"]) == 9
    assert min(line["step_seconds"]) > 0
