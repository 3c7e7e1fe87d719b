#!/usr/bin/env bash
# ctranslate2 4.8.5 (PyPI) forces another token than the target prefix, or fails, if use_vmap is set and an earlier call of the
# same Translator had the prefix with other candidates.
#
# Guess before the run: a target prefix is forced, as without use_vmap, and a call does not depend on those before it.
# Seen (ctranslate2 4.8.5, numpy 2.4.6, Python 3.11, x86-64), with the prefix "__de__", and 1, 4 and 20 candidates for the
# sources "a", "b" and "c":
#
#   b, with a new Translator: the answer begins with "__de__"
#   b, after a: the answer begins with "w2"
#   a, after c: IndexError: vector::_M_range_check: __n (which is 23) >= this->size() (which is 5)
#
# The place of a token among the candidates seems to be kept from the first call that had it. Without use_vmap every call is
# right.
#
# Who meets it: multilingual models, whose target language is a prefix token, with a shortlist: each text has other candidates.
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

model, width, inner = sys.argv[1], 8, 16
tokens = ["<unk>", "<s>", "</s>", *(f"w{i}" for i in range(60)), "__de__", "__fr__", "a", "b", "c"]
draw = numpy.random.default_rng(0)


def set_linear(spec, outputs, inputs):
    spec.weight = draw.standard_normal((outputs, inputs)).astype(numpy.float32)
    spec.bias = numpy.zeros(outputs, numpy.float32)


def set_norm(spec):
    spec.gamma, spec.beta = numpy.ones(width, numpy.float32), numpy.zeros(width, numpy.float32)


def set_attention(spec, outputs):
    set_norm(spec.layer_norm)
    for linear, size in zip(spec.linear, outputs, strict=True):
        set_linear(linear, size * width, width)


# A Transformer with random weights, one layer on each side.
spec = TransformerSpec.from_config(num_layers=1, num_heads=2)
for side in (spec.encoder, spec.decoder):
    embeddings = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
    embeddings.weight = draw.standard_normal((len(tokens), width)).astype(numpy.float32)
    set_norm(side.layer_norm)
    for layer in side.layer:
        set_attention(layer.self_attention, (3, 1))
        if side is spec.decoder:
            set_attention(layer.attention, (1, 2, 1))
        set_norm(layer.ffn.layer_norm)
        set_linear(layer.ffn.linear_0, inner, width)
        set_linear(layer.ffn.linear_1, width, inner)
set_linear(spec.decoder.projection, len(tokens), width)
spec.register_source_vocabulary(tokens)
spec.register_target_vocabulary(tokens)
spec.validate()
os.makedirs(model)
spec.save(model)


with open(f"{model}/vmap.txt", "w") as file:
    file.write(f"\t</s>\na\tw1\nb\tw1 w2 w3 w4\nc\t{' '.join(f'w{i}' for i in range(20))}\n")


def first_tokens(words, use_vmap=True):
    translator = ctranslate2.Translator(model)
    for word in words:
        (found,) = translator.translate_batch(
            [[word, "</s>"]], target_prefix=[["__de__"]], beam_size=1, max_decoding_length=3, use_vmap=use_vmap
        )
        yield found.hypotheses[0][0]


assert list(first_tokens("cbabca", use_vmap=False)) == ["__de__"] * 6
(alone,) = first_tokens("b")
print(f'b, with a new Translator: the answer begins with "{alone}"')
assert alone == "__de__"
_, second = first_tokens("ab")
print(f'b, after a: the answer begins with "{second}"')
assert second == "w2"
try:
    list(first_tokens("ca"))
except IndexError as error:
    print(f"a, after c: IndexError: {error}")
else:
    raise SystemExit("the call succeeded")
P
echo "as described"
