#!/usr/bin/env bash
# Collects built programs and the libraries they need in a relocatable folder: DIR/bin, DIR/lib.
#
#   deploy/stage.sh DIR              the programs with LibTorch's libraries and the patched gRPC; install Debian's
#                                    libraries beside them: [debian-runtime] in deps/versions.txt
#   deploy/stage.sh --cuda DIR       the same with what a GPU needs: the CUDA operators, all of LibTorch, and NVIDIA's libraries,
#                                    in DIR/site in the layout of the wheels, which they expect (4 GB)
#   deploy/stage.sh --portable [--serving] DIR
#                                    linnet-decode with Debian's libraries, the CUDA operators and the tests that tests/gpu.sh
#                                    runs if they are built, with --serving also linnet-server and linnet-load; without LibTorch,
#                                    for a machine that has a torch: LD_LIBRARY_PATH=TORCH/lib:DIR/lib, as tests/gpu.sh sets it;
#                                    glibc >= 2.36
#
# It copies only linked libraries: of LibTorch's 1 GB these are libtorch_cpu and four small ones.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

portable='' cuda=''
programs=(linnet-server linnet linnet-load linnet-decode)
if [[ ${1:-} == --portable ]]; then
  portable=1 programs=(linnet-decode)
  shift
  [[ ${1:-} != --serving ]] || { programs+=(linnet-server linnet-load) && shift; }
elif [[ ${1:-} == --cuda ]]; then
  cuda=1
  shift
fi
(($# == 1)) || { sed -n '2,15s/^# \{0,1\}//p' deploy/stage.sh && exit 2; }
dir=$1 built=build/release root=$PWD/
if [[ $portable ]]; then
  for test in cuda_kernels_gpu_test device_search_test gpu_latencies; do
    [[ ! -x $built/bin/$test ]] || programs+=("$test")
  done
fi
binaries=("${programs[@]/#/$built/bin/}")
for binary in "${binaries[@]}"; do
  [[ -x $binary ]] || { echo "error: no $binary: run ./start.sh --build" >&2 && exit 1; }
done

mkdir -p "$dir/bin" "$dir/lib"
cp "${binaries[@]}" "$dir/bin/"
cp "$built/lib/liblinnet_ops.so" "$dir/lib/"
if [[ $portable && -e $built/lib/liblinnet_ops_cuda.so ]]; then
  cp "$built/lib/liblinnet_ops_cuda.so" "$dir/lib/"
fi
if [[ $cuda ]]; then
  cp "$built/lib/liblinnet_ops_cuda.so" "$dir/lib/"
  mkdir -p "$dir/site/torch/lib"
  cp -L .deps/python/torch/lib/lib{c10,c10_cuda,torch_cpu,torch_cuda,torch_cuda_linalg,torch_nvshmem,caffe2_nvrtc}.so \
    .deps/python/torch/lib/libgomp.so.1 "$dir/site/torch/lib/"
  for libraries in .deps/python/nvidia/*/lib; do
    mkdir -p "$dir/site/${libraries#.deps/python/}"
    find "$libraries" -maxdepth 1 -name '*.so*' -exec cp -L -t "$dir/site/${libraries#.deps/python/}" {} +
  done
fi

# `ldd` prints "name => path (address)". A missing library is an error here rather than on the other machine.
libraries=$(ldd "${binaries[@]}" |
  sed -n 's/^\s*\(\S*\) => \(.*\) (0x[0-9a-f]*)$/\1 \2/p; s/^\s*\(\S*\) => not found$/\1 not/p' | sort -u |
  while read -r name path; do
    [[ $path == not ]] || path=$(realpath -s "$path")
    echo "$name $path"
  done)
if grep ' not$' <<<"$libraries"; then
  echo "error: these libraries were not found" >&2
  exit 1
fi
[[ $portable ]] || grep -qF "${root}.deps/grpc/lib/libgrpc++" <<<"$libraries" || {
  echo "error: the programs would take Debian's gRPC: run ./start.sh --build --patched-grpc" >&2
  exit 1
}
while read -r name path; do
  if [[ $name == liblinnet* ]]; then
    continue
  elif [[ $path == "$root".deps/grpc/* ]]; then
    cp -L "$path" "$dir/lib/$name"
  elif [[ $path == "$root"* ]]; then
    [[ $portable || $cuda ]] || cp -L "$path" "$dir/lib/$name"
  elif [[ $portable && ! $name =~ ^lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s)\.so ]]; then
    cp -L "$path" "$dir/lib/$name"  # except the C and C++ runtimes, which belong to the machine
  fi
done <<<"$libraries"
# The rpath leads only to the folder itself, never to the build. A new rpath must not be longer than the old one, so
# liblinnet_ops, which was linked to torch alone, gets a single entry.
if [[ ! $portable ]]; then
  torch=${cuda:+"\$ORIGIN/../site/torch/lib"}
  for file in "$dir"/bin/* "$dir"/lib/liblinnet_ops*.so; do
    chmod u+w "$file"
    case $file in
      */bin/linnet | */bin/linnet-load) rpath="\$ORIGIN/../lib" ;;
      */bin/*) rpath="\$ORIGIN/../lib${torch:+:$torch}" ;;
      */liblinnet_ops.so) rpath=${torch:-"\$ORIGIN"} ;;
      *) rpath="\$ORIGIN${torch:+:$torch}" ;;
    esac
    cmake -DFILE="$file" -DRPATH="$rpath" -P cmake/set_rpath.cmake
  done
fi
# A fifth of LibTorch is symbols that only a debugger reads.
for file in "$dir"/bin/* "$dir"/lib/lib{linnet,torch,c10}* "$dir"/site/torch/lib/lib{torch,c10}*; do
  [[ ! -e $file ]] || strip --strip-unneeded "$file"
done
du -sh "$dir"
