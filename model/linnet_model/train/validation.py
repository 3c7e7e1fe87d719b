"""Validation during training: loss over the validation rows; BLEU, ROUGE or accuracy and samples
over a few rows.

The search here is greedy and uses the training path. linnet-score measures what is served.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy
import sacrebleu
import sentencepiece
import torch

from linnet_model.languages import is_unspaced
from linnet_model.network.dropout import Dropout, KeepAll
from linnet_model.network.encoder_decoder import EOS, PAD, EncoderDecoder
from linnet_model.train.datasets import Batch, PairDataset, make_batch, sequential_batches
from linnet_model.train.objectives import LanguageModelDataset
from linnet_model.train.rouge import rouge


def features_of(model: EncoderDecoder, batch: Batch, drop: Dropout) -> torch.Tensor:
    """Returns features [B, T, d] of the training path; a language model has no source."""
    if not model.has_source:
        return model.decode_whole(batch.previous(), None, None, drop)
    return model(batch.source, batch.lengths, batch.previous(), drop, batch.padded)


@torch.no_grad()
def token_losses(
    model: EncoderDecoder,
    dataset: PairDataset,
    device: torch.device,
    target_tokens: int,
    source_tokens: int,
) -> dict[str, tuple[float, int]]:
    """Returns the summed negative log-likelihood and the number of target tokens of each domain,
    and of all as "all"."""
    totals: dict[str, float] = defaultdict(float)
    tokens: dict[str, int] = defaultdict(int)
    keep = KeepAll()
    for rows, batch in sequential_batches(dataset, target_tokens, source_tokens):
        moved = batch.to(device)
        logits = model.project(features_of(model, moved, keep)).float()
        nll = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), moved.target, ignore_index=PAD, reduction="none"
        ).sum(dim=1)
        for row, loss in zip(rows, nll.tolist(), strict=True):
            totals[dataset.domains[row]] += loss
            tokens[dataset.domains[row]] += int(dataset.target_lengths[row])
    result = {domain: (totals[domain], tokens[domain]) for domain in sorted(totals)}
    result["all"] = sum(totals.values()), sum(tokens.values())
    return result


def perplexities(
    dataset: PairDataset, losses: dict[str, tuple[float, int]], domain: str = "all"
) -> dict[str, float]:
    """Returns the perplexity per token and, for a language model, per word, with the end of a text
    as one word. The latter does not depend on the tokenizer and compares models."""
    nll, tokens = losses[domain]
    found = {"perplexity": math.exp(min(nll / tokens, 700.0))}  # e^710 overflows
    if type(dataset) is LanguageModelDataset:
        words = dataset.words.total() if domain == "all" else dataset.words[domain]
        found["word_perplexity"] = math.exp(min(nll / words, 700.0))
    return found


@torch.no_grad()
def greedy(
    model: EncoderDecoder, source: torch.Tensor, lengths: torch.Tensor, max_tokens: int
) -> list[list[int]]:
    """source: int64 [B, S], lengths: [B] -> greedily decoded tokens of each row, without the end
    token. Learned positions bound them as well."""
    keep, positions = KeepAll(), model.enter_target
    if positions.table is not None:
        max_tokens = min(max_tokens, positions.table.num_embeddings - positions.first)
    encoded, bias = model.encode_whole(source, lengths, keep)
    tokens = torch.full((source.size(0), 1), EOS, dtype=torch.int64, device=source.device)
    done = torch.zeros(source.size(0), dtype=torch.bool, device=source.device)
    for _ in range(max_tokens):
        logits = model.project(model.decode_whole(tokens, encoded, bias, keep)[:, -1])
        logits[:, PAD] = -math.inf
        best = torch.where(done, EOS, logits.argmax(dim=-1))
        tokens = torch.cat([tokens, best.unsqueeze(1)], dim=1)
        done |= best == EOS
        if bool(done.all()):
            break
    rows = tokens[:, 1:].tolist()
    return [row[: row.index(EOS)] if EOS in row else row for row in rows]


def exact_match(references: Sequence[str], predictions: Sequence[str]) -> float:
    """Returns the share of answers that are the reference, in percent."""
    pairs = list(zip(references, predictions, strict=True))
    return 100.0 * sum(reference == prediction for reference, prediction in pairs) / len(pairs)


def label_scores(references: Sequence[str], predictions: Sequence[str]) -> dict[str, float]:
    """Returns accuracy, and F1 averaged over the labels of the references, in percent. An answer
    that is not a label counts as an error."""
    pairs = list(zip(references, predictions, strict=True))
    wanted, given = Counter(references), Counter(predictions)
    right = Counter(reference for reference, prediction in pairs if reference == prediction)
    f1 = [2.0 * right[label] / (wanted[label] + given[label]) for label in wanted]
    return {
        "accuracy": exact_match(references, predictions),
        "macro_f1": 100.0 * sum(f1) / len(f1),
    }


def bleu(language: str) -> sacrebleu.BLEU:
    """BLEU (Post 2018) of translations to `language`: of words, or of characters where no blanks
    tell the words; of Chinese, words in other scripts stay whole."""
    if not is_unspaced(language):
        return sacrebleu.BLEU()
    return sacrebleu.BLEU(tokenize="zh" if language.lower().startswith(("zh", "yue")) else "char")


def text_scores(
    task: str, references: Sequence[str], predictions: Sequence[str], language: str = ""
) -> dict[str, float]:
    """Returns the scores of answers to a task, in `language`; none for span corruption."""
    if task == "translate":
        return {
            "bleu": bleu(language).corpus_score(list(predictions), [list(references)]).score,
            "chrf": sacrebleu.corpus_chrf(list(predictions), [list(references)]).score,
        }
    if task == "classify":
        return label_scores(references, predictions)
    if task == "parse":
        return {"exact_match": exact_match(references, predictions)}
    if task == "summarize":
        return rouge([[reference] for reference in references], predictions, language)
    return {}


def decoded_sample(
    model: EncoderDecoder,
    dataset: PairDataset,
    tokenizer: sentencepiece.SentencePieceProcessor,
    rows: int,
    device: torch.device,
    task: str,
    max_tokens: int,
    language: str = "",
) -> tuple[dict[str, float], list[tuple[str, str, str]]]:
    """Decodes the first `rows` pairs; returns their scores and (source, reference, answer) of each.
    Both are empty for a language model, and for no rows. An answer has at most `max_tokens`, a
    translation also at most twice the tokens of the longest source beside it, and ten."""
    if not model.has_source or rows == 0:
        return {}, []
    chosen = numpy.arange(min(rows, len(dataset)))
    chosen = chosen[numpy.argsort(dataset.source_lengths[chosen], kind="stable")]
    answers: dict[int, str] = {}
    for begin in range(0, len(chosen), 50):
        part = chosen[begin : begin + 50]
        batch = make_batch(dataset, part).to(device)
        limit = max_tokens
        if task == "translate":
            limit = min(limit, int(batch.lengths.max()) * 2 + 10)
        for row, ids in zip(part, greedy(model, batch.source, batch.lengths, limit), strict=True):
            answers[int(row)] = tokenizer.decode(ids)
    texts = []
    for row in sorted(answers):
        source, target = dataset.pair(row, 0)
        texts.append(
            (
                tokenizer.decode(source[:-1].tolist()),
                tokenizer.decode(target[:-1].tolist()),
                answers[row],
            )
        )
    return text_scores(task, [t[1] for t in texts], [t[2] for t in texts], language), texts
