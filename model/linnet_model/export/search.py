"""Beam search over a scripted module, with the rules of fairseq's SequenceGenerator.

The C++ engine serves; this is the same search in Python, for exports and for comparison.

  - candidates are the best 2 * beam summed log-probabilities, not normalised by length;
  - an end token finishes a hypothesis only if it ranks among the first `beam`; else it is dropped;
  - the `beam` best other candidates continue; a sequence ends when `beam` hypotheses are finished,
    or at its limit, where only the end token is allowed;
  - score = sum of log-probabilities / length^penalty, both with the end token;
  - a grammar, if there is one, keeps targets valid text (grammar.py).

It does not copy what the vocabulary cannot spell, as the server does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

import sentencepiece
import torch
from torch import Tensor
from tqdm import tqdm

from linnet_model.export.grammar import START, Grammar, State
from linnet_model.network.encoder_decoder import EOS, PAD, UNK
from linnet_model.network.model_config import require

MAX_REPEATED_NGRAM = 16  # as in model/runtime/search/repeats.h


@dataclass
class Options:
    beam_size: int = 5
    length_penalty: float = 1.0
    min_target_tokens: int = 1
    max_target_ratio: float = 0.0
    max_target_tokens: int = 200
    no_repeat_ngram_size: int = 0
    max_ngram_repeats: int = 0
    unknown_penalty: float = 0.0

    @staticmethod
    def of_manifest(manifest: dict[str, Any]) -> Options:
        options = manifest["default_options"]
        others = sorted(options.keys() - {each.name for each in fields(Options)})
        require(
            not others,
            f"the model has {', '.join(others)} by default, which the search in Python does not "
            "have: decode with linnet-decode",
        )
        return Options(**options)

    def limit(self, source_tokens: int, maximum: int) -> int:
        """Returns the max target tokens, without the end token; `source_tokens` includes it."""
        return min(maximum, int(self.max_target_ratio * source_tokens + self.max_target_tokens))

    def repeats(self, source: list[int]) -> int:
        """Returns max_ngram_repeats, or what the source itself has if that is more."""
        return self.max_ngram_repeats and max(self.max_ngram_repeats, consecutive_repeats(source))


@dataclass
class Hypothesis:
    ids: list[int]  # with the end token
    score: float


@dataclass
class Sequence:
    limit: int
    repeats: int  # max times in a row that an n-gram occurs; 0: no limit
    tokens: list[list[int]]  # per unfinished row
    scores: list[float]
    parents: list[int]  # row that each of them extended in the last step
    states: list[State]  # of each of them in the grammar
    finished: list[Hypothesis] = field(default_factory=list)
    done: bool = False


def banned(tokens: list[int], size: int) -> list[int]:
    """Returns the tokens that would repeat an n-gram of this size. The leading end token counts, as
    in fairseq."""
    history = [EOS, *tokens]
    if size <= 0 or len(history) < size:
        return []
    tail = history[len(history) - size + 1 :]
    return [
        history[i + size - 1]
        for i in range(len(history) - size + 1)
        if history[i : i + size - 1] == tail
    ]


def tokens_in_a_row(n: int, times: int) -> int:
    """Returns how many tokens are `times` occurrences of n tokens in a row. From the third on, the
    last one counts without its last token, which stands between words: "again, again, again"."""
    return n * times - (n > 1 and times > 2)


def consecutive_repeats(tokens: list[int]) -> int:
    """Max times in a row that 1 to MAX_REPEATED_NGRAM tokens stand in a sequence."""
    most = min(len(tokens), 1)
    for n in range(1, MAX_REPEATED_NGRAM + 1):
        equal = 0
        for i in range(n, len(tokens)):
            equal = equal + 1 if tokens[i] == tokens[i - n] else 0
            while tokens_in_a_row(n, most + 1) <= equal + n:
                most += 1
    return most


def repeating(tokens: list[int], times: int) -> list[int]:
    """Returns the tokens that would make an n-gram occur more than `times` times in a row."""
    found = []
    for n in range(1, MAX_REPEATED_NGRAM + 1):
        before = tokens_in_a_row(n, times + 1) - 1  # the next token would be the last
        if times > 0 and before <= len(tokens):
            end = len(tokens)
            if tokens[end - before + n :] == tokens[end - before : end - n]:
                found.append(tokens[end - n])
    return found


@torch.no_grad()
def beam_search(
    module: torch.jit.ScriptModule,
    sources: list[list[int]],
    options: Options,
    maximum: int,
    start: int = EOS,
    grammar: Grammar | None = None,
) -> list[list[Hypothesis]]:
    """Decodes all sources (ids, end token last) as one batch; returns the finished hypotheses of
    each source, best first.

    maximum: the model's limit of target tokens. start: the first input of the decoder.
    grammar: of the targets; None: any tokens.
    """
    beam, count = options.beam_size, len(sources)
    rows = count * beam
    lengths = torch.tensor([len(s) for s in sources], dtype=torch.int32)
    source = torch.full((count, int(lengths.max())), PAD, dtype=torch.int64)
    for i, ids in enumerate(sources):
        source[i, : len(ids)] = torch.tensor(ids)
    cache = [kv.contiguous() for kv in module.encode(source, lengths)]  # one block per source
    state = module.new_state(rows)
    window = max(ring.size(0) for ring in state)  # positions of the widest mixer
    blocks = (
        torch.arange(count, dtype=torch.int32).repeat_interleave(beam).unsqueeze(1).contiguous()
    )
    row_lengths = lengths.repeat_interleave(beam).contiguous()
    backpointers = torch.arange(rows, dtype=torch.int32).unsqueeze(1).repeat(1, window)
    sequences = [
        Sequence(
            options.limit(len(s), maximum),
            options.repeats(s),
            [[] for _ in range(beam)],
            [0.0] * beam,
            list(range(beam)),
            [START] * beam,
        )
        for s in sources
    ]
    last = torch.full((rows,), start, dtype=torch.int64)
    for step in range(max(s.limit for s in sequences) + 1):
        positions = torch.full((rows,), step, dtype=torch.int32)
        logits = module.step(last, positions, backpointers, blocks, row_lengths, cache, state)
        logprobs = logits.float().log_softmax(dim=-1)
        parents = list(range(rows))
        for i, sequence in enumerate(sequences):
            if not sequence.done:
                rows_of = slice(i * beam, (i + 1) * beam)
                advance(sequence, logprobs[rows_of], step, options, grammar)
                parents[i * beam : (i + 1) * beam] = [i * beam + p for p in sequence.parents]
                last[i * beam : (i + 1) * beam] = torch.tensor([t[-1] for t in sequence.tokens])
        if all(s.done for s in sequences):
            break
        own = torch.arange(rows, dtype=torch.int32).unsqueeze(1)
        backpointers = torch.cat([own, backpointers[parents][:, :-1]], dim=1).contiguous()
    return [sorted(s.finished, key=lambda h: -h.score)[:beam] for s in sequences]


def advance(
    sequence: Sequence, logprobs: Tensor, step: int, options: Options, grammar: Grammar | None
) -> None:
    """Extends one sequence by a token, given the log-probabilities [beam, V] of its rows."""
    beam, vocabulary = logprobs.shape
    logprobs[:, PAD] = -math.inf
    logprobs[:, UNK] -= options.unknown_penalty
    if step >= sequence.limit:
        end = logprobs[:, EOS].clone()
        logprobs.fill_(-math.inf)
        logprobs[:, EOS] = end
    elif step < options.min_target_tokens:
        logprobs[:, EOS] = -math.inf
    for row, (previous, state) in enumerate(zip(sequence.tokens, sequence.states, strict=True)):
        banned_here: list[int] = []
        if not state.rest:  # inside a character only its bytes are allowed
            banned_here = banned(previous, options.no_repeat_ngram_size)
            banned_here += repeating(previous, sequence.repeats)
        for token in banned_here:
            if token != EOS:
                logprobs[row, token] = -math.inf
        if grammar is not None and step < sequence.limit:
            logprobs[row, grammar.forbidden(state, sequence.limit - step - 1)] = -math.inf
    totals = logprobs + torch.tensor(sequence.scores).unsqueeze(1)
    considered = totals[:1] if step == 0 else totals
    best, indices = considered.reshape(-1).topk(min(2 * beam, considered.numel() - 1))
    tokens: list[list[int]] = []
    scores: list[float] = []
    parents: list[int] = []
    for rank, (score, index) in enumerate(zip(best.tolist(), indices.tolist(), strict=True)):
        row, token = divmod(index, vocabulary)
        if token == EOS:
            if rank < beam and score > -math.inf and len(sequence.finished) < beam:
                ids = [*sequence.tokens[row], EOS]
                sequence.finished.append(
                    Hypothesis(ids, score / len(ids) ** options.length_penalty)
                )
        elif len(tokens) < beam:
            tokens.append([*sequence.tokens[row], token])
            scores.append(score)
            parents.append(row)
    sequence.done = len(sequence.finished) >= beam or step >= sequence.limit or not tokens
    # With a vocabulary smaller than the beam, the remaining rows have score -inf and never win.
    while 0 < len(tokens) < beam:
        tokens.append(tokens[0])
        scores.append(-math.inf)
        parents.append(parents[0])
    if not tokens:
        return
    if grammar is not None:
        before = sequence.states
        sequence.states = [
            grammar.after(before[p], t[-1]) for p, t in zip(parents, tokens, strict=True)
        ]
    sequence.tokens, sequence.scores, sequence.parents = tokens, scores, parents


def answer_texts(
    module: torch.jit.ScriptModule,
    reading: sentencepiece.SentencePieceProcessor,
    writing: sentencepiece.SentencePieceProcessor,
    texts: list[str],
    options: Options,
    maximum: int,
    longest: int = 0,
    batch: int = 32,
    before: tuple[int, ...] = (),
    grammar: Grammar | None = None,
) -> list[str]:
    """Returns the best answer to each text. longest: max source tokens read, with the end token; 0:
    all. before: ids that each source begins with. grammar: of the answers."""
    sources = [
        [*[*before, *reading.encode(text)][: longest - 1 if longest else None], EOS]
        for text in texts
    ]
    order = sorted(range(len(texts)), key=lambda i: len(sources[i]))
    answers = [""] * len(texts)
    for begin in tqdm(range(0, len(order), batch), unit="batch", disable=None):
        part = order[begin : begin + batch]
        found = beam_search(module, [sources[i] for i in part], options, maximum, grammar=grammar)
        for i, hypotheses in zip(part, found, strict=True):
            answers[i] = writing.decode(hypotheses[0].ids[:-1])
    return answers
