#!/usr/bin/env python3
"""Adds linnet-model to a folder that deploy/stage.sh has filled: DIR/bin/linnet-model, DIR/python.

    deploy/stage_model.py DIR           beside the programs of the server, in packages
    deploy/stage_model.py --only DIR    for the image of linnet-model: removes from DIR the programs
                                        and libraries that linnet-model does not need
    deploy/stage_model.py --links DIR   for start.sh: links to the packages and programs of this
                                        checkout in place of copies, so that it takes seconds

DIR/python holds linnet_model, torch and the packages [import] of deps/versions.txt, from
.deps/python (./start.sh --deps --import). The torch of PyPI is a build for CUDA, of which
linnet-model runs only what a CPU needs:

- LibTorch's libraries for a CPU are links to those of the server in DIR/lib.
- libtorch_python links libtorch_cuda, cuDNN and cuFile, 3 GB that nothing calls without a GPU. In
  their place stand libraries of a few kilobytes that define the functions that it names; each of
  them prints its name and ends the process. torch.cuda.is_available() is false and calls none.
"""

from __future__ import annotations

import argparse
import compileall
import os
import py_compile
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / ".deps/python"
CPU = ("libc10.so", "libtorch_cpu.so", "libgomp.so.1")  # in the server's lib, as what they load:
CUDA_RUNTIME = ("libcudart.so.13", "libcupti.so.13")  # libtorch_cpu needs them on a CPU as well
COPIED = (
    "libc10_cuda.so",
    "libshm.so",
    "libtorch.so",
    "libtorch_global_deps.so",
    "libtorch_python.so",
)
# Parts of the wheels that linnet-model does not import: headers, compilers, tests.
UNUSED = re.compile(
    r"torch/(include|share|test|lib)/|torch/bin/(?!torch_shm_manager)"
    r"|(numpy|sympy|mpmath)/(.*/)?tests/|.*\.pyi$|.*/__pycache__/|\.\./"
)
# The only function that libtorch_python calls while it is loaded: it returns a reference, here to
# zeros.
AT_START = "_ZN4c10d15get_gil_checkerEv"

COMMAND = """#!/bin/sh
# linnet-model with the Python packages, the operators and linnet-decode of this folder.
here=$(dirname -- "$(readlink -f -- "$0")")
export PATH="$here:$PATH" LINNET_OPS_LIBRARY="$here/../lib/liblinnet_ops.so"
# transformers, which makes golden examples, is not to ask the network.
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
exec /usr/bin/python3 -I -B -c '
import sys
sys.path.insert(0, sys.argv.pop(1))
from linnet_model.__main__ import main
sys.exit(main())' "$here/../python" "$@"
"""


UNCHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH


Place = Callable[[Path, Path], object]  # puts a file at another path


def fail(message: str) -> None:
    sys.exit(f"error: {message}")


def pinned(*sections: str) -> dict[str, str]:
    """The versions of the packages in sections of deps/versions.txt."""
    text = (ROOT / "deps/versions.txt").read_text()
    found: dict[str, str] = {}
    for name in sections:
        (lines,) = re.findall(rf"^\[{name}\]\n((?:.+\n)+)", text, re.MULTILINE)
        found |= dict(re.findall(r"^([\w.-]+)==(\S+)", lines, re.MULTILINE))
    return found


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def torch_and_importers() -> dict[str, str]:
    return pinned("import") | {"torch": pinned("libtorch")["torch"]}


def copy_packages(
    python: Path, wanted: dict[str, str], extra: str, place: Place = shutil.copy2
) -> None:
    """Copies installed packages, by name and version. `extra` of start.sh installs them."""
    installed = {normal(it.metadata["Name"]): it for it in distributions(path=[str(SITE)])}
    for name, version in wanted.items():
        found = installed.get(normal(name))
        if found is None or found.version.partition("+")[0] != version:
            has = f"{name} {found.version}" if found else f"no {name}"
            fail(f"{SITE} has {has}, not {version}: run ./start.sh --deps --{extra}")
        assert found is not None
        for file in files_of(found):
            target = python / file
            target.parent.mkdir(parents=True, exist_ok=True)
            place(SITE / file, target)


