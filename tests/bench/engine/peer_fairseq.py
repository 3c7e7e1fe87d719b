"""A DynamicConv encoder-decoder that is decoded as in fairseq, in eager PyTorch.

Not fairseq itself but a re-implementation of its way to compute, so that it can be measured without
installing fairseq: the sizes are those of Linnet's preset dynamic_base (7 + 6 layers), the weights
random.

- The encoder multiplies with the taps spread out as a band matrix (up to 512 tokens, fairseq's own
  limit), computed anew for each batch.
- The decoder keeps per layer the inputs of the last K-1 steps, [N, H, C/H, t], extends them by the
  new input with `cat` and takes one small matrix product; the first step projects the keys and
  values of the source, once per hypothesis.
- Each step takes the log-softmax over the whole vocabulary of all hypotheses, the best 2 x beam of
  beam x V candidates, and then moves tokens, scores and all of the state by `index_select`.

Source: modules/dynamic_convolution.py, models/lightconv.py and sequence_generator.py of fairseq.
"""

from __future__ import annotations

import argparse
import math

import torch
import torch.nn.functional as F
from peer import Run, Unavailable, arguments, serve
from torch import Tensor, nn

TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
ENCODER_KERNELS = [3, 7, 15, 31, 31, 31, 31]
DECODER_KERNELS = [3, 7, 15, 31, 31, 31]
LONGEST_BAND = 512


