#!/usr/bin/env bash
# What only a machine with an NVIDIA GPU can show: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'U'
usage: tests/gpu.sh [--portable DIR] [--out DIR] [--python PYTHON]

On a machine with a GPU, torch, nvcc, cmake, ninja and pytest, but without Debian's libraries and without a
network: builds the operators alone from source (build/gpu), runs the GPU tests of tests/ops, times the operators,
and writes one report, DEVICE.md and DEVICE.json.

  --portable DIR   what deploy/stage.sh --portable DIR made on a build machine: linnet-decode is then compared on CPU
                   and GPU, and timed, with every bundle in model/bundles
  --out DIR        where the report goes [tests/bench/results]
  --python PYTHON  the Python that has torch [python3]

The exit status is 1 if a build or a comparison failed; a test that is skipped for want of a GPU fails.
U
}

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

portable='' out=tests/bench/results python=python3
while (($#)); do
  case $1 in
    --portable | --out | --python)
      (($# > 1)) || die "$1 needs a value: see tests/gpu.sh --help"
      printf -v "${1#--}" %s "$2"
      shift
      ;;
    --help | -h) usage && exit ;;
    *) die "unknown flag '$1': see tests/gpu.sh --help" ;;
  esac
  shift
done

torch=$("$python" -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parent)') ||
  die "$python has no torch: name one that has with --python"
wanted=$(sed -n 's/^torch==\([^ ]*\).*/\1/p' deps/versions.txt)
"$python" - "$wanted" <<'P' || exit 1
import sys
import torch
version = torch.__version__.split("+")[0]
if version != sys.argv[1]:
    sys.exit(f"error: torch is {torch.__version__}, Linnet is built for {sys.argv[1]}")
if not torch.cuda.is_available():
    sys.exit("error: torch sees no GPU here; ./test.sh is for machines without one")
P
for tool in nvcc cmake ninja; do
  command -v "$tool" >/dev/null || die "$tool is not on PATH"
done
[[ -z $portable || -x $portable/bin/linnet-decode ]] ||
  die "no $portable/bin/linnet-decode: make it with deploy/stage.sh --portable $portable"

cmake -G Ninja -S . -B build/gpu -DCMAKE_BUILD_TYPE=Release -DLINNET_OPS_ONLY=ON -DLINNET_CUDA=ON -DLINNET_TORCH_DIR="$torch"
cmake --build build/gpu
exec "$python" tests/gpu/report.py --library build/gpu/lib/liblinnet_ops.so --portable "$portable" --out "$out"