def files_of(distribution: Distribution) -> Iterator[str]:
    for entry in distribution.files or []:
        name = entry.as_posix()
        if not UNUSED.match(name) and (SITE / name).is_file():
            yield name


def symbols(library: Path, *flags: str) -> list[str]:
    """The dynamic symbols of a library, as NAME or NAME@VERSION; without weak undefined ones."""
    done = subprocess.run(
        ["nm", "-D", *flags, str(library)], capture_output=True, text=True, check=True
    )
    fields = [line.split() for line in done.stdout.splitlines()]
    return [words[-1] for words in fields if words[-2] not in "wv"]


def needed(library: Path) -> list[str]:
    done = subprocess.run(
        ["readelf", "-d", str(library)], capture_output=True, text=True, check=True
    )
    return re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout)


def substitute(symbol: str, number: int) -> list[str]:
    """The assembly that defines one symbol."""
    head = [f".globl {symbol}", f".type {symbol}, @{{}}", f"{symbol}:"]
    if symbol.startswith("_ZTI"):  # a type, of which only the name is asked for
        kind = "_ZTVN10__cxxabiv117__class_type_infoE + 16"
        body = [".data", ".balign 16", *head, f".quad {kind}", f".quad name{number}"]
        body += [f".size {symbol}, 16", f'name{number}: .asciz "{symbol[4:]}"']
        return [line.format("object") for line in body]
    if symbol.startswith("_ZTV"):  # the functions of a class without objects
        body = [".bss", ".balign 16", *head, ".zero 1024", f".size {symbol}, 1024"]
        return [line.format("object") for line in body]
    if symbol == AT_START:
        body = [".text", *head, f"lea zeros{number}(%rip), %rax", "ret", ".bss", ".balign 64"]
        return [line.format("function") for line in [*body, f"zeros{number}: .zero 64"]]
    body = [".section .rodata", f'text{number}: .asciz "{symbol}"', ".text", *head]
    body += [
        f"lea text{number}(%rip), %rdi",
        "jmp linnet_without_cuda",
        f".size {symbol}, .-{symbol}",
    ]
    return [line.format("function") for line in body]


END = """
.section .rodata
format: .asciz "linnet-model has no CUDA, but torch called %s\\n"
.text
linnet_without_cuda:
    sub $8, %rsp
    mov %rdi, %rdx
    lea format(%rip), %rsi
    mov $2, %edi
    xor %eax, %eax
    call dprintf@PLT
    call abort@PLT
.section .note.GNU-stack, "", @progbits
"""


def write_substitutes(torch: Path) -> None:
    """Makes libraries in place of those left out, with the symbols that the copied ones take."""
    wheel = SITE / "torch/lib"
    kept = [wheel / name for name in (*COPIED, *CPU)]
    named = dict.fromkeys(name for library in kept for name in needed(library))
    left_out = [
        name
        for name in named
        if name not in (*COPIED, *CPU, *CUDA_RUNTIME) and re.match(r"lib(torch|cu|nv)", name)
    ]
    wanted = dict.fromkeys(name for it in kept for name in symbols(it, "--undefined-only"))
    gone = [it for it in wheel.glob("libtorch_*") if it.name not in (*COPIED, *CPU)]
    cuda = {name for it in gone for name in symbols(it, "--defined-only")}
    taken: dict[str, list[str]] = {name: [] for name in left_out}
    for name in wanted:
        plain, _, version = name.partition("@")
        if version in taken:
            taken[version].append(plain)
        elif not version and (plain in cuda or re.match(r"cu[A-Z]|cudnn", plain)):
            taken["libtorch_cuda.so"].append(plain)
    with tempfile.TemporaryDirectory() as folder:
        source, versions = Path(folder, "substitutes.s"), Path(folder, "versions")
        for library, names in taken.items():
            parts = [substitute(name, number) for number, name in enumerate(sorted(names))]
            source.write_text("\n".join(line for part in parts for line in part) + "\n" + END)
            versions.write_text(f"{library} {{ global: *; }};\n")
            script = [f"-Wl,--version-script={versions}"] if library != "libtorch_cuda.so" else []
            link = ["g++", "-shared", "-nostartfiles", f"-Wl,-soname,{library}", *script]
            subprocess.run([*link, "-o", str(torch / library), str(source)], check=True)


