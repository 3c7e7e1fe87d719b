#!/usr/bin/env bash
# One of the three calls of half an hour on a GPU machine: see --help.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit

usage() {
  cat <<'U'
usage: tests/gpu/call.sh 1|2|3|train --out DIR [--train] [--dry]

Unpacks .gpu/linnet.tar.xz (tests/gpu/pack.py) to /tmp, if it is not there, and runs the parts of tests/gpu.sh that
belong to the call. A call ends after 8.5 minutes; rows of earlier calls are kept in /tmp and are in each call's report.

  1            smoke, kernels, answers: nothing that is timed, so that with --train a training runs beside them
  2            operators, profile, base
  3            big, counters, and what the calls before left undone
  train        a longer training alone: starts it, or waits for it, and collects what it has

  --out DIR    where the report goes, and the weights of a training that has ended
  --train      call 1 starts model/recipes/gpu-8-minutes.toml in a session of its own; call 2 collects it
  --dry        on the CPU, with the smallest of sizes
  --seconds N  in place of 510
U
}

call='' out='' train='' dry='' seconds=510
while (($#)); do
  case $1 in
    1 | 2 | 3 | train) call=$1 ;;
    --out | --seconds)
      (($# > 1)) || { echo "error: $1 needs a value: see tests/gpu/call.sh --help" >&2 && exit 1; }
      printf -v "${1#--}" %s "$2"
      shift
      ;;
    --train) train=1 ;;
    --dry) dry=--dry ;;
    --help | -h) usage && exit ;;
    *) echo "error: unknown argument '$1': see tests/gpu/call.sh --help" >&2 && exit 1 ;;
  esac
  shift
done
[[ $call && $out ]] || { usage >&2 && exit 1; }

there=${LINNET_GPU_DIR:-/tmp/linnet-gpu}
if [[ ! -e $there/folder/commit ]]; then
  mkdir -p "$there/unpacked"
  tar -xJf .gpu/linnet.tar.xz -C "$there/unpacked" || exit 1
  mv "$there/unpacked" "$there/folder"
fi
echo "unpacked after $SECONDS s"
export PYTHONPATH=$PWD/model${PYTHONPATH:+:$PYTHONPATH}
run_training() { python3 tests/gpu/train.py "$@" --run "$there/run" ${dry:+--dry}; }

case $call in
  1)
    parts=(smoke kernels answers)
    [[ ! $train ]] || run_training start --recipe model/recipes/gpu-8-minutes.toml --data "$there/folder/data"
    ;;
  2)
    parts=(operators profile base)
    [[ ! $train ]] || run_training collect --out "$out" --wait 45
    ;;
  3) parts=(smoke kernels answers operators profile base big counters) ;;
  train)
    run_training start --recipe model/recipes/gpu-25-minutes.toml --data "$there/folder/data"
    run_training collect --out "$out" --wait $((seconds - SECONDS))
    exit
    ;;
esac
flags=()
for part in "${parts[@]}"; do flags+=(--part "$part"); done
exec tests/gpu.sh --library "$there/folder/lib" --portable "$there/folder" --data "$there/folder/data" \
  --continue "$there/rows" --out "$out" --seconds $((seconds - SECONDS)) "${flags[@]}" $dry
