#!/usr/bin/env bash
# Runs one of the calls on a GPU machine: see --help.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit

usage() {
  cat <<'U'
usage: research/gpu/call.sh 1|2|3|train --out DIR [--part NAME]… [--translate]
                         [--train SECONDS [--recipe FILE]… [--from-bundles]] [--seconds N] [--dry]

Unpacks .gpu/linnet.tar.xz (research/gpu/pack.py) to /tmp unless that archive was unpacked before, and runs the parts of
tests/gpu.sh that belong to the call. /tmp keeps the rows of earlier calls; each report includes them.

  1                smoke, profile, encoder, search, latencies, mixed, serving, base
  2                ctranslate2, kernels, answers
  3                unfinished cases of the calls before, and big, operators, counters
  train            the trainings alone, which are twice as fast without the tests beside them

  --out DIR        folder of the report and of the weights of finished trainings
  --part NAME      run this part instead of those of the call; may be repeated
  --translate      translate the training texts with both bundles (linnet-diversify), beside the parts of the call, for the
                   trainings of a later one
  --train SECONDS  start trainings with a schedule of so many seconds in the background, wait for them after the parts of the
                   call, and collect their weights; reading the data takes half a minute more, of translated texts a minute
  --recipe FILE    what to train [model/recipes/{en-de,de-en}-gpu.toml]; may be repeated
  --from-bundles   go on with the bundle that has the recipe's name
  --seconds N      time limit of the call [call 1: 330, otherwise: 210]
  --dry            run on the CPU with minimal sizes
U
}

call='' out='' train='' translate='' dry='' seconds='' recipes=() start=() chosen=()
while (($#)); do
  case $1 in
    1 | 2 | 3 | train) call=$1 ;;
    --out | --seconds | --train | --recipe | --part)
      (($# > 1)) || { echo "error: $1 needs a value: see research/gpu/call.sh --help" >&2 && exit 1; }
      case $1 in
        --recipe) recipes+=(--recipe "$2") ;;
        --part) chosen+=("$2") ;;
        *) printf -v "${1#--}" %s "$2" ;;
      esac
      shift
      ;;
    --translate) translate=1 ;;
    --from-bundles) start=(--from-bundles) ;;
    --dry) dry=--dry ;;
    --help | -h) usage && exit ;;
    *) echo "error: unknown argument '$1': see research/gpu/call.sh --help" >&2 && exit 1 ;;
  esac
  shift
done
[[ $call && $out ]] || { usage >&2 && exit 1; }
[[ ! $translate || ! $train ]] ||
  { echo "error: --translate belongs to a call before that with --train, whose trainings read the rows" >&2 && exit 1; }
[[ $call != train || $train ]] || { echo "error: 'train' needs --train SECONDS: see research/gpu/call.sh --help" >&2 && exit 1; }

[[ $seconds ]] || seconds=$([[ $call == 1 ]] && echo 330 || echo 210)
there=${LINNET_GPU_DIR:-/tmp/linnet-gpu}
archive=$(sha256sum .gpu/linnet.tar.xz | cut -c1-16)
if [[ ! -e $there/unpacked-$archive ]]; then
  mkdir -p "$there/folder"
  python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2], filter="tar")' \
    .gpu/linnet.tar.xz "$there/folder" || exit 1
  touch "$there/unpacked-$archive"
fi
echo "unpacked after $SECONDS s"
export PYTHONPATH=$PWD/model:$PWD/research${PYTHONPATH:+:$PYTHONPATH} LINNET_OPS_LIBRARY=$there/folder/lib/liblinnet_ops.so
# Lets the kernels of both trainings run at once; without it they take turns. Only the trainings are to see these
# variables: a fault of one client of MPS ends all of them.
mps=(env CUDA_MPS_PIPE_DIRECTORY="$there/mps" CUDA_MPS_LOG_DIRECTORY="$there/mps")
share_gpu() {
  mkdir -p "$there/mps"
  if "${mps[@]}" nvidia-cuda-mps-control -d; then
    "${mps[@]}" timeout 40 python3 -c 'import torch; torch.zeros(1, device="cuda")' && return
    stop_sharing
  fi
  echo "the kernels of the trainings take turns: MPS could not be used"
  mps=()
}
stop_sharing() { ((${#mps[@]} == 0)) || echo "quit -t 1" | "${mps[@]}" timeout 10 nvidia-cuda-mps-control; }

parts=()
case $call in
  1) parts=(smoke profile encoder search latencies mixed serving base) ;;
  2) parts=(ctranslate2 kernels answers) ;;
  3) parts=(smoke profile encoder search latencies ctranslate2 mixed serving base kernels answers big operators counters) ;;
esac
((${#chosen[@]} == 0)) || parts=("${chosen[@]}")
trainings() { "${mps[@]}" python3 research/gpu/train.py "$@" --runs "$there/runs" ${dry:+--dry}; }
if [[ $train ]]; then
  if [[ $dry ]]; then mps=(); else share_gpu; fi
  ((${#recipes[@]})) || recipes=(--recipe research/recipes/en-de-gpu.toml --recipe research/recipes/de-en-gpu.toml)
  trainings start "${recipes[@]}" "${start[@]}" --data "$there/folder/data" --seconds "$train"
fi
status=0 translating=()
# The larger domains of everyday and technical texts, greedily: time on the machine is short.
diversify() {
  LD_LIBRARY_PATH=$there/folder/lib:$(python3 -c 'import torch; print(torch.__path__[0])')/lib:${LD_LIBRARY_PATH:-} \
    python3 -m linnet_research.data.diversify --decode "$there/folder/bin/linnet-decode" --bundle "model/bundles/$1" \
    --data "$there/folder/data/en-de" --files train more --domains tatoeba debian phpdoc europarl \
    --out "$there/folder/data/en-de/$2.tsv" --batch 256 --beam 1 --device "$([[ $dry ]] && echo cpu || echo cuda)"
}
if [[ $translate ]]; then
  diversify en-de forward & translating+=($!)
  diversify de-en backward & translating+=($!)
fi
if ((${#parts[@]})); then
  tests/gpu.sh --library "$there/folder/lib" --portable "$there/folder" --data "$there/folder/data" --continue "$there/rows" \
    --out "$out" --seconds $((seconds - SECONDS)) "${parts[@]/#/--part=}" $dry || status=$?
fi
for process in "${translating[@]}"; do wait "$process" || status=$?; done
[[ ! $translate ]] || echo "translated after $SECONDS s"
if [[ $train ]]; then
  trainings collect --out "$out" --wait $((seconds - SECONDS)) || status=$?
  stop_sharing
fi
exit "$status"
