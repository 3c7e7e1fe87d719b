"""Measures of a model while it trains: loss over the validation pairs, BLEU or ROUGE and samples
over a few.

The search here is greedy, over the training path. What is served is scored by `linnet_model.score`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy
import sacrebleu
import sentencepiece
import torch
from rouge_score import rouge_scorer

from linnet_model.data import Corpus, make_batch, sequential_batches
from linnet_model.dropout import KeepAll
from linnet_model.transducer import EOS, PAD, Transducer

ROUGE = ("rouge1", "rouge2", "rougeL")


@torch.no_grad()
def validation_loss(
    model: Transducer, corpus: Corpus, device: torch.device, target_tokens: int, source_tokens: int
) -> dict[str, float]:
    """Negative log-likelihood per target token, for each domain and for all."""
    totals: dict[str, float] = defaultdict(float)
    tokens: dict[str, int] = defaultdict(int)
    keep = KeepAll()
    for rows, batch in sequential_batches(corpus, target_tokens, source_tokens):
        moved = batch.to(device)
        features = model(moved.source, moved.lengths, moved.previous(), keep)
        logits = model.project(features).float()
        nll = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), moved.target, ignore_index=PAD, reduction="none"
        ).sum(dim=1)
        for row, loss in zip(rows, nll.tolist(), strict=True):
            totals[corpus.domains[row]] += loss
            tokens[corpus.domains[row]] += int(corpus.target_lengths[row])
    result = {domain: totals[domain] / tokens[domain] for domain in sorted(totals)}
    result["all"] = sum(totals.values()) / sum(tokens.values())
    return result


@torch.no_grad()
def greedy(
    model: Transducer, source: torch.Tensor, lengths: torch.Tensor, max_tokens: int
) -> list[list[int]]:
    """source: int64 [B, S], lengths: [B] -> the most likely tokens of each row, without the end
    token."""
    keep = KeepAll()
    memory, bias = model.encode_whole(source, lengths, keep)
    tokens = torch.full((source.size(0), 1), EOS, dtype=torch.int64, device=source.device)
    done = torch.zeros(source.size(0), dtype=torch.bool, device=source.device)
    for _ in range(max_tokens):
        logits = model.project(model.decode_whole(tokens, memory, bias, keep)[:, -1])
        logits[:, PAD] = -math.inf
        best = torch.where(done, EOS, logits.argmax(dim=-1))
        tokens = torch.cat([tokens, best.unsqueeze(1)], dim=1)
        done |= best == EOS
        if bool(done.all()):
            break
    rows = tokens[:, 1:].tolist()
    return [row[: row.index(EOS)] if EOS in row else row for row in rows]


def rouge(references: Sequence[Sequence[str]], predictions: Sequence[str]) -> dict[str, float]:
    """Mean F1 of ROUGE-1, 2, L in percent, with stemming; of several references the best for each
    measure."""
    scorer = rouge_scorer.RougeScorer(list(ROUGE), use_stemmer=True)
    sums = dict.fromkeys(ROUGE, 0.0)
    for wanted, predicted in zip(references, predictions, strict=True):
        scores = [scorer.score(reference, predicted) for reference in wanted]
        for kind in ROUGE:
            sums[kind] += max(score[kind].fmeasure for score in scores)
    return {kind: 100.0 * total / len(predictions) for kind, total in sums.items()}


def text_scores(
    task: str, references: Sequence[str], predictions: Sequence[str]
) -> dict[str, float]:
    if task == "translate":
        return {
            "bleu": sacrebleu.corpus_bleu(list(predictions), [list(references)]).score,
            "chrf": sacrebleu.corpus_chrf(list(predictions), [list(references)]).score,
        }
    return rouge([[reference] for reference in references], predictions)


def decoded_sample(
    model: Transducer,
    corpus: Corpus,
    tokenizer: sentencepiece.SentencePieceProcessor,
    rows: int,
    device: torch.device,
    task: str,
) -> tuple[dict[str, float], list[tuple[str, str, str]]]:
    """Scores of the first `rows` pairs, and (source, reference, answer) of each."""
    chosen = numpy.arange(min(rows, len(corpus)))
    chosen = chosen[numpy.argsort(corpus.source_lengths[chosen], kind="stable")]
    answers: dict[int, str] = {}
    for begin in range(0, len(chosen), 50):
        part = chosen[begin : begin + 50]
        batch = make_batch(corpus, part).to(device)
        limit = 40 if task == "summarize" else int(batch.lengths.max()) * 2 + 10
        for row, ids in zip(part, greedy(model, batch.source, batch.lengths, limit), strict=True):
            answers[int(row)] = tokenizer.decode(ids)
    texts = [
        (
            tokenizer.decode(corpus.source(row)[:-1].tolist()),
            tokenizer.decode(corpus.target(row)[:-1].tolist()),
            answers[row],
        )
        for row in sorted(answers)
    ]
    return text_scores(task, [t[1] for t in texts], [t[2] for t in texts]), texts
