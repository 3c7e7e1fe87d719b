"""Measures calls with short deadlines after a batch job.

Starts a server, translates a file of 2,000 lines, waits, and then makes 450 calls of one word, one
after the other, each with a deadline of 60 ms. The machine must be idle otherwise: what else it
does is said by the load average. Writes DIR/MACHINE/short-deadlines.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
from overload import server
from sentences import sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    machine.add_server(parser)
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--calls", type=int, default=450)
    parser.add_argument("--deadline", type=int, default=60, help="milliseconds")
    parser.add_argument("--pause", type=float, default=10, help="seconds after the batch")
    parser.add_argument("--compute", default="auto")
    parser.add_argument("--rows", type=int, default=160)
    options = machine.parse(parser)
    cores = sorted(os.sched_getaffinity(0))[:2]
    facts = machine.facts(cores)

    with server(options, cores) as running, tempfile.TemporaryDirectory() as folder:
        call = [str(options.programs / "linnet"), "translate"]
        call += ["--server", f"127.0.0.1:{running.port}", "--from", "en", "--to", "de"]
        text = Path(folder, "lines.txt")
        text.write_text("\n".join(sentences(options.lines)) + "\n")
        begin = time.monotonic()
        subprocess.run(
            [*call, "--document", "--file", str(text)], check=True, stdout=subprocess.DEVNULL
        )
        batch = time.monotonic() - begin
        time.sleep(options.pause)
        outcomes: Counter[str] = Counter()
        short = [*call, "--timeout", f"{options.deadline}ms", "Hello."]
        for _ in range(options.calls):
            done = subprocess.run(short, capture_output=True, text=True)
            outcomes["answered" if done.returncode == 0 else done.stderr.strip()[:60]] += 1
        refused = running.refused()

    result = {
        "machine": facts,
        "bundle": machine.bundle_name(options.bundle),
        "load_average": os.getloadavg()[1],
        "batch_lines": options.lines,
        "batch_seconds": batch,
        "calls": options.calls,
        "deadline_ms": options.deadline,
        "answered": outcomes["answered"] / options.calls,
        "refused": {reason: count for reason, count in refused.items() if count},
    }
    print(json.dumps(result, indent=1), *outcomes.most_common(), sep="\n")
    machine.write_result(options.out / machine.slug(facts) / "short-deadlines.json", result)


if __name__ == "__main__":
    main()
