#!/usr/bin/env bash
# grpc.aio 1.85.1 (PyPI) keeps about 1,000 bytes of C memory for ever of each unary call that is cancelled while it runs.
#
# Guess before the run: a cancelled call is freed whole when its task has ended, as one is that ends at its deadline.
# Seen (grpcio 1.85.1, Python 3.11, Debian 12, x86-64), memory that malloc has handed out (mallinfo2().uordblks), after 2,000 calls
# of a method that sleeps:
#
#   past their deadline     36 bytes a call
#   cancelled              968 bytes a call
#
# No Python object stays, so tracemalloc and gc see nothing. It grows linearly: 3,000 calls more, 2.7 MB more. As read in
# grpc/aio/_call.py, the call's own cancel() also cancels the task that awaits the batch of operations, and then nothing frees them.
# A call whose task may end by itself (shielded from the caller's cancellation) keeps less than 100 bytes.
#
# Who meets it: gateways on grpc.aio, whose callers hang up. At ten hang-ups a second it is 35 MB an hour.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check grpcio==1.85.1

GRPC_VERBOSITY=NONE "$folder/venv/bin/python" - <<'P'
import asyncio
import ctypes
import gc

import grpc

FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS.split()]


libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Mallinfo2


async def sleep(request, context):
    await asyncio.sleep(30)
    return b""


async def end(call, cancels):
    if cancels:
        await asyncio.sleep(0.02)
        call.cancel()
    try:
        await call
    except (asyncio.CancelledError, grpc.RpcError):
        pass


async def used_after(method, cancels, calls):
    for _ in range(calls // 20):
        made = [method(b"x", timeout=None if cancels else 0.02) for _ in range(20)]
        await asyncio.gather(*(end(call, cancels) for call in made))
    await asyncio.sleep(0.5)
    gc.collect()
    return libc.mallinfo2().uordblks


async def main():
    server = grpc.aio.server()
    handlers = {"Sleep": grpc.unary_unary_rpc_method_handler(sleep)}
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("example.Service", handlers)]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    kept = {}
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        method = channel.unary_unary("/example.Service/Sleep")
        for cancels in (False, True):
            before = await used_after(method, cancels, 500)
            after = await used_after(method, cancels, 2000)
            kept[cancels] = (after - before) / 2000
            print(f"{'cancelled' if cancels else 'past their deadline':20}{kept[cancels]:6.0f} bytes a call")
    await server.stop(None)
    assert kept[True] > 800 and kept[False] < 300, kept


asyncio.run(main())
P
echo "as described"
