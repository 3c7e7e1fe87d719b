"""Servers: rows that are shared, sent again, refused and scored. The servers shout."""

from __future__ import annotations

import pickle
from functools import partial
from types import SimpleNamespace

import grpc
import linnet
import pytest
from linnet_corpus import CorpusError, Fleet, Row

SETTINGS = linnet.TranslateRequest(source_language_code="en", target_language_code="de")


class Client:
    """A server by the name of its address: "lost" fails after some lines, "other" has other
    weights, "busy" fails each line the first time, "broken" every time."""

    def __init__(self, server: str):
        self.options = SimpleNamespace(server=server)
        self.asked: list[str] = []

    def list_models(self) -> linnet.ListModelsResponse:
        answer = linnet.ListModelsResponse()
        sha256 = "b" * 64 if self.options.server == "other" else "a" * 64
        model = answer.models.add(name="en-de", sha256=sha256, compute_type="int8")
        model.language_pairs.add(source_language_code="en", target_language_code="de")
        return answer

    def translate_document(self, settings, lines):
        assert settings.priority == linnet.Priority.PRIORITY_BATCH
        for number, line in enumerate(lines):
            first = line not in self.asked
            self.asked.append(line)
            if self.options.server == "lost" and number == 3:
                raise linnet.LinnetError.local("gone", grpc.StatusCode.UNAVAILABLE)
            if line == "bad":
                yield number, linnet.LinnetError.local("bad text", reason="TEXT_TOO_LONG")
            elif self.options.server == "broken" or (self.options.server == "busy" and first):
                yield number, linnet.LinnetError.local("busy", grpc.StatusCode.INTERNAL)
            else:
                answer = linnet.TranslateResponse()
                translation = answer.translations.add(text=line.upper(), finish_reason=1)
                translation.segments.add(score=-0.5)
                translation.usage.target_tokens = 2
                translation.warnings.add(reason="FACTS_DIFFER")
                yield number, answer

    def score(self, pairs, *, source, to, model):
        if any(text == "bad" for text, _ in pairs):
            raise linnet.LinnetError.local("bad pair")
        return [linnet.TargetScore(score=-len(target) / 8) for _, target in pairs]

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linnet, "Client", Client)


ROWS = [Row(f"row {number}") for number in range(100)]


@pytest.mark.parametrize("servers", [["a"], ["a", "b"], ["a", "lost"], ["busy", "lost"]])
def test_every_row_is_answered_in_order(servers):
    came = []
    answers = Fleet(servers, SETTINGS).answers(ROWS, came.append)
    assert [it.translation for it in answers] == [row.text.upper() for row in ROWS]
    assert {(it.score, it.finish_reason, it.warnings, it.tokens) for it in answers} == {
        (-0.5, "STOP", ("FACTS_DIFFER",), 2)
    }
    assert len(came) == len(ROWS)


def test_refused_row_is_a_value_with_its_reason():
    answers = Fleet(["a"], SETTINGS).answers([Row("a"), Row("bad"), Row("b", language="en-GB")])
    assert [it.translation for it in answers] == ["A", None, "B"]
    assert answers[1].error == "INVALID_ARGUMENT: bad text (TEXT_TOO_LONG)"


def test_row_that_fails_twice_is_a_value():
    (answer,) = Fleet(["broken"], SETTINGS).answers(ROWS[:1])
    assert answer.error == "INTERNAL: busy"


def test_pairs_are_scored_and_a_bad_one_is_a_value():
    rows = [Row("a", target="AA"), Row("bad", target="B"), Row("c", target="CCCC")]
    answers = Fleet(["a", "b"], SETTINGS).answers(rows)
    assert [it.score for it in answers] == [-0.25, None, -0.5]
    assert answers[1].error == "INVALID_ARGUMENT: bad pair"


def test_job_ends_if_no_server_is_left():
    with pytest.raises(CorpusError, match="lost: UNAVAILABLE: gone"):
        Fleet(["lost"], SETTINGS).answers(ROWS[:8])


def test_servers_must_serve_the_same_weights_for_the_languages():
    with pytest.raises(CorpusError, match="the servers differ in weights or compute type"):
        Fleet(["a", "other"], SETTINGS)
    with pytest.raises(CorpusError, match="a has 0 models for these languages: name one of en-de"):
        Fleet(["a"], linnet.TranslateRequest(target_language_code="fr"))


def test_what_makes_a_fleet_can_be_sent_to_a_worker_where_its_channels_are_made():
    make = pickle.loads(pickle.dumps(partial(Fleet, ["a"], SETTINGS)))
    (answer,) = make().answers([Row("a")])
    assert answer.translation == "A"


def test_seed_of_a_row_needs_a_bundle():
    with pytest.raises(CorpusError, match="a seed for each row needs --bundle"):
        Fleet(["a"], SETTINGS).answers([Row("a", seed=1)])
