#!/usr/bin/env bash
# Prints the licences of the third-party parts in Linnet's programs and beside them: one file for packages and images.
#
#   deploy/notices.sh >THIRD_PARTY_NOTICES
#   deploy/notices.sh --cuda >THIRD_PARTY_NOTICES    also NVIDIA's libraries, of the image for a GPU
#
# Debian's shared libraries, to which the programs only link, come with their licences in Debian's packages. The texts are
# those of the installed parts, so that they belong to exactly these versions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
site=.deps/python cuda=''
[[ ${1:-} != --cuda ]] || { cuda=1 && shift; }
(($# == 0)) || { sed -n '2,8s/^# \{0,1\}//p' deploy/notices.sh >&2 && exit 2; }

# notice TITLE WHERE FILE…: prints a part, the programs that contain it, and its texts.
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

# version NAME: prints the version of a Python package in deps/versions.txt.
version() { sed -n "s/^$1==\([^ ]*\).*/\1/p" deps/versions.txt | head -n 1; }

printf 'Third-party notices of Linnet %s\n\n' "$(sed -n 's/^project(linnet VERSION \([^ ]*\).*/\1/p' CMakeLists.txt)"
torch=$(version torch) cupti=$(version nvidia-cuda-cupti) runtime=$(version nvidia-cuda-runtime)
notice "LibTorch $torch" "shared libraries beside the programs, with the parts that its NOTICE names" \
  "$site/torch-$torch.dist-info/licenses/"{LICENSE,NOTICE}
notice "NVIDIA CUPTI $cupti and CUDA runtime $runtime" "shared libraries that LibTorch loads, also without a GPU" \
  "$site/nvidia_cuda_runtime-$runtime.dist-info/licenses/License.txt"
if [[ $cuda ]]; then
  while read -r name version; do
    wheel=$site/${name//-/_}-$version.dist-info
    licence=$(sed -n 's/^\([^,]*licen[sc]e[^,/]*\.txt\),.*/\1/Ip' "$wheel/RECORD")
    notice "$name $version" "shared libraries that LibTorch loads for a GPU" "$site/${licence:?"$wheel names no licence"}"
  done < <(sed -n '/^\[cuda\]$/,/^$/s/^\([^=#]*\)==\([^ ]*\).*/\1 \2/p' deps/versions.txt)
fi
notice "gRPC $(sed -n 's/^grpc_\([^ ]*\)\.dsc .*/\1/p' deps/versions.txt), changed by the patches below" \
  "shared libraries beside the programs, with the parts that Debian's copyright file names" \
  /usr/share/doc/libgrpc++-dev/copyright deps/grpc/*.patch
for part in "libcli11-dev:CLI11" "nlohmann-json3-dev:JSON for Modern C++"; do
  IFS=: read -r package title <<<"$part"
  notice "$title $(dpkg-query -W -f '${Version}' "$package")" "in all programs" "/usr/share/doc/$package/copyright"
done
notice "Google's API error model (google/rpc), gRPC's health protocol, SentencePiece $(version sentencepiece)" \
  "in the programs, all under this licence, copyright Google LLC and The gRPC Authors" proto/google/rpc/LICENSE
notice "darts-clone, a part of SentencePiece $(version sentencepiece)" "in linnet-server and linnet-decode" \
  .deps/sentencepiece/darts_clone.LICENSE
