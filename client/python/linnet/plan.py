"""Makes the calls of a plan, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection

from .errors import LinnetError
from .texts import Plan, TextAnswer


def run_plan(
    plan: Plan,
    answers: Callable[[list[str]], Collection[TextAnswer]],
    first_alone: bool = True,
) -> str | list[str]:
    """Runs the calls of a plan, and one that is too large in smaller ones."""
    for call in plan.calls():
        left = [call]
        while left:
            parts = left.pop()
            try:
                with plan.naming(parts) as contents:
                    plan.answer(parts, answers(contents))
            except LinnetError as error:
                smaller = plan.smaller(parts, error)
                if not smaller:
                    raise
                left += reversed(smaller)
    return plan.answers()
