"""The page of all recipe keys with type, default and meaning, made from the comments in config.py
and data_config.py.

`linnet-train --options` prints it; docs/RECIPE_OPTIONS.md is a copy.
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

HEAD = """# Recipe options

Printed by `linnet-train --options`. A recipe is a TOML file with a table for each heading. Missing
keys have their defaults; `--set TABLE.KEY=VALUE` overrides the recipe. Unknown keys are errors.

A recipe that begins with `base = "FILE"`, another recipe in the same folder, has all keys of that
one but those that it sets itself. Its `data.domains` are added to those of the base; one with share
0 is left out. A base has no base itself.
"""

STAGES = """## [[stages]]: trainings one after another

Optional, at the end of a recipe. Each stage has a `name` and the keys that differ from those above
the stages, in tables such as `[stages.train]`; a key of a stage does not change the next one. Its
`data.domains` are added to those above the stages; one with share 0 is left out. It
starts from the averaged weights of the stage before, with its vocabulary: `[model]` (but dropouts),
`[tokenizer]` and `data.capitals_mark` are the same in all stages. `--out` gets a run folder for
each name, and the last stage is the result.
"""


def field_comments(cls: type) -> dict[str, str]:
    """Returns the comment of each field: the one after it on its line, else the one above it. A
    field without a comment, directly below one with a comment above, refers to that field."""
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
    last, shared = 0, ""  # line where the previous field ends; comment of a field without one
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
    """Returns the page as Markdown."""
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
            meaning = comments[field.name].replace("|", "\\|")
            kind = kind_of(hints[field.name]).replace("|", "\\|")
            lines.append(f"| `{field.name}` | `{default}` | {kind} | {meaning} |")
        lines.append("")
    return "\n".join([*lines, STAGES])
