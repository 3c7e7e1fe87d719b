# shellcheck shell=bash
# Builds gRPC with the patches of deps/grpc from Debian's source package into .deps/grpc/lib. Programs look there first
# (CMakeLists.txt), so they load it in place of Debian's without being linked again: no header is changed. deps/setup.sh
# sources this file; ./start.sh --patched-grpc calls install_grpc.

apt_folder=/etc/apt  # a variable for the tests
readonly grpc_libraries=(grpc++ grpc++_reflection grpcpp_channelz grpc gpr upb address_sorting)
readonly grpc_flags=(
  -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON
  "-DCMAKE_CXX_FLAGS=-g0 -fstack-protector-strong -D_FORTIFY_SOURCE=2"
  "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-z,relro -Wl,-z,now"
  -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON "-DCMAKE_INSTALL_RPATH=\$ORIGIN"
  -DgRPC_BUILD_TESTS=OFF -DgRPC_BACKWARDS_COMPATIBILITY_MODE=OFF
  -DgRPC_ABSL_PROVIDER=package -DgRPC_CARES_PROVIDER=package -DgRPC_PROTOBUF_PROVIDER=package
  -DgRPC_RE2_PROVIDER=package -DgRPC_SSL_PROVIDER=package -DgRPC_ZLIB_PROVIDER=package)

# grpc_version: prints the version of the pinned source package, from the name of its .dsc.
grpc_version() { section debian-grpc | sed -n 's/^grpc_\([^ ]*\)\.dsc .*/\1/p'; }

# A default Debian has no list of source packages, so one is derived from its binary ones: each entry of Debian 12's own
# suites with its type replaced, from one-line files and from deb822 files. Options and keys are kept.
deb_src_lines() {
  local -a lists=() files=()
  mapfile -t lists < <(compgen -G "$apt_folder/sources.list"; compgen -G "$apt_folder/sources.list.d/*.list" || true)
  ((${#lists[@]} == 0)) || awk '
    $1 == "deb" {
      suite = 3
      if ($2 ~ /^\[/) { for (i = 2; $i !~ /\]$/ && i < NF; ++i); suite = i + 2 }
      if ($suite !~ /^(bookworm|oldstable|stable)/) next
      sub(/^deb/, "deb-src")
      print
    }' "${lists[@]}"
}

deb_src_stanzas() {
  local -a files=()
  mapfile -t files < <(compgen -G "$apt_folder/sources.list.d/*.sources" || true)
  local file
  for file in "${files[@]}"; do  # one by one: a file may end without the empty line between two stanzas
    awk 'BEGIN { RS = ""; FS = "\n" }
      /(^|\n)Types:[^\n]*deb/ && /(^|\n)Suites:[^\n]*(bookworm|stable)/ && !/(^|\n)Enabled: *no/ {
        gsub(/(^|\n)#[^\n]*/, "")
        sub(/^\n/, "")
        sub(/Types:[^\n]*/, "Types: deb-src")
        print $0 "\n"
      }' "$file"
  done
}

# apt_here COMMAND…: runs apt with lists and a cache in build/grpc, which needs no root and changes nothing else.
apt_here() {
  local tool=$1
  shift
  (cd build/grpc && "$tool" -q -o Dir::Etc::sourcelist="$PWD/source.list" -o Dir::Etc::sourceparts="$PWD/parts" \
    -o Dir::State::lists="$PWD/lists" -o Dir::Cache="$PWD/cache" -o APT::Sandbox::User=root "$@")
}

download_grpc() {
  local work=build/grpc version offered
  version=$(grpc_version)
  mkdir -p "$work"/{parts,lists/partial,cache/archives/partial}
  deb_src_lines >"$work/source.list"
  deb_src_stanzas >"$work/parts/source.sources"
  [[ -s $work/source.list || -s $work/parts/source.sources ]] ||
    die "no entry of Debian 12 in $apt_folder/sources.list or sources.list.d: add one, such as
       deb http://deb.debian.org/debian bookworm main"
  apt_here apt-get update || echo "a list could not be read; the next step fails if it is needed"
  if ! apt_here apt-get source --download-only --only-source "grpc=$version"; then
    offered=$(apt_here apt-cache showsrc --only-source grpc | sed -n 's/^Version: //p' | sort -u | tr '\n' ' ')
    die "Debian does not offer the source package grpc $version but: ${offered:-none}
       deps/versions.txt pins it: see whether deps/grpc/*.patch fit another one, then change its section [debian-grpc]"
  fi
  section debian-grpc | sed -n 's/^\([^ ]*\) --hash=sha256:\(.*\)/\2  \1/p' >"$work/sha256"
  (cd "$work" && sha256sum -c sha256) ||
    die "the source package grpc $version is not the one whose hashes deps/versions.txt has"
}

build_grpc() {
  local work=build/grpc out=.deps/grpc patch name
  rm -rf "${work:?}" "${out:?}/lib"
  mkdir -p "$out/lib"
  download_grpc
  dpkg-source --no-check --extract "$work/grpc_$(grpc_version).dsc" "$work/source"
  for patch in deps/grpc/*.patch; do
    patch -d "$work/source" -p1 <"$patch" || die "$patch does not fit"
  done
  cmake -S "$work/source" -B "$work/build" -G Ninja "${grpc_flags[@]}" \
    -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache
  # Use relative paths, so that ccache hits wherever this tree lies.
  CCACHE_BASEDIR=$PWD/$work CCACHE_NOHASHDIR=1 cmake --build "$work/build" --target grpc++ grpc++_reflection grpcpp_channelz
  for name in "${grpc_libraries[@]}"; do cp -a "$work/build/lib$name".so.* "$out/lib/"; done
  strip --strip-unneeded "$out"/lib/*.so.*
  rm -rf "$work"
}

install_grpc() {
  install_packages debian-grpc-build "Debian packages to build gRPC"
  mkdir -p .deps/grpc
  once .deps/grpc/.linnet "$({ section debian-grpc; echo "${grpc_flags[@]}"; cat deps/grpc/*.patch; } | key_of)" \
    "gRPC $(grpc_version), patched" build_grpc
}
