#!/usr/bin/env bash
# Sets Linnet up, builds it and runs its tests: see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. deps/setup.sh

usage() {
  cat <<'U'
usage: ./test.sh [--all] [--long] [--research]

Sets up as ./start.sh --build --tools --patched-grpc does, builds the release preset with its tests and runs
  ctest      every GoogleTest
  pytest     operators, linnet_model, linnet-decode, end to end, layering, the scripts
  check      ./start.sh --check, the first command of a new user
  style      ruff, mypy, and shellcheck where it is installed
and with --research
  research   mypy and pytest on research/, which is no part of the product

and with --all also that, and
  asan       the C++ tests, short runs of the fuzz targets and the tests of tests/e2e on programs with AddressSanitizer and
             UndefinedBehaviorSanitizer
  tsan       the tests of tests/server under ThreadSanitizer
  fuzz       two minutes of each fuzz target as libFuzzer's, with clang 14, which is installed for it
  tidy       clang-tidy 14 on every C++ source; pytest checks a few folders where it is installed
  transport  two minutes of connections with damaged HTTP/2 to a real server
  soak       20 minutes of a server with clients of every kind, in which its memory must not grow, beside tidy and fuzz
  slow       the other slow tests: production models, folders of another version of transformers, real files, a slow server
  corpus     linnet-corpus in Ray, Spark and datasets
  http       linnet-http in Chromium, behind Varnish, beside Envoy and LibreTranslate, with clients and checkers of its APIs
  deployment balancers and replicas; the image and the compose project, built and run, where podman or docker works

and with --long, which takes some hours, in place of these three
  fuzz       ten minutes of each fuzz target
  transport  ten minutes of it
  soak       two hours, in which resident memory may grow by 2 % an hour at most
and
  unicode    100,000 texts of any characters, each answered with text
  imports    2000 damaged models of each family, imported
  markup     100,000 fragments of markup, whose tags return once and in their tree
  protected  20,000 texts with spans that come back once, whatever the model says
  simulation a million calls against admission, batching and supervision on a virtual clock
  long       what pytest marks as long

Everything runs even if something has failed; the exit status is 1 if anything did. Logs and JUnit reports
are in build/logs. No GPU is needed: tests/gpu.sh is for a machine that has one.
U
}

all='' long='' research=''
while (($#)); do
  case $1 in
    --all) all=1 ;;
    --long) long=1 ;;
    --research) research=1 ;;
    --help | -h) usage && exit ;;
    *) die "unknown flag '$1': see ./test.sh --help" ;;
  esac
  shift
done

export NO_COLOR=1 GTEST_COLOR=no CLICOLOR=0 PY_COLORS=0
started=$SECONDS
jobs=$(nproc)
summary='' failed=0

# suite NAME COMMAND…: runs a command with its output, records the result, and continues.
suite() {
  local name=$1 from=$SECONDS outcome=passed
  shift
  printf '\n==== %s\n' "$name"
  ("$@") || outcome=FAILED  # in a subshell, which a failed step() ends
  record "$name" "$from" "$outcome"
}

# record NAME FROM OUTCOME: adds a line to the summary.
record() {
  summary+=$(printf '  %-10s %-7s %5s s' "$1" "$3" "$((SECONDS - $2))")$'\n'
  [[ $3 == passed ]] || failed=1
}

# beside NAME COMMAND…: starts a suite that does not judge speed; the next suites run beside it.
beside() {
  beside_name=$1 beside_from=$SECONDS
  shift
  # timeout gives it a process group, so that ending it ends what it has started.
  timeout 1h "$@" >"$logs/$beside_name.log" 2>&1 &
  beside_pid=$!
  trap 'kill "$beside_pid" 2>/dev/null || true' EXIT
}

# joined: waits for the suite of beside(), prints its output and records its result.
joined() {
  local outcome=passed
  wait "$beside_pid" || outcome=FAILED
  trap - EXIT
  printf '\n==== %s\n' "$beside_name"
  cat "$logs/$beside_name.log"
  record "$beside_name" "$beside_from" "$outcome"
}

