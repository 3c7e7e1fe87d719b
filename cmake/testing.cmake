# linnet_test(name SOURCES a_test.cc … LIBRARIES linnet_x …): one GoogleTest binary per room, one CTest entry per test.
include(GoogleTest)
find_package(GTest 1.12 REQUIRED)

function(linnet_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_compile_definitions(${name} PRIVATE LINNET_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} linnet_warnings GTest::gmock_main)
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 300)
endfunction()
