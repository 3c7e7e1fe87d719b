"""Converts the weights of a Hugging Face Marian folder to our names.

Every tensor of the file is compared with the configuration; a missing or unknown tensor, another
shape or a value that is not finite is an error. Copies of a shared table must be equal, and stored
position tables must be the sinusoids that the model computes.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import safetensors
import torch
from safetensors.torch import load_file
from torch import Tensor

from linnet_model.network.encoder_decoder import sinusoids
from linnet_model.network.model_config import ConfigError, ModelConfig, require

SAFETENSORS, PICKLED = "model.safetensors", "pytorch_model.bin"
# Some tables are stored in float16, which keeps 11 bits of a number up to 1.
POSITION_TOLERANCE = 1e-3


def read_weights(folder: Path) -> tuple[Path, dict[str, Tensor]]:
    """Returns the file and its tensors in float32. No pickled code is executed."""
    file = folder / SAFETENSORS
    try:
        if file.is_file():
            weights = load_file(file)
        else:
            file = folder / PICKLED
            require(
                file.is_file(),
                f"{folder} has no {SAFETENSORS} and no {PICKLED} (weights in several files are not "
                "supported, save the model in one)",
            )
            weights = torch.load(file, map_location="cpu", weights_only=True)
    except (safetensors.SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"{file} cannot be read: {first}") from None
    for name, tensor in weights.items():
        require(
            isinstance(tensor, Tensor) and tensor.is_floating_point(),
            f"{file}: {name} is not a tensor of floating-point numbers",
        )
        bad = int((~torch.isfinite(tensor)).sum())
        require(
            bad == 0, f"{file}: {name} has {bad} of {tensor.numel()} values that are not finite"
        )
    return file, {name: tensor.float() for name, tensor in weights.items()}


class Source:
    """The tensors of a file that have not been used yet."""

    def __init__(self, file: Path, weights: dict[str, Tensor]):
        self.file, self.weights, self.missing = file, dict(weights), list[str]()

    def take(self, name: str, *shape: int) -> Tensor:
        """Removes and returns a tensor; records it and returns an empty one if it is missing."""
        tensor = self.weights.pop(name, None)
        if tensor is None:
            self.missing.append(name)
            return torch.empty(0)
        require(
            tuple(tensor.shape) == shape,
            f"{self.file}: {name} has shape {list(tensor.shape)}, the configuration asks for "
            f"{list(shape)}",
        )
        return tensor

    def drop_copy(self, name: str, of: str, original: Tensor) -> None:
        """Removes an optional copy of `original`, and checks that they are equal."""
        if name in self.weights and original.numel() > 0:
            copy = self.take(name, *original.shape)
            require(
                torch.equal(copy, original),
                f"{self.file}: {name} differs from {of}, though the configuration ties them",
            )

    def finish(self) -> None:
        for problem, names in (("lacks", self.missing), ("has unknown", sorted(self.weights))):
            require(not names, f"{self.file} {problem} weights: {', '.join(names)}")


def our_weights(file: Path, weights: dict[str, Tensor], sizes: ModelConfig) -> dict[str, Tensor]:
    """Returns the weights of EncoderDecoder(sizes) by name."""
    source = Source(file, weights)
    ours = embeddings(source, sizes)
    for side, layers in (("encoder", sizes.encoder_mixers), ("decoder", sizes.decoder_mixers)):
        for layer in range(len(layers)):
            theirs, prefix = f"model.{side}.layers.{layer}", f"{side}.{layer}"
            for name, tensor in layer_weights(source, theirs, side, sizes).items():
                ours[f"{prefix}.{name}"] = tensor
        check_positions(source, f"model.{side}.embed_positions.weight", sizes.width)
    source.finish()
    return ours


def embeddings(source: Source, sizes: ModelConfig) -> dict[str, Tensor]:
    """Returns the tables of source, target and output; shared tables appear once."""
    shared, width = "model.shared.weight", sizes.width
    encoder, decoder = (f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder"))
    ours = {"output_bias": source.take("final_logits_bias", 1, sizes.target_vocabulary).flatten()}
    if shared in source.weights:
        # One table for both sides; the file may have copies of it.
        table = source.take(shared, sizes.vocabulary, width)
        for name in (encoder, decoder):
            source.drop_copy(name, shared, table)
        tables = (table, table)
    else:
        of_source = source.take(encoder, sizes.vocabulary, width)
        both = sizes.sharing == "all" and decoder not in source.weights
        tables = (
            of_source,
            of_source if both else source.take(decoder, sizes.target_vocabulary, width),
        )
        if sizes.sharing == "all":
            require(
                both or tables[0].numel() == 0 or torch.equal(*tables),
                f"{source.file}: {encoder} differs from {decoder}, though the configuration ties "
                "them",
            )
    ours["embed_source.weight"] = tables[0]
    if sizes.sharing != "all":
        ours["embed_target.weight"] = tables[1]
    if sizes.sharing == "none":
        ours["output.weight"] = source.take("lm_head.weight", sizes.target_vocabulary, width)
    else:
        source.drop_copy("lm_head.weight", decoder, tables[1])
    return ours


def layer_weights(source: Source, theirs: str, side: str, sizes: ModelConfig) -> dict[str, Tensor]:
    """Returns the weights of one encoder or decoder layer."""
    width, hidden = sizes.width, sizes.ffn_width

    def linear(names: list[str], outputs: int, inputs: int) -> dict[str, Tensor]:
        """Stacks the rows of several linear layers with the same input."""
        return {
            kind: torch.cat([source.take(f"{theirs}.{name}.{kind}", *shape) for name in names])
            for kind, shape in (("weight", (outputs, inputs)), ("bias", (outputs,)))
        }

    def norm(name: str) -> dict[str, Tensor]:
        return {k: source.take(f"{theirs}.{name}.{k}", width) for k in ("weight", "bias")}

    def projections(block: str, letters: str) -> dict[str, Tensor]:
        return linear([f"{block}.{letter}_proj" for letter in letters], width, width)

    parts = {
        "mixer.query_key_value": projections("self_attn", "qkv"),
        "mixer.output": linear(["self_attn.out_proj"], width, width),
        "mixer_norm": norm("self_attn_layer_norm"),
        "ffn.fc1": linear(["fc1"], hidden, width),
        "ffn.fc2": linear(["fc2"], width, hidden),
        "ffn_norm": norm("final_layer_norm"),
    }
    if side == "decoder":
        parts |= {
            "attention.query": projections("encoder_attn", "q"),
            "attention.key_value": projections("encoder_attn", "kv"),
            "attention.output": linear(["encoder_attn.out_proj"], width, width),
            "attention_norm": norm("encoder_attn_layer_norm"),
        }
    return {
        f"{part}.{kind}": tensor for part, pair in parts.items() for kind, tensor in pair.items()
    }


def check_positions(source: Source, name: str, width: int) -> None:
    """Refuses a stored position table that is not that of sinusoidal_marian; newer files have
    none."""
    table = source.weights.pop(name, None)
    if table is None:
        return
    require(
        table.dim() == 2 and table.size(1) == width,
        f"{source.file}: {name} has shape {list(table.shape)}, rows have {width} values",
    )
    expected = sinusoids(torch.arange(table.size(0)), width, width // 2)
    distance = float((table - expected).abs().max())
    require(
        distance <= POSITION_TOLERANCE,
        f"{source.file}: {name} is up to {distance:.3g} from the sinusoids of Marian, learned "
        "positions are not imported",
    )
