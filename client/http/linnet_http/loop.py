"""The event loop of linnet-http, with which grpc.aio frees the memory of streams that are left."""

from __future__ import annotations

import asyncio
from typing import Any


class _Future(asyncio.Future[Any]):
    def set_exception(self, exception: type | BaseException) -> None:
        if type(exception).__name__ == "ExecuteBatchError":
            self.set_result(None)
        else:
            super().set_exception(exception)


class Loop(asyncio.SelectorEventLoop):
    """grpc.aio 1.85 waits for each batch of operations with a future of the loop, and frees the
    batch only if that has a result. The read that a stream waits for fails when its client hangs
    up, and 200 bytes of C memory were kept for ever (grpc/grpc#43360). Here such a batch ends with
    a result. Nothing is lost: its operations are empty, and the status of the call, which never
    comes as an exception of the future, says that the call failed."""

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(loop=self)
