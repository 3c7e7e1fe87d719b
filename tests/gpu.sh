#!/usr/bin/env bash
# What only a machine with an NVIDIA GPU can show: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'U'
usage: tests/gpu.sh [--part NAME]… [--library DIR] [--portable DIR] [--data DIR] [--out DIR] [--seconds N]
                    [--continue DIR] [--python PYTHON] [--dry]

On a machine with a GPU and torch, but without Debian's libraries and without a network: builds the operators alone
from source (build/gpu; that wants nvcc, cmake, ninja) and writes one report, DEVICE.md and DEVICE.json.
tests/gpu/pack makes all that travels to such a machine, and tests/gpu/call.sh uses it there, call by call.

  --part NAME      what is done, each of the following if nothing is said; may be repeated
                     smoke       one text by linnet-decode, with graphs, kernel by kernel, and searched by the host
                     kernels     the kernels' tests, alone and under compute-sanitizer; the device decoder's; tests/ops
                     answers     linnet-decode on the GPU against the CPU, with every bundle in model/bundles: float32,
                                 float16, bfloat16; BLEU where --data has test sets
                     operators   how long the operators take, beside torch's
                     profile     a decoder step, kernel by kernel
                     base, big   target tokens a second at batch 1 to 512, beam 1 and 5, beside eager PyTorch, Marian, and
                                 what the device allows
                     counters    hardware counters of a decoder step, by ncu
  --library DIR    liblinnet_ops.so and liblinnet_ops_cuda.so, built for this torch, such as the portable folder's lib:
                   nothing is built here
  --portable DIR   what deploy/stage.sh --portable DIR made on a build machine; smoke, answers, base and big need it
  --data DIR       holds en-de/test.tatoeba.tsv, for BLEU
  --out DIR        where the report goes, and rows.jsonl, which grows row by row [tests/bench/results]
  --seconds N      how long all of it may take; every part has a share of it and is stopped at its end [3600]
  --continue DIR   rows of earlier calls are read from DIR and kept there too; what they hold is not done again
  --python PYTHON  the Python that has torch [python3]; base and big want numpy, sentencepiece and transformers too
  --dry            every part on the CPU with the smallest of sizes, to see that all of it runs; needs no GPU

Rows of several calls become one report with: python3 tests/gpu/report.py A/rows.jsonl B/rows.jsonl --out DIR

The exit status is 1 if a build or a comparison failed; a test that is skipped for want of a GPU fails.
U
}

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

portable='' out=tests/bench/results python=python3 library='' dry='' pass=()
while (($#)); do
  case $1 in
    --portable | --out | --python | --library | --part | --data | --seconds | --continue)
      (($# > 1)) || die "$1 needs a value: see tests/gpu.sh --help"
      case $1 in
        --part | --data | --seconds | --continue) pass+=("$1" "$2") ;;
        *) printf -v "${1#--}" %s "$2" ;;
      esac
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
export PYTHONPATH=$PWD/model${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
exec "$python" tests/gpu/session.py --library "$library/liblinnet_ops.so" --out "$out" \
  ${portable:+--portable "$portable"} ${pass[@]:+"${pass[@]}"} ${dry:+--dry}
