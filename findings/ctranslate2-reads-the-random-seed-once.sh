#!/usr/bin/env bash
# set_random_seed() of ctranslate2 4.8.5 (PyPI) has no effect on a Translator that has sampled before. Setting the same seed before each
# request gives another answer each time, and two seeds give the same answers.
#
# Guess before the run: the same seed, model, source and options give the same answer.
# Seen (ctranslate2 4.8.5, numpy 2.4.6, Python 3.11, x86-64), five tokens sampled with sampling_topk=0 from a model of random weights:
#
#   one Translator, seed 5 before each call: [w8 w27 w14 w38 w3], [w14 w14 w19 w37 w32], [w20 w27 w1 w27 w1]
#   one Translator, seeds 5, 6 and 7:        [w8 w27 w14 w38 w3], [w14 w14 w19 w37 w32], [w20 w27 w1 w27 w1]
#   a new Translator for each call, seed 5:  [w8 w27 w14 w38 w3], [w8 w27 w14 w38 w3], [w8 w27 w14 w38 w3]
#
# The seed seems to be read when a thread of a Translator draws its first number.
#
# Who meets it: services with a seed in the request, back-translation that is to be repeatable, and tests of sampled answers that pass
# since each makes a Translator of its own.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ctranslate2==4.8.5 numpy==2.4.6

"$folder/venv/bin/python" - "$folder/model" <<'P'
import os
import sys

import ctranslate2
import numpy
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.model_spec import visit_spec

model, width = sys.argv[1], 16
tokens = ["<unk>", "<s>", "</s>", *(f"w{i}" for i in range(40))]
rows = {"self_attention/linear_0": 3 * width, "/attention/linear_1": 2 * width, "projection": len(tokens), "embeddings": len(tokens)}
draw = numpy.random.default_rng(0)


def fill(spec, name, value):
    part = name.rsplit("/", 1)[-1]
    count = next((count for key, count in rows.items() if key in name), width)
    if part in ("gamma", "beta", "bias"):
        setattr(spec, part, numpy.full(count, part == "gamma", numpy.float32))
    elif part == "weight":
        spec.weight = 0.4 * draw.standard_normal((count, width)).astype(numpy.float32)


spec = TransformerSpec.from_config(num_layers=1, num_heads=2)
visit_spec(spec, fill)
spec.register_source_vocabulary(tokens)
spec.register_target_vocabulary(tokens)
spec.validate()
os.makedirs(model)
spec.save(model)


def sample(translator, seed):
    ctranslate2.set_random_seed(seed)
    options = dict(beam_size=1, sampling_topk=0, min_decoding_length=5, max_decoding_length=5)
    return "[" + " ".join(translator.translate_batch([["w1", "w2"]], **options)[0].hypotheses[0]) + "]"


def new():
    return ctranslate2.Translator(model, compute_type="float32", intra_threads=1)


first, second = new(), new()
same = [sample(first, 5) for _ in range(3)]
other = [sample(second, seed) for seed in (5, 6, 7)]
fresh = [sample(new(), 5) for _ in range(3)]
print("one Translator, seed 5 before each call:", ", ".join(same))
print("one Translator, seeds 5, 6 and 7:       ", ", ".join(other))
print("a new Translator for each call, seed 5: ", ", ".join(fresh))
assert len(set(same)) == 3 and same == other and set(fresh) == {same[0]}
P
echo "as described"
