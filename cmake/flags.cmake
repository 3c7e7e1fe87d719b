# Flags of every target of this project. Portable: no -march=native; kernels select their instruction set at run time.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
# The folder of ./start.sh --patched-grpc: a gRPC there replaces Debian's, also for programs that are already linked.
set(CMAKE_BUILD_RPATH "${CMAKE_SOURCE_DIR}/.deps/grpc/lib")

add_library(linnet_warnings INTERFACE)
target_compile_options(linnet_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Werror -Wno-sign-compare -Wno-unused-parameter -march=x86-64-v2>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>  # false alarms of g++ 12 at -O3 (GCC bug 105651)
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:Clang>>:-Wthread-safety>)

# linnet_compile_quickly(target): for code whose speed nobody notices, such as that of flags. g++ takes a third longer at -O3.
# At -O1, which the presets of the sanitizers have too, g++ 12 has more false alarms (GCC bug 105651).
function(linnet_compile_quickly target)
  target_compile_options(${target} PRIVATE
    $<$<CONFIG:Release>:-O1>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-stringop-overflow>)
endfunction()

find_program(LINNET_CCACHE ccache)
if(LINNET_CCACHE)
  # A release has no debug information, so ccache may serve a checkout in another folder.
  set(elsewhere "")
  if(CMAKE_BUILD_TYPE STREQUAL Release)
    set(elsewhere "${CMAKE_COMMAND}" -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1)
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${elsewhere} "${LINNET_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${LINNET_CCACHE}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${LINNET_CCACHE}")
endif()
find_program(LINNET_MOLD mold)
if(LINNET_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(LINNET_SANITIZE)
  # Without -fno-sanitize-recover, undefined behaviour is only printed and the test passes.
  add_compile_options(-fsanitize=${LINNET_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${LINNET_SANITIZE})
  if(LINNET_SANITIZE MATCHES thread)
    # With this macro protobuf's headers give map fields members that Debian's library does not know, and a program that
    # uses such a field crashes. libstdc++ reads its own macro instead.
    add_compile_options(-U__SANITIZE_THREAD__)
    add_compile_definitions(LINNET_TSAN _GLIBCXX_TSAN=1)
  endif()
endif()
