#!/usr/bin/env bash
# Sets Linnet up, builds it and serves the models in model/bundles, or those that --model fetches: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. deps/setup.sh

usage() {
  cat <<'U'
usage: ./start.sh [--model NAME]… [--build | --check | --deps] [--tools] [--import] [--http]
                  [--patched-grpc] [--device cpu|cuda] [-- FLAGS…]

Installs what is missing (Debian 12), builds, starts linnet-server with the models in model/bundles and
linnet-http with its web page, shows a translation and a summary, and serves until Ctrl-C. The second
time it takes seconds.

  --model NAME    fetch this model into models/ and serve the models there in place of those in model/bundles; implies
                  --import. May be given several times. `linnet-model fetch --list` (docs/IMPORT.md) has the names: en-pt, pt-en
  --build         build only: programs in build/release/bin
  --check         build, serve on free ports, make a translation, a summary, a health check and a scrape of
                  the metrics with the real client, stop; fails if any of them fails
  --deps          install the dependencies only
  --tools         also make .venv/bin/python with linnet_model and the full torch (5 GB), for training and tests
  --import        also fetch what linnet-model needs beside LibTorch (300 MB), to package it
  --http          also install linnet-http without serving (serving installs it), to package it
  --patched-grpc  also build gRPC from Debian's source package with the patches of deps/grpc (5 minutes), which the
                  programs then load in place of Debian's: for a server that other machines reach (SECURITY.md)
  --device cuda   also fetch LibTorch's CUDA libraries (3 GB), build the CUDA operators, and serve on the GPU
  -- FLAGS        go to linnet-server, for example: ./start.sh -- --listen 0.0.0.0:50051

Outside this folder it writes only Debian packages, by apt-get, as root or through sudo, and the caches of pip and
ccache below ~/.cache. Logs are in build/logs. CMAKE_BUILD_PARALLEL_LEVEL sets how many compilers run at once.
U
}

mode=serve device=cpu
declare -a extras=() models=() server_flags=()
while (($#)); do
  case $1 in
    --build | --check | --deps) mode=${1#--} ;;
    --model)
      [[ ${2:-} =~ ^[a-z]+(-[a-zA-Z]+)+$ ]] || die "--model '${2:-}' is no name of a model, such as en-pt"
      models+=("$2")
      shift
      ;;
    --tools) extras+=(python) ;;
    --import) extras+=(import) ;;
    --http) extras+=(http) ;;
    --patched-grpc) extras+=(grpc) ;;
    --device)
      device=${2:-}
      [[ $device == cpu || $device == cuda ]] || die "--device '$device' is not supported: cpu or cuda"
      shift
      ;;
    --help | -h) usage && exit ;;
    --)
      shift
      server_flags=("$@")
      break
      ;;
    *) die "unknown flag '$1': see ./start.sh --help" ;;
  esac
  shift
done
[[ $device == cpu ]] || extras+=(cuda)
[[ $mode != serve ]] || extras+=(http)

