"""Target tokens a second: Linnet, the same model in eager PyTorch the way fairseq computes it, and
Hugging Face Marian's `generate` on a Transformer of the same size, beside what the device allows.

All have random weights, in float16, 30 source tokens, 30 target tokens, no end before the last.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
from decode import Decoder

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "tests/bench"
PEERS = {"fairseq's way": "peer_fairseq.py", "Marian": "peer_marian.py"}
ENCODER_KERNELS = [3, 7, 15, 31, 31, 31, 31]  # of linnet_model.presets
DECODER_KERNELS = [3, 7, 15, 31, 31, 31]


@dataclass(frozen=True)
class Sizes:
    preset: str
    width: int
    ffn: int
    heads: int
    vocabulary: int = 32000
    tokens: int = 30  # of sources and of targets


SIZES = {
    "base": Sizes("dynamic_base", 512, 2048, 8),
    "big": Sizes("dynamic_big", 1024, 4096, 16),
    "tiny": Sizes("tiny", 32, 64, 4, 400, 8),
}


@dataclass(frozen=True)
class Plan:
    device: str
    compute: str
    batches: tuple[int, ...]
    beams: tuple[int, ...]
    repeat: int


FULL = Plan("cuda", "float16", (1, 8, 32, 128, 512), (1, 5), 5)
DRY = Plan("cpu", "float32", (1, 2), (1, 2), 1)


# What the device can do at best, measured on it.


def copy_bandwidth(device: str) -> float:
    """Bytes a second that a plain copy reads and writes."""
    count = 2**31 if device == "cuda" else 2**22
    one = torch.zeros(count, dtype=torch.uint8, device=device)
    other = torch.empty_like(one)
    return 2 * count / seconds_of(lambda: other.copy_(one), device)


def product_speed(device: str, compute: str) -> float:
    """Floating point operations a second in a large product of random numbers."""
    n = 8192 if device == "cuda" else 256
    a, b = (torch.randn(n, n, device=device).to(getattr(torch, compute)) for _ in range(2))
    return 2 * n**3 / seconds_of(lambda: a @ b, device)


def seconds_of(call, device: str) -> float:
    """Median of ten, after three."""
    times = []
    for _ in range(13):
        if device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) / 1e3)
        else:
            import time

            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return median(times[3:])


def roof(sizes: Sizes, batch: int, beam: int, bandwidth: float, flops: float, bytes_each: int):
    """Target tokens a second if every step took as long as its bytes or its products, whichever is
    longer, and so did the encoder.

    A step reads the decoder's weights once, each row's windows and the memory of each source, and
    writes and reads the logits; each row is multiplied with every weight once.
    """
    d, f, v, t = sizes.width, sizes.ffn, sizes.vocabulary, sizes.tokens
    rows, layers = batch * beam, len(DECODER_KERNELS)
    # linear1 with its gate, linear2; query and output of the attention; feed-forward
    layer = 2 * d * d + d * d + 2 * d * d + 2 * d * f
    taps = sum(d * sizes.heads * k for k in DECODER_KERNELS)
    weights = layers * layer + taps + v * d
    windows = rows * d * sum(DECODER_KERNELS)
    memory = batch * t * 2 * d * layers
    moved = bytes_each * (weights + windows + memory + 2 * rows * v)
    step = max(moved / bandwidth, 2 * rows * weights / flops)
    encoder_weights = len(ENCODER_KERNELS) * (3 * d * d + 2 * d * f) + layers * 2 * d * d
    encoder_weights += sum(d * sizes.heads * k for k in ENCODER_KERNELS)
    encoder = max(bytes_each * encoder_weights / bandwidth, 2 * batch * t * encoder_weights / flops)
    return batch * t / (t * step + encoder)


def measure_peer(name: str, sizes: Sizes, plan: Plan) -> dict[tuple[int, int], float | str]:
    """Tokens a second by batch and beam, or why there are none."""
    words = [sys.executable, str(BENCH / PEERS[name]), "--device", plan.device]
    words += ["--compute", plan.compute, "--threads", "2"]
    values = {"width": sizes.width, "ffn": sizes.ffn, "heads": sizes.heads}
    values |= {"vocab": sizes.vocabulary, "source": sizes.tokens, "target": sizes.tokens}
    words += [word for key, value in values.items() for word in (f"--{key}", str(value))]
    settings = [(batch, beam) for batch in plan.batches for beam in plan.beams]
    asked = "".join(
        json.dumps({"batch": batch, "beam": beam, "repeat": plan.repeat}) + "\n"
        for batch, beam in settings
    )
    done = subprocess.run(words, input=asked, text=True, capture_output=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    reason = (done.stderr.strip().splitlines() or ["no answer"])[-1][:80]
    if lines and "unavailable" in lines[0]:
        reason = lines[0]["unavailable"]
    times = [line for line in lines if "seconds" in line]
    speeds: dict[tuple[int, int], float | str] = dict.fromkeys(settings, reason)
    for setting, line in zip(settings, times, strict=False):
        speeds[setting] = line["target_tokens"] / median(line["seconds"])
    return speeds


def make_bundle(folder: Path, sizes: Sizes) -> Path:
    sys.path.insert(0, str(ROOT / "model"))
    from linnet_model.random_bundle import random_bundle

    random_bundle(folder / sizes.preset, sizes.preset, sizes.vocabulary, seed=1)
    return folder / sizes.preset


def compare_speed(decoder: Decoder, name: str, plan: Plan) -> list[dict]:
    """A row for each batch and beam, of the model `name` of SIZES."""
    sizes = SIZES[name]
    bandwidth = copy_bandwidth(plan.device)
    flops = product_speed(plan.device, plan.compute)
    bytes_each = 4 if plan.compute == "float32" else 2
    peers = {peer: measure_peer(peer, sizes, plan) for peer in PEERS}
    flags = ("--compute", plan.compute, "--repeat", str(plan.repeat))
    flags += ("--source-tokens", str(sizes.tokens), "--target-tokens", str(sizes.tokens))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        bundle = make_bundle(Path(folder), sizes)
        for batch in plan.batches:
            for beam in plan.beams:
                ours = decoder.synthetic(bundle, batch, beam, "--search", "device", *flags)
                row = {"model": name, "batch": batch, "beam": beam}
                row["search"] = ours["search"]
                row["Linnet tok/s"] = round(ours["tokens_per_second"])
                # What graphs, and the search beside the model, are worth.
                if beam == max(plan.beams) and batch in (1, plan.batches[-2]):
                    for column, how in (
                        ("without graphs", ("--search", "device", "--no-graphs")),
                        ("search on the host", ("--search", "host")),
                    ):
                        other = decoder.synthetic(bundle, batch, beam, *how, *flags)
                        row[column] = round(other["tokens_per_second"])
                for peer, speeds in peers.items():
                    speed = speeds[batch, beam]
                    row[peer] = speed if isinstance(speed, str) else round(speed)
                limit = roof(sizes, batch, beam, bandwidth, flops, bytes_each)
                row["roof tok/s"] = round(limit)
                row["share of the roof"] = f"{ours['tokens_per_second'] / limit:.1%}"
                rows.append(row)
                print(row, flush=True)
    for row in rows:
        row["copy TB/s"], row["product TFLOP/s"] = round(bandwidth / 1e12, 2), round(flops / 1e12)
    return rows
