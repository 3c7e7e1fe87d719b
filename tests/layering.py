"""Dependencies point down only: each #include, Python import and CMake link against layers.py.

What a header of another layer includes counts as included too, and what a target links PUBLIC
counts as linked: so a torch type in a header of model/torch is found in the server.
"""

from __future__ import annotations

import ast
import fnmatch
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from layers import EXCEPTIONS, HEADERS, LAYERS, MODULES, SYSTEM, TARGETS

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ("tests/", "research/")  # their modules are imported by file name
SKIPPED_FOLDERS = {"build", "__pycache__"}  # and hidden ones
CPP = {".h", ".cc", ".cu", ".cuh"}


@dataclass
class Use:
    """One thing that a file uses, and the way by which it got there."""

    what: str  # a layer or a library
    line: int
    through: str


@dataclass
class Tree:
    """All source files under `root`, by their path from there."""

    root: Path
    files: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(f for f in folders if f[0] != "." and f not in SKIPPED_FOLDERS)
            for path in (Path(folder, name) for name in sorted(names)):
                if path.suffix in CPP | {".py", ".proto"} or path.name == "CMakeLists.txt":
                    self.files[path.relative_to(self.root).as_posix()] = path.read_text()


def layer_of(path: str) -> str | None:
    """The innermost layer that holds the file."""
    layers = [layer for layer in LAYERS if path.startswith(layer + "/")]
    return max(layers, key=len, default=None)


def allowed(layer: str | None, *names: str) -> set[str]:
    extra = [
        what
        for name in names
        for pattern, what in EXCEPTIONS.items()
        if fnmatch.fnmatchcase(name, pattern)
    ]
    words = " ".join([layer or "", "anything", LAYERS.get(layer or "", ""), *extra])
    return set(words.split())


def lookup(name: str, table: dict[str, str]) -> list[str]:
    """All that the name means; nothing if no pattern fits."""
    return [
        meaning
        for meaning, patterns in table.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns.split())
    ]


def unknown(name: str, table: str) -> str:
    return f"{name}, which this test does not know: add it to {table}"


