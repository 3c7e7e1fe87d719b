#!/usr/bin/env bash
# What only a machine with an NVIDIA GPU can show: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'U'
usage: tests/gpu.sh [--part NAME]… [--library DIR] [--portable DIR] [--out DIR] [--python PYTHON] [--dry]

On a machine with a GPU and torch, but without Debian's libraries and without a network: builds the operators alone
from source (build/gpu; that wants nvcc, cmake, ninja) and writes one report, DEVICE.md and DEVICE.json.

  --part NAME      what is done, each of the following if nothing is said; may be repeated
                     tests       the tests of tests/ops that need a GPU
                     sanitizer   some of them under compute-sanitizer, where there is one: out of bounds, races
                     operators   how long the operators take, beside torch's
                     answers     linnet-decode on the GPU (with graphs, without, searched by the host) against the CPU, with
                                 every bundle in model/bundles
                     base, big   target tokens a second at batch 1 to 512, beam 1 and 5, beside eager PyTorch, Marian, and
                                 what the device allows; five to eight minutes each on an H100
  --library DIR    liblinnet_ops.so and liblinnet_ops_cuda.so, built for this torch, such as the portable folder's lib:
                   nothing is built here
  --portable DIR   what deploy/stage.sh --portable DIR made on a build machine; answers, base and big need it
  --out DIR        where the report goes [tests/bench/results]
  --python PYTHON  the Python that has torch [python3]; base and big want numpy, sentencepiece and transformers too
  --dry            every part on the CPU with the smallest of sizes, to see that all of it runs; needs no GPU

Parts that were measured in several calls become one report with: python3 tests/gpu/report.py --merge A.json B.json --out DIR

The exit status is 1 if a build or a comparison failed; a test that is skipped for want of a GPU fails.
U
}

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

portable='' out=tests/bench/results python=python3 library='' dry='' parts=()
while (($#)); do
  case $1 in
    --portable | --out | --python | --library | --part)
      (($# > 1)) || die "$1 needs a value: see tests/gpu.sh --help"
      if [[ $1 == --part ]]; then parts+=("$2"); else printf -v "${1#--}" %s "$2"; fi
      shift
      ;;
    --dry) dry=1 ;;
    --help | -h) usage && exit ;;
    *) die "unknown flag '$1': see tests/gpu.sh --help" ;;
  esac
  shift
done

torch=$("$python" -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parent)') ||
  die "$python has no torch: name one that has with --python"
wanted=$(sed -n 's/^torch==\([^ ]*\).*/\1/p' deps/versions.txt)
"$python" - "$wanted" "$dry" <<'P' || exit 1
import sys
import torch
version = torch.__version__.split("+")[0]
if version != sys.argv[1]:
    sys.exit(f"error: torch is {torch.__version__}, Linnet is built for {sys.argv[1]}")
if not sys.argv[2] and not torch.cuda.is_available():
    sys.exit("error: torch sees no GPU here; ./test.sh is for machines without one")
P
[[ -z $portable || -x $portable/bin/linnet-decode ]] ||
  die "no $portable/bin/linnet-decode: make it with deploy/stage.sh --portable $portable"

if [[ -z $library ]]; then
  for tool in nvcc cmake ninja; do
    command -v "$tool" >/dev/null || die "$tool is not on PATH"
  done
  cmake -G Ninja -S . -B build/gpu -DCMAKE_BUILD_TYPE=Release -DLINNET_OPS_ONLY=ON -DLINNET_CUDA=ON -DLINNET_TORCH_DIR="$torch"
  cmake --build build/gpu
  library=build/gpu/lib
fi
[[ -e $library/liblinnet_ops.so ]] || die "no liblinnet_ops.so in $library"
exec "$python" tests/gpu/report.py --library "$library/liblinnet_ops.so" --portable "$portable" --out "$out" \
  ${parts[@]:+--parts "${parts[@]}"} ${dry:+--dry}
