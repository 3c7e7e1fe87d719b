#!/usr/bin/env python3
"""Collects linnet-http in a folder: DIR/bin/linnet-http, DIR/python.

    deploy/stage_http.py DIR        for the package and the image

DIR/python holds linnet_http, linnet_files, the Python client and the packages [http] and [files] of
deps/versions.txt, from .deps/python (./start.sh --deps --http). Debian's own grpcio and aiohttp are
too old. The folder may lie anywhere; it needs Debian's python3.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from stage_model import ROOT, SITE, copy_packages, fail, finish, pinned

PACKAGES = (ROOT / "client/http/linnet_http", ROOT / "client/files/linnet_files")
COMMAND = """#!/bin/sh
# linnet-http with the Python packages of this folder.
here=$(dirname -- "$(readlink -f -- "$0")")
exec /usr/bin/python3 -I -B -c '
import sys
sys.path.insert(0, sys.argv.pop(1))
from linnet_http.command import main
main()' "$here/../python" "$@"
"""


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    client = SITE / "linnet"
    if not client.is_dir():
        fail(f"{SITE} has no Python client: run ./start.sh --deps --http")
    shutil.rmtree(folder / "python", ignore_errors=True)
    copy_packages(folder / "python", pinned("http", "files"), "http")
    finish(folder, "linnet-http", COMMAND, client, *PACKAGES)


if __name__ == "__main__":
    main()