style() {
  local status=0
  .venv/bin/ruff check model tests client research || status=1
  .venv/bin/mypy --config-file model/pyproject.toml || status=1
  .venv/bin/mypy --config-file client/http/pyproject.toml || status=1
  .venv/bin/mypy --config-file client/files/pyproject.toml || status=1
  .venv/bin/mypy --config-file client/corpus/pyproject.toml || status=1
  if command -v shellcheck >/dev/null; then
    find . \( -path ./.deps -o -path ./.venv -o -path ./build \) -prune -o \( -name '*.sh' -o -path ./.ci/run -o -path './tests/*/run' \) -print0 |
      xargs -0 shellcheck || status=1
  else
    echo "shellcheck is not installed: the shell scripts were not checked"
  fi
  return "$status"
}

# python_tests NAME ARGUMENT…: runs pytest on all cores, with its report in NAME.xml. A test that takes its process down, or
# does not end, ends the suite, which names it: pytest-xdist would wait for ever. Where a process went down is printed
# once more after the report, which is longer than what many a log keeps.
python_tests() {
  local name=$1 status=0
  shift
  # One more than there are cores, since many tests wait for a server.
  .venv/bin/python -m pytest "$@" -q -n "$((jobs + 1))" --dist loadfile --max-worker-restart=0 \
    -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true --junitxml="$logs/$name.xml" 2>&1 |
    tee "$logs/$name.log" || status=$?
  sed -n '/Check failed/p; /^Fatal Python error/p; /^Current thread/,/^$/p' "$logs/$name.log"
  return "$status"
}

# research_tests: checks research/, which no other suite does.
research_tests() {
  local status=0
  .venv/bin/mypy --config-file research/pyproject.toml || status=1
  python_tests pytest-research research/tests || status=1
  return "$status"
}

# sanitizer PRESET FOLDER: builds and runs the C++ tests of FOLDER in the build of PRESET.
sanitizer() {
  step "Configuring (preset $1)" cmake --preset "$1"
  step "Building (preset $1)" cmake --build --preset "$1" --target "$2/all"
  ctest --test-dir "build/$1/$2" -j "$jobs" --output-on-failure --no-tests=error --output-junit "$PWD/$logs/ctest-$1.xml"
}

# sanitized: runs the C++ tests and the end-to-end tests of the programs with AddressSanitizer. Tests that measure memory are
# left out: the sanitizer keeps freed memory.
sanitized() {
  local status=0
  sanitizer asan tests || status=1
  step "Building the programs (preset asan)" cmake --build --preset asan --target programs
  LINNET_BIN_DIR=build/asan/bin LSAN_OPTIONS=suppressions=$PWD/tests/support/lsan.supp \
    python_tests pytest-asan tests/e2e -m 'not slow and not long and not memory' || status=1
  return "$status"
}

# fuzz SECONDS: runs every fuzz target for SECONDS on its corpus, one target per core at once.
fuzz() {
  install_clang
  step "Configuring (preset fuzz)" cmake --preset fuzz
  step "Building (preset fuzz)" cmake --build --preset fuzz --target tests/fuzz/all
  find build/fuzz/bin -name '*_fuzz' -print0 | xargs -0 -r -n 1 -P "$jobs" tests/fuzz/run "$1" "$logs"
}

# tidy: checks every C++ source.
tidy() {
  install_clang
  .venv/bin/python tests/tidy.py
}

# http: the slow tests of linnet-http, with a browser and a cache.
http() {
  install_packages debian-http "Chromium and Varnish"
  .venv/bin/python -m pytest -m slow tests/e2e/http -q --junitxml="$logs/pytest-http.xml"
}

# corpus: the adapters of linnet-corpus, with the engines from PyPI.
corpus() {
  install_packages debian-corpus "Java for Spark"
  .venv/bin/python -m pytest -m slow tests/corpus -q --junitxml="$logs/pytest-corpus.xml"
}

