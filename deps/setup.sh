# shellcheck shell=bash
# Functions of start.sh and test.sh that install the dependencies of deps/versions.txt.
# Source it from the project's root. Every function may be called again and is fast if nothing is missing.
# They write to .deps/, .venv/ and build/, to the caches of pip and ccache below ~/.cache, and to the system
# only through apt-get.
#
#   .venv/                 Python 3.11; [libtorch] always, [cuda], [import] and [python] on request
#   .deps/python           link to its site-packages, where CMake finds torch/lib and torch/include.
#                          One copy serves C++ and Python: pip can then add the large wheels to the small
#                          ones, which `pip --target` cannot (several of them share the folder nvidia/)
#   .deps/sentencepiece    static SentencePiece on Debian's protobuf
#   .deps/grpc             gRPC with the patches of deps/grpc, on request

readonly logs=build/logs
os_release=/etc/os-release  # a variable for the tests

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# begin_setup: waits until no other start.sh or test.sh sets up and builds here; end_setup lets the next one begin.
begin_setup() {
  mkdir -p build
  exec {setup_lock}<build
  flock --nonblock "$setup_lock" || {
    echo "Another set-up runs in $PWD: waiting for its end"
    flock "$setup_lock"
  }
}

end_setup() { exec {setup_lock}>&-; }

# section NAME: the lines of that section of deps/versions.txt.
section() {
  awk -v want="[$1]" '/^\[/ { inside = ($0 == want); next } inside && NF && !/^#/' deps/versions.txt
}

# version NAME: the pinned version of a Python package.
version() {
  sed -n "s/^$1==\([^ ]*\).*/\1/p" deps/versions.txt | head -n 1
}

# step LABEL COMMAND…: runs a command with its output in a log and prints its time; if it fails, shows the end of the log.
step() {
  local label=$1 started=$SECONDS status log
  shift
  log=$logs/$(tr -cs '[:alnum:].\n' - <<<"$label").log
  mkdir -p "$logs"
  printf '  %-46s' "$label"
  set +e
  (set -e && "$@") >"$log" 2>&1
  status=$?
  set -e
  if ((status)); then
    printf 'failed after %s s; the end of %s:\n\n' "$((SECONDS - started))" "$log"
    tail -n 30 "$log" | sed 's/^/    /'
    exit "$status"
  fi
  printf '%4s s\n' "$((SECONDS - started))"
}

# once STAMP KEY LABEL COMMAND…: runs a step unless STAMP records that it was done for the same KEY. The stamp
# lies in the folder that the step fills, so removing the folder is enough to start over.
once() {
  local stamp=$1 key=$2
  shift 2
  if [[ -f $stamp && $(<"$stamp") == "$key" ]]; then
    printf '  %-46s there\n' "$1"
    return
  fi
  rm -f "$stamp"  # of a former step, which this one replaces even if it fails
  step "$@"
  printf '%s\n' "$key" >"$stamp"
}

key_of() { sha256sum | cut -d ' ' -f 1; }

# ---- Debian packages

is_debian_12() {
  [[ -r $os_release ]] && (
    # shellcheck disable=SC1090
    . "$os_release"
    [[ ${ID:-} == debian && ${VERSION_ID:-} == 12 ]]
  )
}

missing_packages() {
  local package
  for package in $(section "$1"); do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || printf '%s\n' "$package"
  done
}

apt_install() {
  "$@" apt-get update -qq
  "$@" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
}

