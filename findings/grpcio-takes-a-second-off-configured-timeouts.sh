#!/usr/bin/env bash
# grpcio 1.85.1 (PyPI) ends a call one to two seconds before the timeout of its service config. The difference depends on the fraction
# of the second at which the process started gRPC. A timeout of one second fails every call before it is sent.
#
# Guess before the run: "timeout": "2.5s" of a methodConfig ends a call after 2.5 seconds, as timeout=2.5 of the call does.
# Seen (grpcio 1.85.1, Python 3.11, x86-64), for a method that sleeps, in processes that start gRPC at these parts of a second:
#
#   started at .0    timeout=2.5 of the call    2.5 s
#   started at .0    "2.5s" of the config       1.5 s
#   started at .3    "2.5s" of the config       1.2 s
#   started at .6    "2.5s" of the config       0.9 s
#   started at .8    "2.5s" of the config       0.7 s
#   started at .8    "1s" of the config         0.0 s
#
# Runs differ by 0.1 s. A server that asks for its remaining time gets the timeout of the call, not the shorter one of the config.
#
# Who meets it: clients of fast services with timeouts of a few seconds. Replicas with the same settings get different timeouts, and a
# restart changes them.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check grpcio==1.85.1

cat >"$folder/call.py" <<'P'
import json
import sys
import time
from concurrent import futures

import grpc

part, timeout = float(sys.argv[1]), float(sys.argv[2].rstrip("s"))
time.sleep((part - time.monotonic()) % 1)
remaining = []


class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(self.wait)

    def wait(self, request, context):
        remaining.append(context.time_remaining())
        time.sleep(3)
        return b""


server = grpc.server(futures.ThreadPoolExecutor(2))
server.add_generic_rpc_handlers([Handler()])
port = server.add_insecure_port("127.0.0.1:0")
server.start()
in_config = sys.argv[2].endswith("s")
config = {"methodConfig": [{"name": [{"service": "t.T"}], "timeout": sys.argv[2]}]} if in_config else {}
with grpc.insecure_channel(f"127.0.0.1:{port}", [("grpc.service_config", json.dumps(config))]) as channel:
    grpc.channel_ready_future(channel).result(10)
    start = time.monotonic()
    try:
        channel.unary_unary("/t.T/Wait")(b"", timeout=20 if in_config else timeout)
    except grpc.RpcError as error:
        took = time.monotonic() - start
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
name = f'"{sys.argv[2]}" of the config' if in_config else f"timeout={timeout} of the call"
print(f"started at .{sys.argv[1][-1]}    {name:27}{took:.1f} s")
expected = timeout
if in_config:
    expected = max(0, timeout - 1 - part)
    assert not remaining if timeout <= 1 else remaining[0] > 19
assert abs(took - expected) < 0.3
server.stop(0)
P
for run in "0.0 2.5" "0.0 2.5s" "0.3 2.5s" "0.6 2.5s" "0.8 2.5s" "0.8 1s"; do
  # shellcheck disable=SC2086
  env -u http_proxy -u HTTP_PROXY -u https_proxy -u HTTPS_PROXY "$folder/venv/bin/python" "$folder/call.py" $run
done
echo "as described"
