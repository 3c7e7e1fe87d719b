# linnet_test(name SOURCES a_test.cc … [HEADERS a.h …] LIBRARIES linnet_x …): one GoogleTest binary per folder, one CTest
# entry per test. HEADERS, which most of the many sources read, are compiled once, as those of a library are (LINNET_UNITY).
# Without them a test is compiled as what it tests is: kernels then have the same bits.
include(GoogleTest)
find_package(GTest 1.12 REQUIRED)

# The one source that knows the folder of this checkout.
add_library(linnet_places STATIC "${CMAKE_SOURCE_DIR}/tests/support/places.cc")
target_include_directories(linnet_places PRIVATE "${CMAKE_SOURCE_DIR}")
target_compile_definitions(linnet_places PRIVATE LINNET_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
target_link_libraries(linnet_places PRIVATE linnet_warnings)

function(linnet_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} linnet_places linnet_warnings GTest::gmock_main)
  if(ARG_HEADERS)
    linnet_compile_quickly(${name})  # nothing measures these
  endif()
  if(LINNET_UNITY AND ARG_HEADERS)
    target_precompile_headers(${name} PRIVATE <gmock/gmock.h> ${ARG_HEADERS})
    # g++ knows a header with #pragma once by its time. With a precompiled header of ccache, made when a header had another time,
    # it reads that header twice.
    set_target_properties(${name} PROPERTIES CXX_COMPILER_LAUNCHER "")
  endif()
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 300)
endfunction()

# linnet_fuzz_test(name RUNS n LIBRARIES linnet_x …): a fuzz target, name_fuzz.cc, and a short run of it over corpus/name as
# the test fuzz.name. clang++ uses libFuzzer; g++ has none and uses tests/fuzz/driver.cc.
function(linnet_fuzz_test name)
  cmake_parse_arguments(ARG "" "RUNS" "LIBRARIES" ${ARGN})
  add_executable(${name}_fuzz ${name}_fuzz.cc)
  target_include_directories(${name}_fuzz PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name}_fuzz PRIVATE ${ARG_LIBRARIES} linnet_places linnet_warnings)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name}_fuzz PRIVATE driver.cc)
  endif()
  # libFuzzer writes new inputs to the first folder.
  set(found "${CMAKE_CURRENT_BINARY_DIR}/found/${name}")
  file(MAKE_DIRECTORY "${found}")
  add_test(NAME fuzz.${name} COMMAND ${name}_fuzz -runs=${ARG_RUNS} -seed=1 "${found}"
           "${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name}" WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  set_tests_properties(fuzz.${name} PROPERTIES TIMEOUT 300)
  if(EXISTS /dev/shm)  # for thousands of small files
    set_tests_properties(fuzz.${name} PROPERTIES ENVIRONMENT TMPDIR=/dev/shm)
  endif()
endfunction()