# Prints the last line: the totals from the reports of this run.
count() {
  .venv/bin/python - "$logs"/{ctest,pytest}*.xml <<'P'
import sys, xml.etree.ElementTree as xml
total = dict(tests=0, failures=0, errors=0, skipped=0, disabled=0)
for path in sys.argv[1:]:
    for suite in xml.parse(path).getroot().iter("testsuite"):
        for key in total:
            total[key] += int(suite.get(key) or 0)
failed = total["failures"] + total["errors"]
skipped = total["skipped"] + total["disabled"]
print(f"tests: {total['tests'] - failed - skipped} passed, {failed} failed, {skipped} skipped")
P
}

./start.sh --build --tools --patched-grpc
begin_setup
step "Building the tests" cmake --build --preset release
end_setup
rm -f "$logs"/{ctest,pytest}*.xml

suite ctest ctest --preset release -j "$jobs" --no-tests=error --output-junit "$PWD/$logs/ctest.xml"
suite pytest python_tests pytest tests
suite check ./start.sh --check
suite style style
[[ ! $all && ! $research ]] || suite research research_tests
if [[ $all ]]; then
  suite asan sanitized
  suite tsan sanitizer tsan tests/server
  if [[ $long ]]; then
    suite tidy tidy
  else
    beside soak env LINNET_SOAK_MINUTES=20 .venv/bin/python -m pytest -m slow tests/e2e/soak_test.py -q --junitxml="$logs/pytest-soak.xml"
    suite tidy tidy
    suite fuzz fuzz 120
    joined
    suite transport env LINNET_TRANSPORT_SECONDS=120 .venv/bin/python -m pytest tests/e2e/security/transport_test.py -q --junitxml="$logs/pytest-transport.xml"
  fi
  suite slow .venv/bin/python -m pytest -m slow tests --ignore=tests/{corpus,deploy,e2e/http,e2e/soak_test.py} -q --junitxml="$logs/pytest-slow.xml"
  suite corpus corpus
  suite http http
  suite deployment .venv/bin/python -m pytest -m slow tests/deploy -q --junitxml="$logs/pytest-deployment.xml"
fi
if [[ $long ]]; then
  suite fuzz fuzz 600
  suite unicode env LINNET_UNICODE_TEXTS=100000 .venv/bin/python -m pytest tests/e2e/unicode_test.py -q --junitxml="$logs/pytest-unicode.xml"
  suite transport env LINNET_TRANSPORT_SECONDS=600 .venv/bin/python -m pytest tests/e2e/security/transport_test.py -q --junitxml="$logs/pytest-transport.xml"
  suite imports env LINNET_IMPORT_MUTATIONS=2000 .venv/bin/python -m pytest tests/linnet_model/importers/import_mutations_test.py -q --junitxml="$logs/pytest-imports.xml"
  suite simulation env LINNET_SIMULATION_CALLS=1000000 build/release/bin/linnet_server_test --gtest_filter='SimulationTest.*' --gtest_output="xml:$logs/simulation.xml"
  suite markup env LINNET_MARKUP_FRAGMENTS=100000 build/release/bin/linnet_markup_test --gtest_output="xml:$logs/markup.xml"
  suite protected env LINNET_PROTECTED_TEXTS=20000 build/release/bin/linnet_server_test --gtest_filter='ProtectedTextTest.Random*' --gtest_output="xml:$logs/protected.xml"
  suite result .venv/bin/python tests/bench/security/long_runs.py --logs "$logs"
  suite long env LINNET_ATTACK_RESULT="$PWD/tests/bench/results" .venv/bin/python -m pytest -m long tests -q --junitxml="$logs/pytest-long.xml"
  suite soak env LINNET_SOAK_MINUTES=120 LINNET_SOAK_RESULT="$PWD/tests/bench/results" .venv/bin/python -m pytest -m slow tests/e2e/soak_test.py -q --junitxml="$logs/pytest-soak.xml"
fi

printf '\n%s' "$summary"
printf '  %-18s %5s s\n\n' "in all" "$((SECONDS - started))"
count
exit "$failed"