def includes(text: str) -> list[tuple[int, str]]:
    found = re.finditer(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', text, re.MULTILINE)
    return [(text.count("\n", 0, m.start()) + 1, m[1]) for m in found]


def header_uses(tree: Tree, path: str) -> Iterator[Use]:
    """Direct includes, and the libraries that headers of ours drag in."""
    seen = {path}
    queue = [(path, line, header, path) for line, header in includes(tree.files[path])]
    while queue:
        holder, line, header, chain = queue.pop(0)
        chain += f" -> {header}"
        if header in tree.files:
            if holder == path:
                yield Use(layer_of(header) or unknown(header, "LAYERS"), line, chain)
            if header not in seen:
                seen.add(header)
                queue += [(header, line, h, chain) for _, h in includes(tree.files[header])]
        elif meaning := lookup(header, HEADERS):
            yield from (Use(what, line, chain) for what in meaning)
        elif not SYSTEM.match(header):
            yield Use(unknown(header, "HEADERS or SYSTEM"), line, chain)


def python_uses(tree: Tree, path: str) -> Iterator[Use]:
    folder = path.rpartition("/")[0]
    for node in ast.walk(ast.parse(tree.files[path], path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        else:
            continue
        for name in names:
            top = name.partition(".")[0]
            if top in sys.stdlib_module_names or f"{folder}/{top}.py" in tree.files:
                continue
            siblings = sorted(
                (f for f in tree.files if f.endswith(f"/{top}.py") and f.startswith(SCRIPTS)),
                key=lambda f: f.split("/")[0] != path.split("/")[0],  # its own tree first
            )
            if not (meaning := lookup(name, MODULES) or lookup(top, MODULES)):
                meaning = [layer_of(siblings[0]) or ""] if siblings else [unknown(top, "MODULES")]
            yield from (Use(what, node.lineno, f"{path} -> {name}") for what in meaning)


def imports(tree: Tree) -> dict[str, set[str]]:
    """The Python files of the tree that each of them imports, wherever in the file, also for types
    alone."""
    found: dict[str, set[str]] = {path: set() for path in tree.files if path.endswith(".py")}
    roots = ["", "client/python/", "model/"]

    def add(path: str, module: str, names: list[str], roots: list[str]) -> None:
        base = module.replace(".", "/")
        for root in roots:
            # A name of a package is a module of it or something in its __init__.
            tried = [f"{root}{base}/{name}" if base else f"{root}{name}" for name in names]
            modules = [f"{each}.py" for each in tried if f"{each}.py" in found]
            whole = [f"{root}{base}.py", f"{root}{base}/__init__.py"] if base else []
            rest = len(modules) < len(names) or not names
            found[path].update(modules, (each for each in whole if each in found and rest))
        found[path].discard(path)

    for path in found:
        folder = path.rpartition("/")[0]
        for node in ast.walk(ast.parse(tree.files[path], path)):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    add(path, alias.name, [], [f"{folder}/", *roots])
            elif isinstance(node, ast.ImportFrom):
                names = [alias.name for alias in node.names]
                above = folder.split("/")[: len(folder.split("/")) - max(node.level - 1, 0)]
                where = [f"{'/'.join(above)}/"]
                add(path, node.module or "", names, where if node.level else [*where, *roots])
    return found


def circles(uses: dict[str, set[str]]) -> list[str]:
    """One circle for each file that imports itself through others, as "a -> b -> a"."""
    found, done = [], set()

    def visit(path: str, way: list[str]) -> None:
        if path in way:
            found.append(" -> ".join([*way[way.index(path) :], path]))
        elif path not in done:
            for each in sorted(uses[path]):
                visit(each, [*way, path])
            done.add(path)

    for path in sorted(uses):
        visit(path, [])
    return found


def proto_uses(tree: Tree, path: str) -> Iterator[Use]:
    for m in re.finditer(r'^import (?:public )?"([^"]+)"', tree.files[path], re.MULTILINE):
        known = f"proto/{m[1]}" in tree.files or m[1].startswith("google/protobuf/")
        if not known:
            line = tree.files[path].count("\n", 0, m.start()) + 1
            yield Use(unknown(m[1], "proto/"), line, f"{path} -> {m[1]}")


@dataclass
class Target:
    path: str
    line: int
    links: list[tuple[str, bool]]  # a target, and whether those that link this one get it too


def targets(tree: Tree) -> dict[str, Target]:
    """The targets of all CMake files with what they link."""
    found: dict[str, Target] = {}
    for path, text in tree.files.items():
        if not path.endswith("CMakeLists.txt"):
            continue
        text = re.sub(r"#.*", "", text)
        calls = (
            r"(add_library|add_executable|target_link_libraries|linnet\w*_test)\(\s*(\S+)([^)]*)\)"
        )
        for m in re.finditer(calls, text):
            line = text.count("\n", 0, m.start()) + 1
            target = found.setdefault(m[2], Target(path, line, []))
            if m[1].startswith("add_"):
                continue
            words = m[3].replace('"', " ").split()
            public = m[1] == "target_link_libraries"
            if m[1].startswith("linnet"):
                words = words[words.index("LIBRARIES") + 1 :] if "LIBRARIES" in words else []
            for word in words:
                if word in ("PUBLIC", "PRIVATE", "INTERFACE"):
                    public = word != "PRIVATE"
                    continue
                # $<LINK_ONLY:x> links x without its headers.
                bare = re.sub(r"^\$<[A-Z_]+:(.*)>$", r"\1", word)
                target.links.append((bare, public and "LINK_ONLY" not in word))
    return found


def link_uses(all_targets: dict[str, Target], name: str) -> Iterator[Use]:
    """Direct links, and what they link in public."""
    seen = {name}
    queue = [(name, link, name) for link, _ in all_targets[name].links]
    while queue:
        holder, link, chain = queue.pop(0)
        chain += f" -> {link}"
        line = all_targets[name].line
        if meaning := lookup(link, TARGETS):
            yield from (Use(what, line, chain) for what in meaning)
        elif link in all_targets:
            if holder == name:
                yield Use(layer_of(all_targets[link].path) or unknown(link, "LAYERS"), line, chain)
            if link not in seen:
                seen.add(link)
                queue += [
                    (link, further, chain) for further, public in all_targets[link].links if public
                ]
        else:
            yield Use(unknown(link, "TARGETS"), line, chain)


def violations(root: Path) -> list[str]:
    """A line for each use that the table does not allow: where, what, by which way."""
    tree = Tree(root)
    found: list[str] = []

    def check(path: str, uses: Iterator[Use], *names: str) -> None:
        layer = layer_of(path)
        may = allowed(layer, path, *names)
        listed = ", ".join(sorted(may - {layer, "anything"})) or "nothing"
        for use in uses:
            if use.what not in may:
                found.append(
                    f"{path}:{use.line}: {layer or 'no layer'} may not use {use.what} "
                    f"({use.through}); it may use {listed}"
                )

    for path in tree.files:
        suffix = Path(path).suffix
        if suffix in CPP:
            if layer_of(path) is None:
                found.append(f"{path}:1: belongs to no layer: add its folder to LAYERS")
            if path.startswith("model/linnet_model/"):
                found.append(f"{path}:1: model/linnet_model is Python alone: C++ goes to model/ops")
            check(path, header_uses(tree, path))
        elif suffix == ".py":
            check(path, python_uses(tree, path))
        elif suffix == ".proto":
            check(path, proto_uses(tree, path))
    all_targets = targets(tree)
    for name, target in all_targets.items():
        check(target.path, link_uses(all_targets, name), name)
    return found
