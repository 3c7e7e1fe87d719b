#!/usr/bin/env bash
# The client of connectrpc 0.13.0 (PyPI) raises ConnectError when its task is cancelled, in place of asyncio.CancelledError. A timeout of
# asyncio then raises no TimeoutError, and a loop that retries on ConnectError cannot be cancelled.
#
# Guess before the run: inside asyncio.timeout() the caller gets TimeoutError, and a loop of retries ends when its task is cancelled.
# Seen (connectrpc 0.13.0, pyqwest 0.12.0, Python 3.11), with a server that does not answer:
#
#   asyncio.timeout(): ConnectError: Request was cancelled
#   asyncio.wait_for(): ConnectError: Request was cancelled
#   retries: cancelled in attempt 1, ended by itself after attempt 3
#
# Who meets it: gateways whose callers hang up or have a time limit. The call to the translation server that nobody waits for any more is
# made again, and code that expects TimeoutError takes the limit for a failed server.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check connectrpc==0.13.0 protobuf-py==0.7.0 pyqwest==0.12.0

"$folder/venv/bin/python" - <<'P'
import asyncio
import socket

from connectrpc.client import ConnectClient
from connectrpc.errors import ConnectError
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from protobuf.wkt import StringValue

kinds = {"idempotency_level": IdempotencyLevel.UNKNOWN, "stream_type": StreamType.UNARY}
METHOD = MethodInfo(name="Translate", service_name="example.Service", input=StringValue, output=StringValue, **kinds)


async def within(seconds, call):
    async with asyncio.timeout(seconds):
        await call


async def main(port):
    async with ConnectClient(f"http://127.0.0.1:{port}") as client:

        def call(timeout_ms=None):
            return client.execute_unary(request=StringValue(value="Hi"), method=METHOD, timeout_ms=timeout_ms)

        for name, waiting in (("timeout()", within(0.3, call())), ("wait_for()", asyncio.wait_for(call(), 0.3))):
            try:
                await waiting
            except Exception as error:
                print(f"asyncio.{name}: {type(error).__name__}: {error}")
                assert type(error) is ConnectError
        attempts = 0

        async def retry():
            nonlocal attempts
            while attempts < 3:
                attempts += 1
                try:
                    return await call(timeout_ms=500)
                except ConnectError:
                    pass

        task = asyncio.create_task(retry())
        await asyncio.sleep(0.2)
        task.cancel()
        await asyncio.wait([task])
        print(f"retries: cancelled in attempt 1, ended by itself after attempt {attempts}")
        assert attempts == 3 and not task.cancelled()


with socket.create_server(("127.0.0.1", 0)) as server:
    asyncio.run(main(server.getsockname()[1]))
P
echo "as described"
