#!/usr/bin/env bash
# A client of grpcio 1.85.1 (PyPI) gets the same long error sometimes as the server's INVALID_ARGUMENT and sometimes as
# RESOURCE_EXHAUSTED. A letter outside ASCII counts as six or nine bytes.
#
# Guess before the run: an error is either short enough for the client's limit or not, every time.
# Seen (grpcio 1.85.1, Python 3.11, x86-64), 200 calls each of a method that quotes the rejected text in its message:
#
#   1000 x "a"     INVALID_ARGUMENT 200
#   12000 x "a"    INVALID_ARGUMENT 100, RESOURCE_EXHAUSTED 100
#   1000 x "ä"     INVALID_ARGUMENT 200
#   2000 x "ä"     INVALID_ARGUMENT 89, RESOURCE_EXHAUSTED 111
#   1400 x "語"     INVALID_ARGUMENT 97, RESOURCE_EXHAUSTED 103
#   2000 x "語"     RESOURCE_EXHAUSTED 200
#
# The numbers vary. Metadata of more than 8 KiB are refused with a probability that grows up to 16 KiB. Messages travel
# percent-encoded. The details of google.rpc.Status are metadata too.
#
# Who meets it: servers that quote the text in an error. A client retries RESOURCE_EXHAUSTED, and the same bad request comes again.
# Tests in English do not show it.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check grpcio==1.85.1

env -u http_proxy -u HTTP_PROXY -u https_proxy -u HTTPS_PROXY GRPC_VERBOSITY=NONE "$folder/venv/bin/python" - <<'P'
from collections import Counter
from concurrent import futures

import grpc


class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(self.reject)

    def reject(self, request, context):
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, request.decode())


server = grpc.server(futures.ThreadPoolExecutor(2))
server.add_generic_rpc_handlers([Handler()])
port = server.add_insecure_port("127.0.0.1:0")
server.start()
with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
    call = channel.unary_unary("/t.T/Reject")
    for letter, count, codes in (("a", 1000, 1), ("a", 12000, 2), ("ä", 1000, 1), ("ä", 2000, 2), ("語", 1400, 2), ("語", 2000, 1)):
        seen = Counter()
        for _ in range(200):
            try:
                call((count * letter).encode(), timeout=10)
            except grpc.RpcError as error:
                seen[error.code().name] += 1
        case = f'{count} x "{letter}"'
        print(f"{case:15}{', '.join(f'{code} {times}' for code, times in sorted(seen.items()))}")
        assert len(seen) == codes and sum(seen.values()) == 200
        assert codes == 2 or list(seen) == ["INVALID_ARGUMENT" if count == 1000 else "RESOURCE_EXHAUSTED"]
server.stop(0)
P
echo "as described"
