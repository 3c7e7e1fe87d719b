"""Runs linnet-corpus on a local S3 server, in an environment that has moto:

    store_run.py FOLDER

FOLDER has a bundle and a linnet-decode. Exits with another status than 0 if a command fails.
"""

from __future__ import annotations

import os
import sys

from linnet_corpus.command import main
from moto.server import ThreadedMotoServer
from pyarrow import fs


def run(*arguments: str) -> None:
    try:
        main(list(arguments))
    except SystemExit as end:
        if end.code:
            raise


os.environ |= {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
server = ThreadedMotoServer(port=0, verbose=False)
server.start()
_, port = server.get_host_and_port()
query = f"?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
store, _ = fs.FileSystem.from_uri(f"s3://bucket{query}&allow_bucket_creation=true")
store.create_dir("bucket")
with store.open_output_stream("bucket/in.txt") as file:
    file.write(b"one\ntwo\nthree\n")
bundle = ["--bundle", f"{sys.argv[1]}/bundle"]
out = f"s3://bucket/out{query}"
for _ in range(2):
    run("run", f"s3://bucket/in.txt{query}", "-o", out, *bundle, "--chunk-rows", "2")
run("verify", out, *bundle, "--sample", "1")
run("merge", out, "-o", f"{sys.argv[1]}/all.txt")
server.stop()