install_packages() {  # SECTION LABEL
  local -a missing
  [[ $(uname -m) == x86_64 ]] || die "this machine is $(uname -m); LibTorch is pinned for x86_64 alone"
  mapfile -t missing < <(missing_packages "$1")
  if ((${#missing[@]} == 0)); then
    printf '  %-46s there\n' "$2"
  elif ! is_debian_12; then
    die "this is not Debian 12, and these packages of Debian 12 are missing: ${missing[*]}
       'docker compose up --build' runs Linnet on any x86-64 Linux with Docker"
  elif ((EUID == 0)); then
    step "$2" apt_install
  elif command -v sudo >/dev/null; then
    sudo -v || die "sudo was refused; run as root: apt-get install --no-install-recommends ${missing[*]}"
    step "$2" apt_install sudo
  else
    die "Debian packages are missing and this is neither root nor is there sudo; run as root:
       apt-get update && apt-get install --no-install-recommends ${missing[*]}"
  fi
}

install_clang() { install_packages debian-clang "clang with libFuzzer, clang-tidy"; }

# ---- Python packages

make_venv() {
  local python
  for python in python3.11 python3 /usr/bin/python3; do
    if "$python" -c 'import ensurepip, sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
      "$python" -m venv .venv
      return
    fi
  done
  echo "no Python 3.11 with its venv module: LibTorch is pinned as the wheel for 3.11, Debian 12's Python"
  return 1
}

# Checks hashes and installs no dependencies by itself: only packages of deps/versions.txt are installed.
pip_install() {
  section "$1" >"$logs/$1.txt"
  .venv/bin/python -m pip install --disable-pip-version-check --no-input --progress-bar off \
    --require-hashes --no-deps --no-build-isolation -r "$logs/$1.txt"
}

python_packages() {  # SECTION LABEL
  once ".venv/.linnet-$1" "$(section "$1" | key_of)" "$2" pip_install "$1"
}

install_venv() {
  [[ -x .venv/bin/pip ]] || step "Python environment in .venv" make_venv
  mkdir -p .deps
  ln -sfn ../.venv/lib/python3.11/site-packages .deps/python
}

install_libtorch() {
  install_venv
  python_packages libtorch "LibTorch $(version torch)"
}

install_cuda() { python_packages cuda "CUDA libraries of LibTorch"; }

install_import() { python_packages import "Python packages of the importers"; }

# Installs the Python client, and linnet-http and linnet-file in editable mode.
install_http() {
  python_packages python-build "setuptools $(version setuptools)"
  python_packages http "Python packages of linnet-http"
  python_packages http-build "What builds the Python client"
  python_packages files "Python packages of linnet-file"
  once .venv/.linnet-client "$(cat client/python/linnet/*.py client/python/setup.py proto/linnet/v1/*.proto client/*/pyproject.toml | key_of)" \
    "linnet-http, linnet-file and the Python client" install_client
}

install_client() {
  local -a pip=(.venv/bin/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation)
  "${pip[@]}" --force-reinstall client/python
  "${pip[@]}" -e client/files -e client/http
}

# Installs the full torch, and linnet_model and linnet-corpus in editable mode, so that they are of this tree.
install_python() {
  install_cuda
  python_packages python-build "setuptools $(version setuptools)"
  install_import
  install_http
  python_packages corpus "Python packages of linnet-corpus"
  python_packages python "Python packages"
  once .venv/.linnet-model "$(cat {model,client/corpus}/pyproject.toml | key_of)" "linnet_model and linnet-corpus" \
    .venv/bin/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation -e model -e client/corpus
}

# ---- SentencePiece

# Debian's libsentencepiece.so carries an abseil that clashes with gRPC's, so ours is static, built from the
# source package of the very version that Python trains with.
readonly sentencepiece_flags=(
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON
  -DSPM_ENABLE_SHARED=OFF -DSPM_ENABLE_TCMALLOC=OFF
  -DSPM_USE_BUILTIN_PROTOBUF=OFF -DSPM_PROTOBUF_PROVIDER=package)

build_sentencepiece() {
  local work=build/sentencepiece out=.deps/sentencepiece
  rm -rf "$work"
  mkdir -p "$work" "$out/lib" "$out/include"
  section sentencepiece >"$work/requirements.txt"
  .venv/bin/python -m pip download --disable-pip-version-check --no-input --progress-bar off \
    --require-hashes --no-deps --no-build-isolation --no-binary :all: -d "$work" -r "$work/requirements.txt"
  tar -xzf "$work"/sentencepiece-*.tar.gz -C "$work" --strip-components=1
  cmake -S "$work/sentencepiece" -B "$work/build" -G Ninja "${sentencepiece_flags[@]}" \
    -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache
  cmake --build "$work/build" --target sentencepiece-static
  cp "$work/build/src/libsentencepiece.a" "$out/lib/"
  cp "$work/sentencepiece/src/sentencepiece_processor.h" "$out/include/"
  # SentencePiece has a copy of darts-clone, whose licence is another: deploy/notices.sh prints it.
  cp "$work/sentencepiece/third_party/darts_clone/LICENSE" "$out/darts_clone.LICENSE"
  rm -rf "$work"
}

install_sentencepiece() {
  python_packages python-build "setuptools $(version setuptools)"
  mkdir -p .deps/sentencepiece
  once .deps/sentencepiece/.linnet "$({ section sentencepiece; echo "${sentencepiece_flags[@]}"; declare -f build_sentencepiece; } | key_of)" \
    "SentencePiece $(version sentencepiece), static" build_sentencepiece
}

# ---- gRPC

# shellcheck source=deps/grpc.sh
. deps/grpc.sh

# ---- all of it

# install EXTRA…: installs the dependencies of a CPU server and those of each EXTRA: `cuda`, `http`, `import`, `python`, `grpc`.
install_dependencies() {
  local extra
  install_packages debian "Debian packages"
  install_libtorch
  install_sentencepiece
  for extra in "$@"; do "install_$extra"; done
}
