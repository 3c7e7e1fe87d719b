#!/usr/bin/env bash
# Builds and runs the tests and measurements that need an NVIDIA GPU: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'U'
usage: tests/gpu.sh [--part NAME]… [--library DIR] [--portable DIR] [--data DIR] [--out DIR] [--seconds N]
                    [--continue DIR] [--python PYTHON] [--dry]

For a machine with a GPU and torch, but without Debian's libraries and without a network: builds the operators from
source (build/gpu; needs nvcc, cmake, ninja) and writes one report, DEVICE/gpu.md and DEVICE/gpu.json.

  --part NAME      part to run [all of them]; may be repeated
                     smoke       linnet-decode on one text, with graphs, kernel by kernel, and with host search
                     profile     profile of a decoder step by kernel
                     encoder     encoder calls: padded, in blocks, as one graph
                     search      times of the search, with random logits and with those of a trained model
                     latencies   kernels of a graph, barriers, and reading weights with few multiprocessors
                     ctranslate2 CTranslate2 beside base; the Python needs its wheel
                     mixed       a load of which a small part is searched on the host
                     serving     linnet-server under linnet-load, beside linnet-decode
                     kernels     tests of the kernels, alone and under compute-sanitizer; of the device decoder; tests/ops
                     answers     linnet-decode on the GPU against the CPU, with every bundle in model/bundles: float32,
                                 float16, bfloat16; BLEU if --data has test sets
                     base, big   target tokens per second at batch 1 to 512, beam 1 and 5, beside eager PyTorch, Marian, and
                                 the limit of the device
                     operators   times of the operators and of torch's
                     counters    hardware counters of a decoder step, by ncu
  --library DIR    folder of liblinnet_ops.so and liblinnet_ops_cuda.so, built for this torch, such as lib of the portable
                   folder; skips the build
  --portable DIR   folder that deploy/stage.sh --portable DIR made on a build machine; only profile, encoder, search,
                   kernels, operators and counters do without it
  --data DIR       contains en-de/test.tatoeba.tsv, for BLEU
  --out DIR        folder of the report and of rows.jsonl, which grows row by row [tests/bench/results]
  --seconds N      time limit; every part gets a share of it, at most 90, and is stopped at its end [3600]
  --continue DIR   read rows of earlier calls from DIR and add new ones; finished cases are not run again
  --python PYTHON  Python with torch [python3]; base and big also need numpy, sentencepiece and transformers
  --dry            run every part on the CPU with minimal sizes, to check the scripts; needs no GPU

Merge the rows of several calls into one report with: python3 tests/gpu/report.py A/rows.jsonl B/rows.jsonl --out DIR

The exit status is 1 if a build or a comparison failed. A test that is skipped because of a missing GPU fails.
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
    --part=*) pass+=(--part "${1#--part=}") ;;
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
