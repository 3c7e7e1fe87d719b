#!/usr/bin/env bash
# grpcio 1.85.1 (PyPI) connects through the proxy of http_proxy although no_proxy is "*", and asks that proxy for localhost.
#
# Guess before the run: no_proxy="*" switches proxies off, as in curl and Python's urllib, and an address of this machine needs none.
# Seen (grpcio 1.85.1, Python 3.11, x86-64), the first line that a proxy at 127.0.0.1 gets from a call with http_proxy set to it:
#
#   no_proxy=              localhost:50051            CONNECT localhost:50051 HTTP/1.1
#   no_proxy=              127.0.0.1:50051            CONNECT 127.0.0.1:50051 HTTP/1.1
#   no_proxy=localhost     localhost:50051            nothing
#   no_proxy=*             translate.invalid:50051    CONNECT translate.invalid:50051 HTTP/1.1
#   no_proxy=.invalid      translate.invalid:50051    nothing
#   no_proxy=invalid       translate.invalid:50051    nothing
#   no_proxy=127.0.0.0/8   127.0.0.1:50051            nothing
#
# Python's urllib.request.proxy_bypass("translate.invalid") is true with the "*". grpcio has neither a name for all hosts nor an
# exception for this machine, but it knows networks such as 127.0.0.0/8.
#
# Who meets it: clients in containers with http_proxy set for downloads. A call to a server beside the client goes to the proxy,
# whose localhost is another machine.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check grpcio==1.85.1

cat >"$folder/call.py" <<'P'
import sys

import grpc

with grpc.insecure_channel(sys.argv[1]) as channel:
    call = channel.unary_unary("/example.Service/Method", request_serializer=bytes, response_deserializer=bytes)
    try:
        call(b"", timeout=2)
    except grpc.RpcError:
        pass
P
GRPC_VERBOSITY=NONE "$folder/venv/bin/python" - "$folder/call.py" <<'P'
import os
import socket
import subprocess
import sys
import threading
import urllib.request

proxy = socket.create_server(("127.0.0.1", 0))
received = []


def serve():
    while True:
        connection, _ = proxy.accept()
        received.append(connection.recv(4096).split(b"\r\n")[0].decode())
        connection.close()


threading.Thread(target=serve, daemon=True).start()
for variable in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[variable]
os.environ["http_proxy"] = f"http://127.0.0.1:{proxy.getsockname()[1]}"
for no_proxy, target, connects in (
    ("", "localhost:50051", True),
    ("", "127.0.0.1:50051", True),
    ("localhost", "localhost:50051", False),
    ("*", "translate.invalid:50051", True),
    (".invalid", "translate.invalid:50051", False),
    ("invalid", "translate.invalid:50051", False),
    ("127.0.0.0/8", "127.0.0.1:50051", False),
):
    received.clear()
    os.environ["no_proxy"] = no_proxy
    subprocess.run([sys.executable, sys.argv[1], target], check=True)
    print(f"no_proxy={no_proxy:14}{target:27}{received[0] if received else 'nothing'}")
    assert received[:1] == ([f"CONNECT {target} HTTP/1.1"] if connects else [])
    if no_proxy == "*":
        assert urllib.request.proxy_bypass("translate.invalid")
P
echo "as described"
