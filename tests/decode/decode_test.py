"""Answers of linnet-decode: properties of the search and of the engine."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import subprocess

import pytest
from decode_lines import EOS, SOURCES, eager_model, forced_scores, line, source, with_options


def test_answer_has_documented_keys(decode):
    options = {"n_best": 2, "max_target_tokens": 8}
    (hypotheses,) = decode([{"text": "Bado runa.", "options": options}])
    assert len(hypotheses) == 2
    for hypothesis in hypotheses:
        assert list(hypothesis) == ["ids", "text", "score", "token_scores", "finish_reason"]
        assert hypothesis["ids"][-1] == EOS
        assert hypothesis["ids"].count(EOS) == 1
        assert len(hypothesis["ids"]) == len(hypothesis["token_scores"]) <= 9
        assert isinstance(hypothesis["text"], str)
        assert all(score <= 0 for score in hypothesis["token_scores"])


def test_finish_reason_tells_the_limit_from_the_end_token(decode):
    def ending(shortest: int) -> tuple[str, int]:
        ((best,),) = decode([line(1, min_target_tokens=shortest, max_target_tokens=3)])
        return best["finish_reason"], len(best["ids"]) - 1

    assert ending(3) == ("LENGTH", 3)
    assert ending(0) == ("STOP", 0)


def test_text_is_the_decoding_of_its_ids(decode, bundle):
    from sentencepiece import SentencePieceProcessor

    pieces = SentencePieceProcessor(model_file=str(bundle / "source.spm"))
    text = "Bado runa. Kelim 3?"
    by_text, by_ids = decode([{"text": text}, {"source_ids": [*pieces.encode(text), EOS]}])
    assert by_text == by_ids
    assert by_text[0]["text"] == pieces.decode(by_text[0]["ids"][:-1])


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
def test_score_is_the_sum_over_length_to_the_penalty(decode, penalty):
    for hypotheses in decode(with_options(SOURCES, length_penalty=penalty, n_best=5)):
        for h in hypotheses:
            # 1e-5: sums of float32
            assert h["score"] == pytest.approx(
                sum(h["token_scores"]) / len(h["ids"]) ** penalty, rel=1e-5
            )
        scores = [h["score"] for h in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(h["ids"]) for h in hypotheses}) == len(hypotheses) == 5


def test_unnormalised_scores_are_sums(decode):
    ((best,),) = decode([line(1, normalize_scores=False, length_penalty=1.0)])
    assert best["score"] == pytest.approx(sum(best["token_scores"]), rel=1e-5)


def test_n_best_truncates_the_list(decode):
    five = with_options(SOURCES, n_best=5)
    for full, one in zip(decode(five), decode(SOURCES), strict=True):
        assert full[:1] == one


def test_answers_are_batch_invariant(decode):
    alone = decode(SOURCES, "--batch", "1")
    assert decode(SOURCES, "--batch", "8") == alone
    assert decode(SOURCES, "--batch", "3") == alone
    assert decode(SOURCES[::-1], "--batch", "5")[::-1] == alone
    assert decode(SOURCES, threads=1) == alone


def test_answers_keep_the_order_of_lines(decode):
    # Alternating short and long targets, far more lines than sequences in flight.
    lines = [
        line(seed, 5, min_target_tokens=n, max_target_tokens=n)
        for seed, n in enumerate([1, 12] * 20)
    ]
    for wanted, (best,) in zip(lines, decode(lines, "--batch", "4", "--beam", "2"), strict=True):
        assert len(best["ids"]) == wanted["options"]["max_target_tokens"] + 1


def test_beam_1_is_greedy(decode):
    ((greedy,),) = decode([line(5, beam_size=1)])
    # With the tokens so far as a forced prefix, greedy search chooses the same next token.
    forced = [line(5, prefix=greedy["ids"][:n], beam_size=1) for n in range(1, len(greedy["ids"]))]
    assert all(best == greedy for (best,) in decode(forced))


def test_prefix_is_forced_and_scored(decode):
    prefix = [17, 5, 99]
    for hypotheses in decode(
        [line(2, prefix=prefix, beam_size=beam, n_best=beam) for beam in (1, 4)]
    ):
        for h in hypotheses:
            assert h["ids"][:3] == prefix
            assert all(math.isfinite(score) for score in h["token_scores"])


def test_limits_exclude_the_end_token(decode):
    for best, wanted in zip(
        decode([line(3, min_target_tokens=n, max_target_tokens=n) for n in (0, 1, 7)]),
        (1, 2, 8),
        strict=True,
    ):
        assert len(best[0]["ids"]) == wanted
    for (best,) in decode([line(seed, min_target_tokens=10) for seed in range(4)]):
        assert 11 <= len(best["ids"]) <= 13


def test_no_repeat_ngram_size_forbids_repeats(decode):
    for (best,) in decode(
        [line(seed, 9, no_repeat_ngram_size=1, min_target_tokens=12) for seed in range(4)]
    ):
        assert len(set(best["ids"])) == len(best["ids"])


def test_max_ngram_repeats_is_that_of_the_source_if_higher(decode):
    def longest_run(ids: list[int]) -> int:
        return max(len(list(group)) for _, group in itertools.groupby(ids))

    plain, looping = [5, 6, 7, 8, 2], [5, 9, 9, 9, 9, 9, 2]
    options = {"options": {"max_ngram_repeats": 2, "min_target_tokens": 12, "beam_size": 1}}
    for seed in range(4):
        sources = [[*source(seed, 9)[:-1], *tail] for tail in (plain, looping)]
        answers = decode([{"source_ids": ids} | options for ids in sources])
        assert longest_run(answers[0][0]["ids"]) <= 2
        assert longest_run(answers[1][0]["ids"]) <= 5


def test_line_overrides_flags_override_bundle(decode):
    plain = {"source_ids": source(1, 9)}
    assert len(decode([plain | {"options": {"n_best": 5}}])[0]) == 5  # the bundle's default beam
    assert len(decode([plain], "--beam", "3", "--n-best", "3")[0]) == 3
    options = {"max_target_tokens": 4, "min_target_tokens": 4, "n_best": 2}
    flags = ("--max-target-tokens", "6", "--min-target-tokens", "6", "--n-best", "3")
    of_line, of_flags = decode([plain | {"options": options}, plain], *flags)
    assert (len(of_line), len(of_line[0]["ids"])) == (2, 5)
    assert (len(of_flags), len(of_flags[0]["ids"])) == (3, 7)


def test_line_may_widen_the_beam(decode):
    assert len(decode([line(1, beam_size=32, n_best=32)], "--batch", "1", "--beam", "1")[0]) == 32


def test_bundle_without_tokenizers_serves_ids(run, bundle_without_tokenizer):
    done = run(bundle_without_tokenizer, lines=[line(1), {"text": "Bado."}])
    assert done.status == 1
    assert done.answers[0]["hypotheses"][0]["text"] is None
    assert (
        done.answers[1]["error"]["message"]
        == "the bundle has no tokenizer: give source_ids instead of text"
    )


def test_interactive_line_is_answered_at_once(binary, bundle):
    command = [str(binary), "--bundle", str(bundle), "--compute", "float32", "--threads", "1"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        for seed in range(3):
            process.stdin.write(json.dumps(line(seed)) + "\n")
            process.stdin.flush()
            assert "hypotheses" in json.loads(process.stdout.readline())
        process.stdin.close()
        assert process.wait(60) == 0


# The engine compared with the eager Python model.


def test_token_scores_equal_training_path(decode):
    """Exported and decoded step by step = the trained model on the whole target at once."""
    model = eager_model()
    asked = with_options(SOURCES, n_best=5)
    for wanted, hypotheses in zip(asked, decode(asked), strict=True):
        for h in hypotheses:
            # 1e-4: float32 sums in another order
            scores = forced_scores(model, wanted["source_ids"], h["ids"])
            assert h["token_scores"] == pytest.approx(scores, abs=1e-4)


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_hypotheses_equal_python_search(decode, beam):
    from linnet_model.export.search import Options, beam_search
    from linnet_model.network import ops

    ops.load()
    options = Options(beam_size=beam, max_target_tokens=12)
    found = beam_search(eager_model(), [x["source_ids"] for x in SOURCES], options, maximum=1024)
    for hypotheses, expected in zip(
        decode(with_options(SOURCES, beam_size=beam, n_best=beam)), found, strict=True
    ):
        assert [h["score"] for h in hypotheses] == pytest.approx(
            [h.score for h in expected], abs=1e-4
        )
        assert [h["ids"] for h in hypotheses] == [h.ids for h in expected]


@pytest.mark.bfloat16_gemm
def test_bfloat16_error_equals_python_model(decode):
    prefix = source(50, 13)[:-1]
    lines = [line(seed, 9 + seed, prefix=prefix, beam_size=1) for seed in range(16)]
    rounded = [best["token_scores"] for (best,) in decode(lines, "--compute", "bfloat16")]
    exact = [best["token_scores"] for (best,) in decode(lines)]
    in_python = eager_model().bfloat16()
    target = [*prefix, EOS]
    eager = [forced_scores(in_python, x["source_ids"], target) for x in lines]

    def loss(scores: list[list[float]]) -> float:
        """Root mean square over 208 tokens."""
        pairs = [p for a, b in zip(scores, exact, strict=True) for p in zip(a, b, strict=True)]
        return math.sqrt(sum((a - b) ** 2 for a, b in pairs) / len(pairs))

    # Step by step the rounding errors differ, but their number and size are the same: the mean of
    # 208 of them is accurate to a tenth.
    assert 0 < loss(rounded) < 1.5 * loss(eager)


def test_damaged_bundle_exits_with_status_3(run, bundle, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(bundle, copy)
    with (copy / "model.pt").open("ab") as file:
        file.write(b"x")
    done = run(copy, lines=[line(1)])
    assert (done.status, done.answers) == (3, [])
    assert "model.pt" in done.stderr