def torch_libraries(python: Path) -> None:
    torch = python / "torch/lib"
    torch.mkdir(parents=True)
    for name in COPIED:
        shutil.copy2(SITE / "torch/lib" / name, torch / name)
    write_substitutes(torch)
    for name in COPIED:
        subprocess.run(["strip", "--strip-unneeded", str(torch / name)], check=True)
    for name in (*CPU, *CUDA_RUNTIME):
        (torch / name).symlink_to(f"../../../lib/{name}")


def link(source: Path, target: Path) -> None:
    """A hard link: the loader and Python look for neighbours where a symbolic one leads."""
    try:
        os.link(source.resolve(), target)
    except OSError:  # on another file system
        shutil.copy2(source, target)


def link_checkout(folder: Path) -> None:
    """Fills the folder with links to what this checkout has installed and built."""
    python, libraries = folder / "python", folder / "python/torch/lib"
    copy_packages(python, torch_and_importers(), "import", link)
    libraries.mkdir(parents=True)
    for name in (*COPIED, *CPU):
        link(SITE / "torch/lib" / name, libraries / name)
    for name in CUDA_RUNTIME:
        found = next(iter(SITE.glob(f"nvidia/*/lib/{name}")), None)
        if found is None:
            fail(f"{SITE} has no {name}: run ./start.sh --deps --import")
        assert found is not None
        link(found, libraries / name)
    write_substitutes(libraries)
    (python / "linnet_model").symlink_to(ROOT / "model/linnet_model")
    built = ROOT / "build/release"
    text = COMMAND.replace('"$here:$PATH"', f'"{built}/bin:$PATH"')
    text = text.replace("$here/../lib/liblinnet_ops.so", f"{built}/lib/liblinnet_ops.so")
    # Without -B: Python keeps what it compiles beside the links.
    write_command(
        folder,
        "linnet-model",
        text.replace("/usr/bin/python3 -I -B", f"{ROOT}/.venv/bin/python -I"),
    )


def finish(folder: Path, name: str, command: str, *ours: Path) -> None:
    """Adds Linnet's own packages and the command, and compiles all."""
    for package in ours:
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(package, folder / "python" / package.name, ignore=skip)
    # Compiled here, as the folder cannot be written where it runs; times of files do not matter.
    python = folder / "python"
    compileall.compile_dir(
        python, quiet=2, workers=0, invalidation_mode=UNCHECKED, stripdir=str(python)
    )
    write_command(folder, name, command)


def write_command(folder: Path, name: str, text: str) -> None:
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    command = folder / "bin" / name
    command.write_text(text)
    command.chmod(0o755)


def only(folder: Path) -> None:
    """Leaves the programs and libraries that linnet-model runs and loads."""
    for program in (folder / "bin").iterdir():
        if program.name not in ("linnet-decode", "linnet-model"):
            program.unlink()
    decode = folder / "bin/linnet-decode"
    loaded = subprocess.run(["ldd", str(decode)], capture_output=True, text=True, check=True).stdout
    for library in (folder / "lib").iterdir():
        if library.name not in (*CPU, *CUDA_RUNTIME, *re.findall(r"^\s*(\S+) =>", loaded, re.M)):
            library.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", action="store_true", help="remove what linnet-model does not need"
    )
    parser.add_argument("--links", action="store_true", help="link to this checkout, copy nothing")
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder to add to")
    options = parser.parse_args()
    folder: Path = options.folder
    python = folder / "python"
    shutil.rmtree(python, ignore_errors=True)
    if options.links:
        link_checkout(folder)
        return
    copy_packages(python, torch_and_importers(), "import")
    torch_libraries(python)
    finish(folder, "linnet-model", COMMAND, ROOT / "model/linnet_model")
    if options.only:
        only(folder)


if __name__ == "__main__":
    main()
