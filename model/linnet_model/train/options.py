"""Every key of a recipe with type, default and meaning, read from the comments of the dataclasses.

`linnet-train --options` prints the page; docs/RECIPE_OPTIONS.md is a copy of it.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import json
import textwrap
import tokenize
import typing

from linnet_model.config import Recipe

HEAD = """# What a recipe may say

Printed by `linnet-train --options`. A recipe is a TOML file with a table for each heading. What it
does not say has its default; `--set TABLE.KEY=VALUE` wins over what it says. A key that is not here
is an error.
"""


def field_comments(cls: type) -> dict[str, str]:
    """Field -> the comment behind it, or else the one above it. A field without one, directly below
    a field whose comment stands above, shares that and refers to it."""
    source = textwrap.dedent(inspect.getsource(cls))
    comments: dict[int, str] = {}
    alone: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.string.removeprefix("#").strip()
            if token.line.strip().startswith("#"):
                alone.add(token.start[0])
    body = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)).body
    found: dict[str, str] = {}
    last, shared = 0, ""  # where the field before ends, and what one without a comment says
    for node in body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        end = node.end_lineno or node.lineno
        above: list[str] = []
        for line in range(node.lineno - 1, 0, -1):
            if line not in alone:
                break
            above.insert(0, comments[line])
        if end in comments and end not in alone:
            found[node.target.id], shared = comments[end], ""
        elif above:
            found[node.target.id], shared = " ".join(above), f"see {node.target.id}"
        else:
            found[node.target.id] = shared if node.lineno == last + 1 else ""
        last = end
    return found


def kind_of(hint: typing.Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)


def options_page() -> str:
    """The whole page, Markdown."""
    lines = [HEAD]
    parts = typing.get_type_hints(Recipe)
    for name, cls in parts.items():
        meaning = field_comments(Recipe)[name]
        about = " ".join((inspect.getdoc(cls) or "").split())
        lines += [f"## [{name}]: {meaning}", "", about, "", "| key | default | type | meaning |"]
        lines.append("|---|---|---|---|")
        hints, comments, defaults = typing.get_type_hints(cls), field_comments(cls), cls()
        for field in dataclasses.fields(cls):
            default = json.dumps(getattr(defaults, field.name))
            told = comments[field.name].replace("|", "\\|")
            lines.append(
                f"| `{field.name}` | `{default}` | {kind_of(hints[field.name])} | {told} |"
            )
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"
