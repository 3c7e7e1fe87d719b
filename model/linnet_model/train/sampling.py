"""Subword regularisation: other pieces of the same text in each epoch (Kudo 2018, section 3)."""

from __future__ import annotations

import random

import numpy
import sentencepiece

from linnet_model.data_config import DataConfig
from linnet_model.network.encoder_decoder import EOS
from linnet_model.text_files import Pair
from linnet_model.tokenizer import known_placeholders
from linnet_model.train.datasets import Ids, PairDataset


class SampledPairDataset(PairDataset):
    """Pairs whose pieces are drawn from all segmentations x of a text, with probabilities
    proportional to P(x)^alpha of the unigram model. The draw depends on (seed, epoch, row).

    source_lengths and target_lengths are those of the most probable pieces; drawn pieces are more.
    """

    def __init__(
        self,
        pairs: list[Pair],
        tokenizer: sentencepiece.SentencePieceProcessor,
        config: DataConfig,
        seed: int,
        rng: random.Random | None = None,
    ):
        super().__init__(pairs, tokenizer, config, rng)
        self.seed, self.tokenizer, self.alpha = seed, tokenizer, config.sampling_alpha
        self.longest = (config.max_source_tokens, config.max_target_tokens)
        self.placeholders = set(known_placeholders(tokenizer))

    def pair(self, row: int, epoch: int) -> tuple[Ids, Ids]:
        best = [ids[:-1].tolist() for ids in super().pair(row, epoch)]  # without EOS
        # Not the decode of CapitalsTokenizer: the mark stays in the text that the model reads.
        texts = [sentencepiece.SentencePieceProcessor.decode(self.tokenizer, ids) for ids in best]
        # SentencePiece has a generator per thread, which starts at this seed. With num_threads it
        # encodes in a new thread, so the draw depends on nothing before it.
        (state,) = numpy.random.SeedSequence([self.seed, epoch, row]).generate_state(1)
        sentencepiece.set_random_generator_seed(int(state) >> 1)
        drawn = self.tokenizer.encode(
            texts, enable_sampling=True, alpha=self.alpha, nbest_size=-1, num_threads=1
        )
        source, target = (
            numpy.array([*(ids if self.usable(ids, wanted, longest) else wanted), EOS])
            for ids, wanted, longest in zip(drawn, best, self.longest, strict=True)
        )
        return source, target

    def usable(self, ids: list[int], best: list[int], longest: int) -> bool:
        """False for drawn pieces that are too many, or that split a placeholder."""
        kept = [[i for i in some if i in self.placeholders] for some in (ids, best)]
        return len(ids) < longest and kept[0] == kept[1]
