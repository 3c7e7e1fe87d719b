#!/usr/bin/env bash
# The licences of what Linnet's programs carry in them, or bring along: one file for packages and images.
#
#   deploy/notices.sh >THIRD_PARTY_NOTICES
#
# What they only link to, Debian's shared libraries, comes from Debian's packages with its own licences. Texts are
# taken from where the parts were installed from, so that they are those of the very versions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
site=.deps/python

# notice TITLE WHERE FILE…: a part, what it is in, and its texts.
notice() {
  local title=$1 where=$2 file
  shift 2
  printf '%s\n%s: %s\n%s\n\n' "$(printf '=%.0s' {1..100})" "$title" "$where" "$(printf '=%.0s' {1..100})"
  for file in "$@"; do
    [[ -s $file ]] || { echo "error: no $file: run ./start.sh --deps" >&2 && exit 1; }
    case $file in *.gz) gzip -dc "$file" ;; *) cat "$file" ;; esac
    printf '\n'
  done
}

# version NAME: of a Python package in deps/versions.txt.
version() { sed -n "s/^$1==\([^ ]*\).*/\1/p" deps/versions.txt | head -n 1; }

printf 'Third-party notices of Linnet %s\n\n' "$(sed -n 's/^project(linnet VERSION \([^ ]*\).*/\1/p' CMakeLists.txt)"
torch=$(version torch) cupti=$(version nvidia-cuda-cupti) runtime=$(version nvidia-cuda-runtime)
notice "LibTorch $torch" "shared libraries beside the programs, with the parts that its NOTICE names" \
  "$site/torch-$torch.dist-info/licenses/"{LICENSE,NOTICE}
notice "NVIDIA CUPTI $cupti and CUDA runtime $runtime" "shared libraries that LibTorch loads, also without a GPU" \
  "$site/nvidia_cuda_runtime-$runtime.dist-info/licenses/License.txt"
notice "gRPC $(sed -n 's/^grpc_\([^ ]*\)\.dsc .*/\1/p' deps/versions.txt), changed by the patches below" \
  "shared libraries beside the programs, with the parts that Debian's copyright file names" \
  /usr/share/doc/libgrpc++-dev/copyright deps/grpc/*.patch
for part in "libcli11-dev:CLI11:in all programs" "nlohmann-json3-dev:JSON for Modern C++:in linnet, linnet-load and linnet-decode"; do
  IFS=: read -r package title where <<<"$part"
  notice "$title $(dpkg-query -W -f '${Version}' "$package")" "$where" "/usr/share/doc/$package/copyright"
done
notice "Google's API error model (google/rpc), gRPC's health protocol, SentencePiece $(version sentencepiece)" \
  "in the programs, all under this licence, copyright Google LLC and The gRPC Authors" proto/google/rpc/LICENSE