class DynamicConv(nn.Module):
    def __init__(self, width: int, heads: int, kernel: int):
        super().__init__()
        self.heads, self.kernel = heads, kernel
        self.inputs = nn.Linear(width, 2 * width)
        self.taps = nn.Linear(width, heads * kernel, bias=False)
        self.outputs = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """x: [T, B, C] -> [T, B, C]; the centred convolution of the encoder."""
        time, batch, width = x.shape
        kernel, heads = self.kernel, self.heads
        x = F.glu(self.inputs(x), dim=-1)
        taps = F.softmax(self.taps(x).view(time, batch * heads, kernel), dim=-1)
        x = x.view(time, batch * heads, width // heads)
        if time > LONGEST_BAND:
            left = kernel // 2
            window = F.pad(x, (0, 0, 0, 0, left, kernel - 1 - left)).unfold(0, kernel, 1)
            x = torch.matmul(window, taps.unsqueeze(-1)).squeeze(-1)
        else:
            band = x.new_zeros(batch * heads, time, time + kernel - 1)
            stride = time + kernel - 1
            diagonal = band.as_strided(
                (batch * heads, time, kernel), (time * stride, stride + 1, 1)
            )
            diagonal.copy_(taps.transpose(0, 1))
            band = band.narrow(2, kernel // 2, time)
            x = torch.bmm(band, x.transpose(0, 1)).transpose(0, 1)
        return self.outputs(x.reshape(time, batch, width))

    def step(self, x: Tensor, state: list[Tensor]) -> Tensor:
        """x: [N, C]; state[0]: [N, H, C/H, t], the previous inputs; replaced by the new state."""
        rows, width = x.shape
        x = F.glu(self.inputs(x), dim=-1)
        window = torch.cat([state[0], x.view(rows, self.heads, -1, 1)], dim=3)
        state[0] = window[..., 1 - self.kernel :]
        length = window.size(3)
        taps = F.softmax(self.taps(x).view(rows * self.heads, self.kernel), dim=1)
        taps = taps.narrow(1, self.kernel - length, length)
        window = window.view(rows * self.heads, width // self.heads, length)
        x = torch.bmm(window, taps.unsqueeze(2)).view(rows, width)
        return self.outputs(x)


class SourceAttention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query, self.outputs = nn.Linear(width, width), nn.Linear(width, width)
        self.key, self.value = nn.Linear(width, width), nn.Linear(width, width)

    def memory(self, source: Tensor) -> list[Tensor]:
        """source: [T, N, C] -> keys and values, each [N, H, T, C/H]."""
        time, rows, _ = source.shape
        return [
            project(source).view(time, rows, self.heads, -1).permute(1, 2, 0, 3).contiguous()
            for project in (self.key, self.value)
        ]

    def step(self, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """x: [N, C]."""
        rows, width = x.shape
        query = self.query(x) * (width // self.heads) ** -0.5
        query = query.view(rows * self.heads, 1, -1)
        scores = torch.bmm(query, keys.flatten(0, 1).transpose(1, 2))
        weights = F.softmax(scores, dim=-1, dtype=torch.float32).type_as(scores)
        return self.outputs(torch.bmm(weights, values.flatten(0, 1)).view(rows, width))


class Layer(nn.Module):
    def __init__(self, sizes: argparse.Namespace, kernel: int, decoder: bool):
        super().__init__()
        self.conv = DynamicConv(sizes.width, sizes.heads, kernel)
        self.attention = SourceAttention(sizes.width, sizes.heads) if decoder else None
        self.inner, self.outer = (
            nn.Linear(sizes.width, sizes.ffn),
            nn.Linear(sizes.ffn, sizes.width),
        )
        self.norms = nn.ModuleList(nn.LayerNorm(sizes.width) for _ in range(3 if decoder else 2))

    def ffn(self, x: Tensor) -> Tensor:
        return self.norms[-1](x + self.outer(F.relu(self.inner(x))))

    def forward(self, x: Tensor) -> Tensor:
        return self.ffn(self.norms[0](x + self.conv(x)))

    def step(self, x: Tensor, state: list[Tensor]) -> Tensor:
        x = self.norms[0](x + self.conv.step(x, state))
        x = self.norms[1](x + self.attention.step(x, state[1], state[2]))
        return self.ffn(x)


class EncoderDecoder(nn.Module):
    def __init__(self, sizes: argparse.Namespace):
        super().__init__()
        self.width, self.heads = sizes.width, sizes.heads
        self.table = nn.Embedding(sizes.vocab, sizes.width)
        nn.init.normal_(self.table.weight, std=sizes.width**-0.5)
        layers, both = sizes.layers, (ENCODER_KERNELS, DECODER_KERNELS)
        if layers != len(DECODER_KERNELS):
            both = (ENCODER_KERNELS[:layers], DECODER_KERNELS[:layers])
        self.encoder = nn.ModuleList(Layer(sizes, k, False) for k in both[0])
        self.decoder = nn.ModuleList(Layer(sizes, k, True) for k in both[1])
        longest = max(sizes.source, sizes.target) + 1
        angles = torch.arange(longest).unsqueeze(1) * torch.exp(
            torch.arange(sizes.width // 2) * (-math.log(1e4) / (sizes.width // 2 - 1))
        )
        self.register_buffer("positions", torch.cat([angles.sin(), angles.cos()], dim=1))

    def embed(self, tokens: Tensor, first: int) -> Tensor:
        """tokens: [..., T] -> [..., T, C]"""
        positions = self.positions[first : first + tokens.size(-1)]
        return self.table(tokens) * math.sqrt(self.width) + positions

    def encode(self, source: Tensor) -> Tensor:
        x = self.embed(source, 0).transpose(0, 1)
        for layer in self.encoder:
            x = layer(x)
        return x


EOS = 2


def beam_search(model: EncoderDecoder, source: Tensor, beam: int, steps: int) -> Tensor:
    """source: [B, T] -> the best hypotheses, [B, steps]. The end token is forbidden."""
    batch, vocabulary = source.size(0), model.table.num_embeddings
    rows, device = batch * beam, source.device
    every = torch.arange(batch, device=device).repeat_interleave(beam)
    memory = model.encode(source).index_select(1, every)
    head = model.width // model.heads
    states = [
        [memory.new_zeros(rows, model.heads, head, 0), *layer.attention.memory(memory)]
        for layer in model.decoder
    ]
    tokens = torch.full((rows, 1), EOS, device=device)
    scores = torch.zeros(batch, beam, device=device)
    first_row = torch.arange(batch, device=device).unsqueeze(1) * beam
    for step in range(steps):
        x = model.embed(tokens[:, -1:], step).squeeze(1)
        for layer, state in zip(model.decoder, states, strict=True):
            x = layer.step(x, state)
        logits = F.linear(x, model.table.weight)
        log_probs = F.log_softmax(logits, dim=-1, dtype=torch.float32)
        log_probs[:, EOS] = -math.inf
        log_probs = log_probs.view(batch, beam, vocabulary)
        # All hypotheses are the same at the first step, so only one of them counts.
        totals = log_probs[:, ::beam] if step == 0 else log_probs + scores.unsqueeze(-1)
        best, places = totals.flatten(1).topk(min(2 * beam, totals[0].numel()))
        scores, places = best[:, :beam], places[:, :beam]  # none has ended, so all continue
        order = (first_row + places.div(vocabulary, rounding_mode="floor")).flatten()
        chosen = places.remainder(vocabulary).view(-1, 1)
        tokens = torch.cat([tokens.index_select(0, order), chosen], dim=1)
        memory = memory.index_select(1, order)
        states = [[part.index_select(0, order) for part in state] for state in states]
    return tokens.view(batch, beam, -1)[:, 0, 1:]


def load(sizes: argparse.Namespace) -> Run:
    if sizes.compute not in TYPES:
        raise Unavailable(f"eager PyTorch has no {sizes.compute} model")
    torch.set_num_threads(sizes.threads)
    torch.manual_seed(1)
    model = EncoderDecoder(sizes).to(sizes.device, TYPES[sizes.compute]).eval()

    @torch.inference_mode()
    def run(batch: int, beam: int) -> int:
        torch.manual_seed(batch)
        source = torch.randint(3, sizes.vocab, (batch, sizes.source), device=sizes.device)
        return beam_search(model, source, beam, sizes.target).cpu().numel()

    return run


if __name__ == "__main__":
    settings = arguments(__doc__)
    serve(f"fairseq's way, torch {torch.__version__.split('+')[0]}", lambda: load(settings))
