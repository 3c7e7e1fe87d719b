"""Translates a .cu file to C++ for emulation.h: emulate.py KERNELS.cu OUT.cc

Two things in the kernels are not C++: launches and dynamic shared memory. The header defines all
else as macros and functions.
"""

import re
import sys
from pathlib import Path

LAUNCH = re.compile(
    r"(?P<kernel>[\w:]+(?:<[^;{}]*?>)?)\s*<<<(?P<shape>.*?)>>>\((?P<arguments>[^;]*)\);", re.S
)
SHARED = re.compile(r"extern __shared__ (\w+) (\w+)\[\];")


def split(text: str) -> list[str]:
    """Splits at commas outside of parentheses."""
    parts, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def launch(match: re.Match[str]) -> str:
    grid, block, shared, _stream = split(match["shape"])
    call = f"{match['kernel']}({match['arguments']})"
    return f"linnet::emulated::Launch(dim3({grid}), dim3({block}), {shared}, [&] {{ {call}; }});"


def emulate(source: str) -> str:
    source = SHARED.sub(
        r"\1* \2 = reinterpret_cast<\1*>(linnet::emulated::dynamic_shared());", source
    )
    source, count = LAUNCH.subn(launch, source)
    if count == 0 or "<<<" in source:
        raise SystemExit("error: a launch was not understood")
    return source


if __name__ == "__main__":
    given, made = map(Path, sys.argv[1:])
    made.write_text(f'#line 1 "{given}"\n' + emulate(given.read_text()))
