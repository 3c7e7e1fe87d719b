# Debian's libraries, and SentencePiece as ./start.sh builds it (static, on Debian's protobuf) in .deps/sentencepiece.
find_package(Threads REQUIRED)
find_package(Protobuf 3.21 REQUIRED)
find_package(absl REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(civetweb REQUIRED)  # the HTTP server in prometheus-cpp
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ICU 72 REQUIRED COMPONENTS uc i18n)
# Any version that CMAKE_PREFIX_PATH leads to: Debian's configuration sets none that find_package could check.
find_package(gRPC CONFIG REQUIRED)
if(gRPC_VERSION VERSION_LESS 1.51)
  message(FATAL_ERROR "gRPC ${gRPC_VERSION} in ${gRPC_DIR} is too old: 1.51 or newer is needed; set CMAKE_PREFIX_PATH to one")
endif()
find_package(OpenSSL REQUIRED)  # libcrypto: sha256 of a bundle's files

# Debian's libcld2-dev contains no CMake configuration.
find_path(LINNET_CLD2_INCLUDE cld2/public/compact_lang_det.h REQUIRED)
find_library(LINNET_CLD2_LIBRARY cld2 REQUIRED)
add_library(linnet_cld2 UNKNOWN IMPORTED)
set_target_properties(linnet_cld2 PROPERTIES
  IMPORTED_LOCATION "${LINNET_CLD2_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${LINNET_CLD2_INCLUDE}")

# Debian's libre2-dev contains no CMake configuration either.
find_library(LINNET_RE2_LIBRARY re2 REQUIRED)
add_library(linnet_re2 UNKNOWN IMPORTED)
set_target_properties(linnet_re2 PROPERTIES IMPORTED_LOCATION "${LINNET_RE2_LIBRARY}")

set(LINNET_SENTENCEPIECE_DIR "${CMAKE_SOURCE_DIR}/.deps/sentencepiece" CACHE PATH "Installed static SentencePiece")
find_library(LINNET_SENTENCEPIECE_LIBRARY NAMES libsentencepiece.a
             PATHS "${LINNET_SENTENCEPIECE_DIR}/lib" NO_DEFAULT_PATH)
if(NOT LINNET_SENTENCEPIECE_LIBRARY)
  message(FATAL_ERROR "no static SentencePiece in ${LINNET_SENTENCEPIECE_DIR}: run ./start.sh --build once, "
                      "or set LINNET_SENTENCEPIECE_DIR")
endif()
add_library(linnet_sentencepiece STATIC IMPORTED)
set_target_properties(linnet_sentencepiece PROPERTIES
  IMPORTED_LOCATION "${LINNET_SENTENCEPIECE_LIBRARY}"
  INTERFACE_INCLUDE_DIRECTORIES "${LINNET_SENTENCEPIECE_DIR}/include"
  INTERFACE_LINK_LIBRARIES "protobuf::libprotobuf")
