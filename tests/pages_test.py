"""The pages of the project: links resolve; commands, flags, settings and metrics exist."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from attacks import ATTACKS, WITH_TOKENS

ROOT = Path(__file__).resolve().parents[1]


def pages() -> list[Path]:
    """The pages in git; without git, all that are not in a build folder or a hidden one."""
    list_pages, listed = ["git", "ls-files", "*.md"], ""
    if shutil.which("git"):
        listed = subprocess.run(list_pages, cwd=ROOT, capture_output=True, text=True).stdout
    named = [ROOT / line for line in listed.splitlines()]
    left_out = {path for path in ROOT.glob(".*") if path.name != ".github"} | {ROOT / "build"}
    found = named or [it for it in ROOT.rglob("*.md") if left_out.isdisjoint(it.parents)]
    return [page for page in found if page.exists()]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_pages_are_found():
    assert {ROOT / "README.md", ROOT / "docs/RUNBOOKS.md"} <= set(pages())


def test_pages_are_found_without_git(monkeypatch):
    with_git = pages()
    monkeypatch.setenv("PATH", "")
    assert set(with_git) <= set(pages())
    assert not [page for page in pages() if ".venv" in page.parts or "build" in page.parts]


def test_index_lists_every_page_of_its_folder():
    index = (ROOT / "docs/README.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert f"]({page.name})" in index or page.name == "README.md", page.name


def test_findings_have_a_row_for_each_section_of_the_results():
    page = (ROOT / "tests/bench/results/quality.md").read_text()
    sections = re.findall(r"^##+ (.*)$", page, re.MULTILINE)
    named = re.findall(r"\]\(#([\w-]+)\) \|$", page, re.MULTILINE)
    assert named == [re.sub(r"[^\w -]", "", it).lower().replace(" ", "-") for it in sections]


# --- Links --------------------------------------------------------------------------------------


def without_code(page: Path) -> str:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`(?!\])", "", text)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of headings."""
    found = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in found}