if ((${#models[@]})) && [[ " ${extras[*]} " != *" import "* ]]; then extras+=(import); fi

readonly bin=build/release/bin linnet_model=build/linnet-model

configure() {
  local -a options=()
  if [[ $device == cuda ]]; then options+=(-DLINNET_CUDA=ON); fi
  cmake --preset release "${options[@]}"
}

build() {
  if [[ $device == cuda && -z ${CUDACXX:-} ]] && ! command -v nvcc >/dev/null; then
    die "--device cuda compiles CUDA operators: put nvcc of CUDA 13.0 on PATH or set CUDACXX"
  fi
  step "Configuring (preset release)" configure
  step "Building the programs" cmake --build --preset release --target programs
}

# Fetches the models that are not in models/ yet. linnet-model runs there without CUDA's libraries (deploy/stage_model.py).
fetch_models() {
  local name
  for name in "${models[@]}"; do
    if [[ -e models/$name/manifest.json ]]; then
      printf '  %-46s there\n' "Model $name"
      continue
    fi
    once "$linnet_model/.linnet" "$({ section libtorch; section import; cat deploy/stage_model.py; } | key_of)" \
      "linnet-model" .venv/bin/python deploy/stage_model.py --links "$linnet_model"
    step "Fetching the model $name" "$linnet_model/bin/linnet-model" fetch "$name" --out models
    grep -h '^licence: ' "$logs/Fetching-the-model-$name.log" | sed 's/^/    /' || true
  done
}

# ---- the server, and a few calls to it

server='' grpc='' metrics='' served=model/bundles
((${#models[@]} == 0)) || served=models
log=$logs/server.log
[[ $mode != check ]] || log=$logs/check.log  # beside a server that serves

stop_server() {
  local pid=$server
  stop_http
  server=''
  [[ -z $pid ]] || { kill -TERM "$pid" 2>/dev/null; wait "$pid"; }
}

# Starts the server and waits for its line `ready grpc=HOST:PORT metrics=HOST:PORT`, where others may follow.
start_server() {
  local line='' deadline=$((SECONDS + 180))
  mkdir -p "$logs" && : >"$log"  # create it before the server's shell opens it
  printf '\nStarting linnet-server on the %s ... ' "$device"
  set -m  # a separate process group: Ctrl-C reaches only this script, which then asks the server to drain
  "$bin/linnet-server" --models "$served" --device "$device" "$@" </dev/null >>"$log" 2>&1 &
  set +m
  server=$!
  trap 'stop_server || true' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  until line=$(grep --text -m 1 '^ready ' "$log"); do
    if ! kill -0 "$server" 2>/dev/null || ((SECONDS > deadline)); then
      printf 'not ready; the end of %s:\n\n' "$log"
      tail -n 30 "$log" | sed 's/^/    /'
      exit 1
    fi
    sleep 0.1
  done
  [[ $line =~ ^ready\ grpc=([^ ]+)\ metrics=([^ ]+)(\ .*)?$ ]] || die "linnet-server printed '$line' as it became ready"
  grpc=${BASH_REMATCH[1]} metrics=${BASH_REMATCH[2]}
  printf 'grpc %s, metrics %s\n' "$grpc" "$metrics"
}

# ---- the HTTP front end

http='' http_pid=''

stop_http() {
  local pid=$http_pid
  http_pid=''
  [[ -z $pid ]] || { kill -TERM "$pid" 2>/dev/null; wait "$pid" || true; }
}

# Starts linnet-http beside the server, on port 8080 or on one that is free.
start_http() {
  local address line
  if [[ ${server_flags[*]} =~ --(tls|config) ]]; then
    printf '\nThe server may use TLS: start linnet-http by hand (docs/HTTP.md).\n'
    return
  fi
  for address in 127.0.0.1:8080 127.0.0.1:0; do
    set -m
    .venv/bin/linnet-http --server "$grpc" --server-metrics "$metrics" --listen "$address" \
      --glossaries build/glossaries.sqlite --documents build/documents </dev/null >"$logs/http.log" 2>&1 &
    set +m
    http_pid=$!
    until line=$(grep --text -m 1 '^ready ' "$logs/http.log"); do
      kill -0 "$http_pid" 2>/dev/null || break
      sleep 0.1
    done
    if [[ $line =~ ^ready\ http=([^ ]+)$ ]]; then
      http=${BASH_REMATCH[1]}
      return
    fi
    http_pid=''
  done
  tail -n 30 "$logs/http.log" >&2
  die "linnet-http did not start"
}

# The user's own settings of `linnet` may be for another server, with TLS. Only one with such flags needs them.
declare -a client=(LINNET_CONFIG=/dev/null LINNET_TLS=false)
[[ ! ${server_flags[*]} =~ --(tls|tokens|config) ]] || client=()

# call ARGUMENTS…: shows a command of the client and its answer. Fails if the answer contains no word.
call() {
  local shown='' word answer
  for word in "$@"; do
    [[ $word =~ ^[[:alnum:]_./:-]+$ ]] || word="\"$word\""
    shown+=" $word"
  done
  printf '\n$ %s/linnet%s\n' "$bin" "$shown"
  answer=$(env "${client[@]}" LINNET_SERVER="$grpc" "$bin/linnet" "$@" </dev/null) ||
    die "linnet $1 failed; the server's log is $log"
  [[ $answer == *[[:alnum:]]* ]] || die "linnet $1 answered nothing"
  printf '%s\n' "$answer"
}

scrape_metrics() {
  printf '\n$ GET http://%s/metrics\n' "$metrics"
  python3 - "http://$metrics/metrics" <<'P' || die "no metrics at http://$metrics/metrics"
import sys, urllib.request
page = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1], timeout=10).read().decode()
samples = [line for line in page.splitlines() if line.startswith("linnet_")]
totals = [line for line in samples if "_total" in line and not line.endswith(" 0")]
print(*totals[:8], f"... {len(samples)} samples in all", sep="\n")
sys.exit(not totals)
P
}

# A text for each language that a model of the catalogue translates from.
declare -A texts=([en]="Where is the train station?" [pt]="Onde está a estação de trem?")

show_the_models_at_work() {
  local name
  for name in "${models[@]}"; do
    call translate --from "${name%%-*}" --to "${name#*-}" "${texts[${name%%-*}]}"
  done
  ((${#models[@]} == 0)) || return 0
  call translate --to de "Where is the train station?"
  call translate --to en "Wann fährt der nächste Zug nach Berlin?"
  call summarize --file tests/data/news.txt
}

check() {
  start_server --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0 "${server_flags[@]}"
  show_the_models_at_work
  call health
  scrape_metrics
  stop_server || die "linnet-server did not stop cleanly: its log is $log"
  printf '\nAll four answered, and the server stopped cleanly.\n'
}

serve() {
  local export='' status=0
  start_server "${server_flags[@]}"
  show_the_models_at_work
  start_http
  trap 'exit 0' INT TERM  # from here on a stop is the normal end
  [[ $grpc == 127.0.0.1:50051 ]] || export="  export LINNET_SERVER=$grpc"$'\n'
  if ((${#models[@]})); then
    cat <<T

Linnet serves ${models[*]} on $grpc. In another terminal, try the commands above, or:

$export  $bin/linnet models
  $bin/linnet --help

${http:+The web page and the HTTP API are at http://$http. }Metrics are at http://$metrics/metrics, the log is $log.
Ctrl-C stops the server.
T
  else
    cat <<T

Linnet serves on $grpc. In another terminal, try:

$export  $bin/linnet translate --to de "Where is the station?"
  $bin/linnet summarize --file tests/data/news.txt
  $bin/linnet summarize --style title --file tests/data/abstract.txt
  $bin/linnet models
  $bin/linnet --help

${http:+The web page and the HTTP API are at http://$http. }Metrics are at http://$metrics/metrics, the log is $log.
Ctrl-C stops the server.
T
  fi
  wait "$server" || status=$?
  server=''
  tail -n 30 "$log" >&2
  die "linnet-server ended by itself with status $status"
}

echo "Setting up Linnet in $PWD"
begin_setup
install_dependencies "${extras[@]}"
if [[ $mode != deps ]]; then
  build
  fetch_models
fi
end_setup
case $mode in
  check) check ;;
  serve) serve ;;
esac
