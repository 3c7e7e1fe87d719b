#!/usr/bin/env bash
# Runs one of the three calls on a GPU machine: see --help.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit

usage() {
  cat <<'U'
usage: tests/gpu/call.sh 1|2|3 --out DIR [--train SECONDS] [--seconds N] [--dry]

Unpacks .gpu/linnet.tar.xz (tests/gpu/pack.py) to /tmp unless it was unpacked before, and runs the parts of tests/gpu.sh
that belong to the call. /tmp keeps the rows of earlier calls; each report includes them.

  1                smoke, kernels, answers: nothing is timed, so that trainings can run beside them (--train)
  2                operators, profile, base
  3                big, serving, counters, and unfinished cases of the calls before

  --out DIR        folder of the report and of the weights of finished trainings
  --train SECONDS  call 1 starts model/recipes/{en-de,de-en}-gpu.toml with a schedule of so many seconds in the background,
                   waits for them after its parts, and collects their weights; so does a later call if they had not ended
  --seconds N      time limit of the call [300]
  --dry            run on the CPU with minimal sizes
U
}

call='' out='' train='' dry='' seconds=300
while (($#)); do
  case $1 in
    1 | 2 | 3) call=$1 ;;
    --out | --seconds | --train)
      (($# > 1)) || { echo "error: $1 needs a value: see tests/gpu/call.sh --help" >&2 && exit 1; }
      printf -v "${1#--}" %s "$2"
      shift
      ;;
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
  python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2], filter="tar")' \
    .gpu/linnet.tar.xz "$there/unpacked" || exit 1
  mv "$there/unpacked" "$there/folder"
fi
echo "unpacked after $SECONDS s"
export PYTHONPATH=$PWD/model${PYTHONPATH:+:$PYTHONPATH} LINNET_OPS_LIBRARY=$there/folder/lib/liblinnet_ops.so
trainings() { python3 tests/gpu/train.py "$@" --runs "$there/runs" ${dry:+--dry}; }

case $call in
  1)
    parts=(smoke kernels answers)
    [[ ! $train ]] || trainings start --recipe model/recipes/en-de-gpu.toml --recipe model/recipes/de-en-gpu.toml \
      --data "$there/folder/data" --seconds "$train"
    ;;
  2)
    parts=(operators profile base)
    [[ ! $train ]] || trainings collect --out "$out" --wait 20
    ;;
  3) parts=(smoke kernels answers operators profile base big serving counters) ;;
esac
flags=()
for part in "${parts[@]}"; do flags+=(--part "$part"); done
status=0
tests/gpu.sh --library "$there/folder/lib" --portable "$there/folder" --data "$there/folder/data" \
  --continue "$there/rows" --out "$out" --seconds $((seconds - SECONDS)) "${flags[@]}" $dry || status=$?
[[ $call != 1 || ! $train ]] || trainings collect --out "$out" --wait $((seconds - SECONDS))
exit "$status"
