"""Decodes with servers, over gRPC."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import grpc
import linnet

from .rows import LENGTH, STOP, Answer, Came, CorpusError, Row, ignore

# Not the fault of the row: it is sent a second time.
_AGAIN = {
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
}
_PAIRS = 64  # of a call
_REASONS = {1: STOP, 2: LENGTH}  # of linnet.v1.FinishReason


class Fleet:
    """Back end that sends documents to servers, with priority batch.

    Servers split texts into sentences, check languages, and apply the glossary and the options of
    `settings`, whose contents are empty. Each server takes rows as fast as it answers them; the
    rows of a server that is lost for the timeout of its options go to the others. All must serve
    the same weights in the same compute type, or CorpusError is raised. Not thread-safe."""

    name, processor = "fleet", ""

    def __init__(self, servers: Sequence[str | linnet.Options], settings: linnet.TranslateRequest):
        if not servers:
            raise CorpusError("no server is named")
        self._settings = linnet.TranslateRequest()
        self._settings.CopyFrom(settings)
        self._settings.priority = linnet.Priority.PRIORITY_BATCH
        self._clients = [linnet.Client(server) for server in servers]
        models = {self._model(client) for client in self._clients}
        if len(models) > 1:
            raise CorpusError(f"the servers differ in weights or compute type: {sorted(models)}")
        self.bundle, self.compute = models.pop()

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def _model(self, client: linnet.Client) -> tuple[str, str]:
        """Digest and compute type of the model that answers."""
        wanted, to = self._settings.model, self._settings.target_language_code
        source = self._settings.source_language_code
        try:
            models = client.list_models().models
        except linnet.LinnetError as error:
            raise CorpusError(f"{client.options.server}: {error}") from error
        found = [
            model
            for model in models
            if (not wanted or model.name == wanted.partition("@")[0])
            and any(
                pair.target_language_code == to and source in ("", pair.source_language_code)
                for pair in model.language_pairs
            )
        ]
        if len(found) != 1:
            names = ", ".join(model.name for model in found or models)
            raise CorpusError(
                f"{client.options.server} has {len(found)} models for these languages: name one of "
                f"{names} and its languages"
            )
        return found[0].sha256, found[0].compute_type

    def answers(self, rows: Sequence[Row], came: Came = ignore) -> list[Answer]:
        if any(row.seed is not None for row in rows):
            raise CorpusError("a seed for each row needs --bundle in place of --server")
        found: dict[int, Answer] = {}
        groups: defaultdict[tuple[str, bool], list[int]] = defaultdict(list)
        for number, row in enumerate(rows):
            groups[row.language, row.target is not None].append(number)
        for (language, scored), numbers in groups.items():
            job = _Job(rows, numbers, self._with_language(language), found, came)
            job.run(self._clients, self._score if scored else self._translate)
        return [found[number] for number in range(len(rows))]

    def _with_language(self, language: str) -> linnet.TranslateRequest:
        if not language:
            return self._settings
        settings = linnet.TranslateRequest()
        settings.CopyFrom(self._settings)
        settings.source_language_code = language
        return settings

    def _fail(self, job: _Job, number: int, error: linnet.LinnetError) -> None:
        if error.code in _AGAIN and number not in job.again:
            job.again.add(number)  # the next round sends it
            return
        request = f" (request {error.request_id})" if error.request_id else ""
        job.put(number, Answer(error=f"{error}{request}"))

    def _translate(self, client: linnet.Client, job: _Job) -> None:
        taken: list[int] = []

        def texts() -> Iterator[str]:
            while (number := job.take()) is not None:
                taken.append(number)
                yield job.rows[number].text

        for line, result in client.translate_document(job.settings, texts()):
            if isinstance(result, linnet.LinnetError):
                self._fail(job, taken[line], result)
                continue
            answer = result.translations[0]
            score = sum(part.score for part in answer.segments)
            job.put(
                taken[line],
                Answer(
                    translation=answer.text,
                    score=score / len(answer.segments) if answer.segments else None,
                    finish_reason=_REASONS.get(answer.finish_reason),
                    warnings=tuple(warning.reason for warning in answer.warnings),
                    tokens=answer.usage.target_tokens,
                ),
            )

    def _score(self, client: linnet.Client, job: _Job) -> None:
        settings = job.settings

        def ask(numbers: list[int]) -> list[linnet.TargetScore]:
            return client.score(
                [(job.rows[number].text, job.rows[number].target or "") for number in numbers],
                source=settings.source_language_code,
                to=settings.target_language_code,
                model=settings.model,
            )

        while numbers := [it for _ in range(_PAIRS) if (it := job.take()) is not None]:
            try:
                scored = ask(numbers)
            except linnet.LinnetError:  # of one pair: find it
                for number in numbers:
                    try:
                        job.put(number, self._scored(ask([number])[0]))
                    except linnet.LinnetError as error:
                        self._fail(job, number, error)
            else:
                for number, score in zip(numbers, scored, strict=True):
                    job.put(number, self._scored(score))

    def _scored(self, scored: linnet.TargetScore) -> Answer:
        return Answer(
            score=scored.score,
            tokens=scored.usage.target_tokens,
        )


class _Job:
    """Rows of one language, which all servers take from. Thread-safe."""

    def __init__(
        self,
        rows: Sequence[Row],
        numbers: Sequence[int],
        settings: linnet.TranslateRequest,
        found: dict[int, Answer],
        came: Came,
    ):
        self.rows, self.settings, self.again = rows, settings, set[int]()
        self._numbers, self._found, self._came = numbers, found, came
        self._waiting: deque[int] = deque()
        self._lock = threading.Lock()  # around `came`

    def take(self) -> int | None:
        try:
            return self._waiting.popleft()
        except IndexError:
            return None

    def put(self, number: int, answer: Answer) -> None:
        with self._lock:
            self._found[number] = answer
            self._came(answer)

    def run(
        self, clients: Sequence[linnet.Client], ask: Callable[[linnet.Client, _Job], None]
    ) -> None:
        """Asks the servers until every row has an answer, and leaves out those that are lost."""
        serving = list(clients)
        while left := [number for number in self._numbers if number not in self._found]:
            self._waiting = deque(left)
            with ThreadPoolExecutor(len(serving)) as pool:
                asked = {client: pool.submit(ask, client, self) for client in serving}
            lost: dict[linnet.Client, linnet.LinnetError] = {}
            for client, asking in asked.items():
                try:
                    asking.result()
                except linnet.LinnetError as error:
                    lost[client] = error
            serving = [client for client in serving if client not in lost]
            if not serving:
                raise CorpusError("; ".join(f"{it.options.server}: {lost[it]}" for it in lost))
