"""Makes the calls of a plan, several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from .errors import LinnetError
from .texts import Part, Plan, TextAnswer

MAX_CALLS_IN_FLIGHT = 4
# Reasons for which a server has no room now for a call that it would take alone: docs/ERRORS.md.
BUSY = {"SHARE_USED", "TOO_MUCH_WORK", "TOO_MANY_BYTES", "WAITED_TOO_LONG", "OUT_OF_MEMORY"}


class _Slots:
    """Lets at most so many calls of a plan run at once."""

    def __init__(self) -> None:
        self._most, self._running = MAX_CALLS_IN_FLIGHT, 0
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> int:
        async with self._changed:
            await self._changed.wait_for(lambda: self._running < self._most)
            self._running += 1
        return self._most

    async def __aexit__(self, *error: object) -> None:
        self._running -= 1
        async with self._changed:
            self._changed.notify_all()

    def lower(self) -> None:
        """From now on, as many as run beside the caller."""
        self._most = max(1, min(self._most, self._running) - 1)


async def run_plan(
    plan: Plan,
    answers: Callable[[list[str]], Awaitable[list[TextAnswer]]],
    first_alone: bool = False,
) -> str | list[str]:
    """Runs the calls of a plan, a few at once to keep the server busy, and one that is too large in
    smaller ones; the first error ends all. Where the server has no room for so many, the calls of
    the plan may be the reason: then fewer are made at once. With `first_alone` the first one ends
    before the others begin."""
    slots = _Slots()

    async def run(parts: list[Part]) -> None:
        while True:
            async with slots as most:
                try:
                    with plan.naming(parts) as contents:
                        plan.answer(parts, await answers(contents))
                    return
                except LinnetError as error:
                    smaller = plan.smaller(parts, error)
                    if not smaller and (error.reason not in BUSY or most == 1):
                        raise
                    if not smaller:
                        slots.lower()
            if smaller:
                for call in smaller:
                    await run(call)
                return

    calls = plan.calls()
    if first_alone and (first := next(calls, None)):
        await run(first)
    tasks = [asyncio.ensure_future(run(call)) for call in calls]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # until their calls have ended
    return plan.answers()
