#!/usr/bin/env bash
# transformers 4.57.6 (PyPI) applies repetition_penalty to logits with one beam and to log-probabilities with several.
#
# Guess before the run: a penalty means the same with any number of beams, as in CTranslate2.
# Seen (transformers 4.57.6, torch 2.11.0, Python 3.11, x86-64), with a BART of random weights:
#
#   1 beam: logsumexp of what a processor gets is 8.20
#   1 beam: [2, 15, 15, 15, 15, 15, 15], with a penalty of 1.5 [2, 15, 40, 7, 17, 23, 20]
#   4 beams: logsumexp of what a processor gets is 0.00
#   4 beams: [2, 15, 47, 23, 23, 23, 23], with a penalty of 1.5 [2, 15, 47, 23, 23, 23, 23]
#
# A likely token has a log-probability near 0, which a factor hardly changes, and a large logit, which it does. The result is not
# normalised again.
#
# Who meets it: whoever tunes the penalty with greedy search and then serves with beams: repetitions come back.
#
# Downloads 3 GB and needs 6 GB of disk, since torch comes with CUDA.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.11.0 transformers==4.57.6

TRANSFORMERS_VERBOSITY=error "$folder/venv/bin/python" - <<'P'
import torch
from transformers import BartConfig, BartForConditionalGeneration, LogitsProcessor

torch.manual_seed(0)
sizes = dict(vocab_size=50, d_model=16, max_position_embeddings=32, init_std=1.0)
for side in ("encoder", "decoder"):
    sizes |= {f"{side}_layers": 1, f"{side}_attention_heads": 2, f"{side}_ffn_dim": 32}
model = BartForConditionalGeneration(BartConfig(**sizes, forced_eos_token_id=None)).eval()
source = torch.tensor([[0, 5, 6, 7, 2]])


class Watch(LogitsProcessor):
    def __call__(self, input_ids, scores):
        self.seen = scores[0]
        return scores


answers = {}
for beams in (1, 4):
    name, watch = f"{beams} beam{'s' if beams > 1 else ''}", Watch()
    model.generate(source, num_beams=beams, do_sample=False, max_new_tokens=1, logits_processor=[watch])
    total = abs(watch.seen.logsumexp(-1).item())
    print(f"{name}: logsumexp of what a processor gets is {total:.2f}")
    assert (total < 1e-5) == (beams > 1)
    for penalty in (1.0, 1.5):
        found = model.generate(source, num_beams=beams, do_sample=False, max_new_tokens=6, repetition_penalty=penalty)
        answers[beams, penalty] = found[0].tolist()
    print(f"{name}: {answers[beams, 1.0]}, with a penalty of 1.5 {answers[beams, 1.5]}")
assert len(set(answers[1, 1.5])) == 7
assert answers[4, 1.0] == answers[4, 1.5]
P
echo "as described"