def broken_links(page: Path) -> list[str]:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        target, _, anchor = link.partition("#")
        if re.match(r"\w+:", target):  # a URL
            continue
        other = (page.parent / target).resolve() if target else page
        if not other.exists() or (anchor and anchor not in anchors(other)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_resolve(page):
    assert broken_links(page) == []


def test_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One\n[a](#one) [b](#two) [c](page.md#one) [d](gone.md) [e](https://x.example)\n"
    )
    assert broken_links(page) == ["#two", "gone.md"]


# --- Commands and flags -------------------------------------------------------------------------

# The history keeps its words; cards and results are written by programs; research has a test of
# its own.
CHECKED = [
    page
    for page in pages()
    if not re.search(r"CHANGELOG|MODEL_CARD|bench/results/|^research/", name_of(page))
]
SCRIPTS = tomllib.loads((ROOT / "model/pyproject.toml").read_text())["project"]["scripts"]
PROGRAMS = {"linnet", "linnet-server", "linnet-decode", "linnet-load"}
SCRIPT = {".py", ".sh", ""}
# Flags of programs that are not ours and that pages show without their program.
FOREIGN = {"--cpus", "--benchmark_context", "--benchmark_out", "--volumes", "--mem"}


@dataclass(frozen=True)
class Command:
    """A simple command that a page shows, up to the next pipe."""

    words: tuple[str, ...]

    @property
    def program(self) -> str:
        return self.words[0].removeprefix("build/release/bin/")

    @property
    def flags(self) -> set[str]:
        return {flag for flag in map(flag_in, self.words) if flag}


def flag_in(word: str) -> str:
    found = re.match(r"\[?(--[a-z][\w-]*)", word)
    return found[1] if found else ""


def code(text: str) -> Iterator[str]:
    """The lines of fenced blocks, continued lines joined, and the spans within a line."""
    for block in re.findall(r"^```.*?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield from re.sub(r"\\\n\s*", " ", block).splitlines()
    rest = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    yield from (span.replace("\n", " ") for span in re.findall(r"`([^`]+)`", rest))


def commands(text: str) -> Iterator[Command]:
    for line in code(text):
        line = re.sub(r"\s#\s.*|   .*", "", line.removeprefix("$ "))
        line = re.sub(r"'[^']*'|\"[^\"]*\"", "TEXT", line)
        for part in re.split(r"\||&&|;|\(|\)", line):
            words = part.split()
            while words and re.match(r"\w+=|sudo$|docker$|compose$|exec$|server$|--$", words[0]):
                words.pop(0)
            if words and re.search(r"(^|/)python3?$", words[0]):
                words.pop(0)
                if words[:1] == ["-m"]:
                    words.pop(0)
            if words:
                yield Command(tuple(words))


@functools.cache
def help_of(*command: str) -> str:
    flag = "--help-all" if command[0].endswith("linnet-server") else "--help"
    return subprocess.run([*command, flag], capture_output=True, text=True, check=True).stdout


def flags_of(text: str) -> set[str]:
    return set(re.findall(r"--[a-z][\w-]*", text))


def known_flags(command: Command, program) -> set[str] | None:
    """The flags of the command; None if it is not one of ours."""
    name, *arguments = command.words
    name = command.program
    if name in PROGRAMS:
        path = str(program(name))
        if name == "linnet" and arguments and re.fullmatch(r"[a-z]+", arguments[0]):
            return flags_of(help_of(path, arguments[0]))
        return flags_of(help_of(path))
    module = SCRIPTS.get(name, name).partition(":")[0]
    if name == "linnet-model":  # import TOOLKIT …, check …
        table = (ROOT / "model/linnet_model/__main__.py").read_text()
        modules = dict(re.findall(r'"(\w+)": "(linnet_model\.[\w.]+)"', table))
        words = arguments[1:] if arguments[:1] == ["import"] else arguments
        if not words or words[0].startswith(("-", "…")):
            return flags_of(table)
        module = modules[words[0]]
    if module.startswith("linnet_model."):
        path = ROOT / "model" / module.replace(".", "/")
        sources = [ROOT / "model/linnet_model/command_line.py"]
        shared = path.parents[1] / "__init__.py"  # import_parser
        sources += path.glob("*.py") if path.is_dir() else [path.with_suffix(".py"), shared]
        return flags_of("".join(source.read_text() for source in sources))
    script = ROOT / name
    if re.match(r"\./|tests/|deploy/", name) and script.is_file() and script.suffix in SCRIPT:
        text = script.read_text()
        used = [*script.parent.glob("*.py")] if script.parent != ROOT else []
        used += [ROOT / name for name in re.findall(r"tests/[\w/]+\.py", text)]  # of a wrapper
        return flags_of(text + "".join(it.read_text() for it in used)) | {"--help"}
    ours = name.startswith(("./", "tests/", "deploy/")) and command.flags
    assert script.exists() or not ours, f"no {name}"
    return None


def wrong_flags(text: str, program) -> list[str]:
    found = []
    for command in commands(text):
        known = known_flags(command, program)
        if known is not None:
            found += [f"{command.words[0]} {flag}" for flag in sorted(command.flags - known)]
    return found


@pytest.mark.parametrize("page", CHECKED, ids=name_of)
def test_flags_of_commands_exist(page, program):
    assert wrong_flags(page.read_text(), program) == []


def tokens_in_plain_text(text: str) -> list[str]:
    """Commands of linnet that it refuses, because a token would leave this machine unencrypted."""
    found = []
    for command in commands(text):
        words = command.words
        if command.program in ("linnet", "linnet-load") and "--token-file" in words:
            server = words[words.index("--server") + 1] if "--server" in words else "127.0.0.1"
            local = re.match(r"127\.|localhost\b|\[::1\]", server)
            if not local and not command.flags & {"--tls", "--tls-ca"}:
                found.append(" ".join(words))
    return found


@pytest.mark.parametrize("page", CHECKED, ids=name_of)
def test_commands_with_a_token_use_tls(page):
    assert tokens_in_plain_text(page.read_text()) == []


def test_token_in_plain_text_is_found():
    text = "`linnet models --server a:1 --token-file T`, `linnet models --token-file T`"
    assert tokens_in_plain_text(text) == ["linnet models --server a:1 --token-file T"]


def test_wrong_flag_is_found(program):
    text = """
`linnet models --wrong`, `linnet-train --recipe R --wrongly`

```sh
echo A | build/release/bin/linnet translate --to de \\
  --nowhere | sort --unknown
./start.sh --build --never
```
"""
    assert set(wrong_flags(text, program)) == {
        "./start.sh --never",
        "build/release/bin/linnet --nowhere",
        "linnet --wrong",
        "linnet-train --wrongly",
    }


@functools.cache
def every_flag(program) -> set[str]:
    texts = [help_of(str(program(name))) for name in PROGRAMS]
    linnet = str(program("linnet"))
    subcommands = re.search(r"^Subcommands:\n(.*?)^$", help_of(linnet), re.MULTILINE | re.DOTALL)
    texts += [help_of(linnet, it) for it in re.findall(r"^  (\w+)", subcommands[1], re.MULTILINE)]
    scripts = [*(ROOT / "model/linnet_model").rglob("*.py"), *ROOT.glob("*.sh")]
    scripts += [*(ROOT / "client/files").rglob("*.py"), *(ROOT / "client/corpus").rglob("*.py")]
    scripts += [*(ROOT / "tests").rglob("*.py"), ROOT / "deploy/pin-images"]
    return flags_of("".join([*texts, *(path.read_text() for path in scripts)]))


@pytest.mark.parametrize("page", CHECKED, ids=name_of)
def test_flags_named_alone_exist(page, program):
    """Such as `--max-batch-rows` in a sentence."""
    named = {flag_in(span) for span in code(page.read_text()) if flag_in(span)}
    assert named - every_flag(program) - FOREIGN == set()


# --- Threats ------------------------------------------------------------------------------------


TABLES = ["| who | attack | bound | test |", "| event | what happens | test |"]


def named_in_threats() -> list[str]:
    """The tests in the last columns of the tables of docs/THREATS.md, one by one."""
    lines = (ROOT / "docs/THREATS.md").read_text().splitlines()
    cells = []
    for head in TABLES:
        rows = [*lines[lines.index(head) + 2 :], ""]
        cells += [row.split(" | ")[-1].rstrip(" |") for row in rows[: rows.index("")]]
    without_links = [re.sub(r"\[[^\]]*\]\([^)]*\)", "", cell) for cell in cells]
    # A comma also stands in the name of an attack.
    return [test for cell in without_links for test in re.split(r"; |(?<=`), ", cell) if test]


def test_every_threat_names_a_test_that_exists():
    sources = [it for it in (ROOT / "tests").rglob("*_test.*") if it.suffix in {".py", ".cc"}]
    text = "".join(source.read_text() for source in sources)
    known = {source.name for source in sources} | {"bench_batcher"} | set(ATTACKS | WITH_TOKENS)
    known |= set(re.findall(r"TEST(?:_\w)?\((\w+),", text))
    known |= {f"{it[0]}.{it[1]}" for it in re.findall(r"TEST(?:_\w)?\((\w+), (\w+)\)", text)}
    known |= set(re.findall(r"def (test_\w+)", text))
    named = [name.strip("`") for name in named_in_threats()]
    assert len(named) > 70
    assert [name for name in named if name not in known] == []


# --- Metrics ------------------------------------------------------------------------------------

# Libraries and packages, which are written like metrics.
NOT_METRICS = {"corpus", "client", "model", "ops", "ops_cuda", "runtime", "server_test", "torch"}


def metrics_in(text: str) -> set[str]:
    names = re.findall(r"(?<![\w./-])linnet_(\w+?)(?:_bucket|_sum|_count)?\b(?![./-]\w)", text)
    return {f"linnet_{name}" for name in names if name not in NOT_METRICS}


METRICS = ("docs/METRICS.md", "docs/HTTP.md", "docs/CORPUS.md")


def documented_metrics() -> set[str]:
    pages = "".join((ROOT / page).read_text() for page in METRICS)
    return set(re.findall(r"^\| `(linnet_\w+)` \|", pages, re.M))


@pytest.mark.parametrize("page", CHECKED, ids=name_of)
def test_metrics_of_a_page_are_documented(page):
    spans = " ".join(code(page.read_text()))
    assert metrics_in(spans) - documented_metrics() == set()


@pytest.mark.parametrize(
    "file",
    [
        "deploy/prometheus/rules.yml",
        "deploy/prometheus/alerts.yml",
        "deploy/grafana/dashboards/linnet.json",
    ],
)
def test_metrics_of_rules_and_dashboard_are_documented(file):
    """tests/deploy asks a running server for them as well."""
    text = re.sub(r"\b(?:job|instance)\w*:[\w:]+", "", (ROOT / file).read_text())
    found = metrics_in(text)
    assert found
    assert found - documented_metrics() == set()
