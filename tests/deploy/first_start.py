"""The time from a clone to the first answer, by ./start.sh and by compose: docs/DEPLOYMENT.md.

    .venv/bin/python tests/deploy/first_start.py          both, with podman or docker
    .venv/bin/python tests/deploy/first_start.py compose  a part: start, compose

start    ./start.sh in a bare Debian 12: a container with git and nothing of an earlier run.
compose  docker compose up --build, with no layer and no compiler's cache of an earlier build.

Writes DIR/MACHINE/first-start.json; a way that was not measured is kept. The clock starts with
`git clone` of this repository's HEAD and ends with the translation of a sentence. Packages of
Debian and PyPI are fetched meanwhile; the base image, Prometheus and Grafana are present before, or
left out if they are not available.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from containers import ROOT, Engine, Project

sys.path.insert(0, str(ROOT / "tests/bench"))

import machine

WAYS = ("start", "compose")
ANSWER = "Wo ist der Bahnhof?"
GIT = """set -e
apt-get update -qq && apt-get install -y -qq --no-install-recommends git
git config --global --add safe.directory '*'
"""
START = """
git clone --quiet /repository linnet && cd linnet
./start.sh -- --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0
"""
# The commands of the page, but without the cache of an earlier build.
COMPOSE = """
git clone --quiet {repository} linnet && cd linnet
docker compose build --no-cache server && docker compose up --detach || exit
until docker compose exec -T server linnet translate --to de "Where is the train station?"; do
  sleep 0.5
done
"""


COMMANDS = {"start": "./start.sh", "compose": "docker compose up --build"}


def times_to_the_answer(command: list[str], **options) -> dict[str, Any]:
    """Prints the output of the command with times, until it contains the answer. Returns the
    seconds that passed, and those in which the programs were compiled, if it says so."""
    compiling = None
    begin = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    assert process.stdout
    for line in process.stdout:
        passed = time.monotonic() - begin
        print(f"{passed:7.1f} s  {line}", end="", flush=True)
        if built := re.search(r"Building the programs\s+(\d+) s", line):
            compiling = int(built[1])
        if line.strip() == ANSWER:
            return {"seconds": round(passed, 1), "compile_seconds": compiling}
    sys.exit(f"no answer: it ended with {process.wait()}")


def start(engine: Engine) -> dict[str, Any]:
    flags = ("--network", "host", "--volume", f"{ROOT}:/repository:ro")
    container = engine.start(engine.base, *flags, arguments=("sleep", "infinity"))
    try:
        container.exec("sh", "-c", GIT)
        shell = ("exec", "--workdir", "/root", container.name, "bash", "-c", START)
        return times_to_the_answer([engine.command, *shell])
    finally:
        container.remove()


def compose(engine: Engine) -> dict[str, Any]:
    project = Project(engine, "linnet-server:first-start")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        (Path(folder) / "bin").mkdir()
        docker = Path(folder) / "bin/docker"
        docker.write_text(project.as_docker())
        docker.chmod(0o755)
        # podman keeps the caches of `RUN --mount=type=cache` in TMPDIR.
        environment = {**os.environ, **project.environment, "TMPDIR": folder}
        environment["PATH"] = f"{docker.parent}:{os.environ['PATH']}"
        command = ["bash", "-c", COMPOSE.format(repository=ROOT)]
        try:
            return times_to_the_answer(command, cwd=folder, env=environment)
        finally:
            project.down(check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ways", nargs="*", metavar="WAY", help="of start, compose [both]")
    settings = machine.parse(parser)
    if unknown := set(settings.ways) - set(WAYS):
        parser.error(f"{', '.join(unknown)}: the ways are {', '.join(WAYS)}")
    engine, reason = Engine.find()
    if not engine:
        sys.exit(f"a container engine is needed: {reason}")
    facts = machine.facts(sorted(os.sched_getaffinity(0)))
    path = settings.out / machine.slug(facts) / "first-start.json"
    results = json.loads(path.read_text()) if path.exists() else {"ways": {}}
    for way in settings.ways or WAYS:
        results["ways"][COMMANDS[way]] = globals()[way](engine)
    results["machine"] = facts
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
