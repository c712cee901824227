# SPDX-License-Identifier: Apache-2.0
# How every target of berth is built: warnings, sanitizers, include folders.

# A unity build (CMAKE_UNITY_BUILD) compiles several sources of a target as one, since most of a
# source's compile time is its headers'. Compilers then object to a local name that another file's
# hides behind, and g++ takes each source for a header, so these warnings are left to the presets
# without: they have both.
set(shadow_warnings -Wshadow)
if(CMAKE_UNITY_BUILD)
  set(shadow_warnings)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(shadow_warnings -Wshadow=local -Wno-subobject-linkage)
  endif()
endif()

add_library(berth_options INTERFACE)
target_include_directories(berth_options INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_options(berth_options INTERFACE
  -Wall -Wextra -Wpedantic ${shadow_warnings} -Wconversion -Wsign-conversion -Wold-style-cast
  -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wundef
  $<$<BOOL:${BERTH_WARNINGS_AS_ERRORS}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlaps and overruns in std::string's own operators where there are none.
  target_compile_options(berth_options INTERFACE -Wno-array-bounds -Wno-restrict)
endif()
target_link_libraries(berth_options INTERFACE fmt::fmt)
if(BERTH_SANITIZE)
  target_compile_options(berth_options INTERFACE
    -fsanitize=${BERTH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(berth_options INTERFACE -fsanitize=${BERTH_SANITIZE})
endif()
if(BERTH_BUILD_FUZZERS)
  # All of our code reports its coverage to libFuzzer; the fuzz targets bring its main().
  target_compile_options(berth_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Headers that nearly every source includes, compiled once: most of a source's compile time is
# theirs. Sources include what they use all the same; the tidy preset compiles without. ccache can't
# see through a precompiled header, so with it there is none.
set(berth_common_headers
  <algorithm> <array> <atomic> <chrono> <cstdint> <functional> <map> <memory> <mutex> <optional>
  <span> <string> <string_view> <thread> <utility> <variant> <vector> <fmt/format.h>)
if(BERTH_PRECOMPILED_HEADERS AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/common_headers.cpp CONTENT "")
  add_library(berth_headers OBJECT ${PROJECT_BINARY_DIR}/common_headers.cpp)
  target_link_libraries(berth_headers PRIVATE berth_options)
  target_precompile_headers(berth_headers PRIVATE ${berth_common_headers})
endif()

# berth_add_library(core a.cpp b.cpp LINK fmt::fmt berth_other)
# A folder of src/ as the static library berth_<name>.
function(berth_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  add_library(berth_${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(berth_${name} PUBLIC berth_options ${arg_LINK})
  if(TARGET berth_headers)
    target_precompile_headers(berth_${name} REUSE_FROM berth_headers)
  endif()
endfunction()

# berth_add_test(unit_core a_test.cpp b_test.cpp LINK berth_core LABEL unit)
# GoogleTest sources as one program; each TEST is a ctest test with the label.
function(berth_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL" "LINK")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE berth_options GTest::gmock_main ${arg_LINK})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  # Where tests find what lies in the checkout: docs, tests/data.
  target_compile_definitions(${name} PRIVATE BERTH_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(TARGET berth_test_headers)
    target_precompile_headers(${name} REUSE_FROM berth_test_headers)
  endif()
  gtest_discover_tests(${name}
    DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${arg_LABEL}" TIMEOUT 120)
endfunction()

# berth_add_fuzzer(kineto kineto_fuzzer.cpp LINK berth_trace)
# A libFuzzer target as the program fuzzers/<name>; its seeds lie in tests/fuzz/corpus/<name>.
function(berth_add_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  add_executable(fuzz_${name} ${arg_UNPARSED_ARGUMENTS})
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers fuzz_${name})
  target_link_libraries(fuzz_${name} PRIVATE berth_options ${arg_LINK})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(fuzz_${name} PROPERTIES
    OUTPUT_NAME ${name}
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzzers)
endfunction()
