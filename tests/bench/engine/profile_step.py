"""Where the time of a batch goes: samples of linnet-decode, by kind of work.

Runs linnet-decode under `perf record` (Debian's linux-perf) with a DynamicConv model of base size,
random weights, --batch sources and beam 5, and sorts the samples of the measured runs by the
function they are in. Beside that, the multiply-adds of the gemms in a second and, with AVX512-VNNI
for int8 and AVX512F for float32, the most that the processor does with that instruction on
registers alone (bench_ops, int8_peak and float32_peak). Takes a minute.

Writes DIR/MACHINE/profile-step.json and profile-step.md, in float32 profile-step-float32, with
another batch than 32 profile-step-batch-N.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import decoding
import engines
import machine
from engines import Sizes

FULL_BATCH, BEAM, TOKENS = 32, 5, 30
FREQUENCY = 999  # samples of a core in a second
KERNELS = (3, 7, 15, 31, 31, 31, 31)  # of the encoder; the decoder has a layer less
# The kind of work of a function: the first pattern that it matches.
KINDS = {
    "gemms": r"RunVnni|RunAmx|Kernel<|TileKernel",
    "source attention": r"Attend<",
    "logits: best and normalizer": r"ReadPiece|JoinRow|LogitScan|TopLogits",
    "activation, residual, norm": r"FinishRow|AddNorm",
    "quantising of inputs": r"Quantize",
    "convolution": r"Convolve",
    "waiting for the other threads": r"^libgomp",
    "TorchScript and its operators": r"^libtorch|^libc10",
}
REST = "search, memory, the rest"
SAMPLE = re.compile(r"\s*\d+\s+([\d.]+):\s+[0-9a-f]+\s+(.*?)\s+\(([^()]*)\)$")


def kind_of(symbol: str, library: str) -> str:
    named = f"{Path(library).name} {symbol}"
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, named)), REST)


def samples_of(lines: list[str], seconds: float) -> dict[str, int]:
    """The samples of each kind in the last `seconds`, from the lines of `perf script`."""
    found = [one for one in map(SAMPLE.match, lines) if one]
    if not found:
        raise SystemExit("perf script gave no samples")
    begin = max(float(one[1]) for one in found) - seconds
    measured = [one for one in found if float(one[1]) >= begin]
    counts = collections.Counter(kind_of(one[2], one[3]) for one in measured)
    return {kind: counts[kind] for kind in (*KINDS, REST)}


def layer_weights(sizes: Sizes, kernel: int) -> int:
    """Those of an encoder layer: GLU and output of the convolution, its taps, feed-forward."""
    d = sizes.width
    return 3 * d * d + d * sizes.heads * kernel + 2 * d * sizes.ffn


def multiply_adds(sizes: Sizes, batch: int) -> int:
    """Those of the gemms in a run: encoder, keys and values of the source, steps of all rows."""
    d = sizes.width
    layers = [layer_weights(sizes, kernel) for kernel in KERNELS]
    attention = sizes.layers * 2 * d * d  # query and output, or key and value
    encoder = sum(layers) + attention
    decoder = sum(layers[:-1]) + attention + d * sizes.vocabulary
    return batch * (TOKENS * encoder + BEAM * TOKENS * decoder)


def peak(program: Path, compute: str) -> float | None:
    """Multiply-adds of a type in a second, of one core; None without the instruction."""
    command = [str(program), f"--benchmark_filter=^{compute}_peak$", "--benchmark_format=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (found,) = json.loads(done.stdout)["benchmarks"]
    return found["flop"] / 2 if "flop" in found else None


def shares(data: dict[str, Any]) -> list[list[str]]:
    """A row of text for each kind of work."""
    total = sum(data["samples"].values())
    return [[kind, f"{count / total:.1%}"] for kind, count in data["samples"].items()]


def multiply_adds_per_second(data: dict[str, Any]) -> float:
    """Those of the gemms, of one core."""
    return float(data["multiply_adds"] / (data["samples"]["gemms"] / data["frequency"]))


def gemm_speed(data: dict[str, Any]) -> str:
    speed = multiply_adds_per_second(data)
    said = f"The gemms make {speed / 1e9:.0f} billion multiply-adds in a second of a core"
    if data["peak"] is None:
        return f"{said}."
    made = f"{data['peak'] / 1e9:.0f}"
    return f"{said}; the {data['compute']} instruction alone, on registers, makes {made}."


def name_of(compute: str, batch: int) -> str:
    """The name of the result, without its ending."""
    of_type = "" if compute == "int8" else f"-{compute}"
    return f"profile-step{of_type}" + ("" if batch == FULL_BATCH else f"-batch-{batch}")


def batch_of(data: dict[str, Any]) -> int:
    return int(data.get("batch", FULL_BATCH))  # older results have only this one


def markdown(data: dict[str, Any]) -> str:
    return "\n".join(
        [
            f"# Where the time of a batch of {batch_of(data)} goes",
            "",
            "Written by `tests/bench/engine/profile_step.py`. "
            f"{machine.sentence(data['machine'])}. DynamicConv at base size, random weights, "
            f"{data['compute']}, {batch_of(data)} sources of {TOKENS} tokens, beam {BEAM}, "
            f"{data['threads']} threads: shares of the samples of all threads, encoder included.",
            "",
            "| work | share |",
            "|---|---:|",
            *(f"| {kind} | {share} |" for kind, share in shares(data)),
            "",
            gemm_speed(data),
            "",
        ]
    )


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="profile_step.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--compute", choices=("float32", "int8"), default="int8", help="[%(default)s]")
    add("--batch", type=int, default=FULL_BATCH, metavar="N", help="sources [%(default)s]")
    add("--repeat", type=int, default=20, metavar="N", help="measured runs [%(default)s]")
    add(
        "--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="[all cores]"
    )
    engines.add_folders(parser)
    options = parser.parse_args(words)
    for name in ("batch", "repeat", "threads"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} {getattr(options, name)} must be at least 1")
    machine.require_commit(options.out)
    if shutil.which("perf") is None:
        raise SystemExit("perf is not installed: apt-get install linux-perf")
    sizes = Sizes("base", source=TOKENS, target=TOKENS, **decoding.SIZES["base"])
    bundle = engines.bundle_for("dynamic", sizes, options.bundles)
    command = [options.programs / "linnet-decode", "--bundle", bundle, "--synthetic"]
    for flag, value in {
        "compute": options.compute,
        "threads": options.threads,
        "batch": options.batch,
        "beam": BEAM,
        "source-tokens": TOKENS,
        "target-tokens": TOKENS,
        "repeat": options.repeat,
    }.items():
        command += [f"--{flag}", value]
    with tempfile.NamedTemporaryFile() as samples:
        record = [
            "perf",
            "record",
            "-q",
            "-e",
            "cpu-clock",
            "-F",
            str(FREQUENCY),
            "-o",
            samples.name,
            "--",
        ]
        done = subprocess.run(
            [*record, *map(str, command)], stdout=subprocess.PIPE, text=True, check=True
        )
        seconds = json.loads(done.stdout)["seconds"]
        script = ["perf", "script", "-i", samples.name, "-F", "tid,time,ip,sym,dso"]
        lines = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    data = {
        "machine": machine.facts(),
        "compute": options.compute,
        "batch": options.batch,
        "threads": options.threads,
        "frequency": FREQUENCY,
        "samples": samples_of(lines.splitlines(), seconds * options.repeat),
        "multiply_adds": options.repeat * multiply_adds(sizes, options.batch),
        "peak": peak(options.programs / "bench_ops", options.compute),
    }
    path = (
        options.out
        / machine.slug(data["machine"])
        / f"{name_of(options.compute, options.batch)}.json"
    )
    machine.write_result(path, data, markdown(data))
    print(markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
