# One interface target for the warnings and the language level, one function for a folder's library, one for its tests.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

set(ASSAY_SANITIZE "" CACHE STRING "Sanitizer for Assay's own code: address, thread, fuzzer (clang) or empty")

add_library(assay_options INTERFACE)
target_compile_options(assay_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns of impossible overlaps and bounds in std::string at -O3 (its bug 105651); precompiled
  # headers are no system headers to it.
  target_compile_options(assay_options INTERFACE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow
    -Wno-stringop-overread)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Kilobytes that the compiler fills before it looks for garbage: a tenth of its time on large files.
  target_compile_options(assay_options INTERFACE "SHELL:--param ggc-min-heapsize=600000")
endif()
target_include_directories(assay_options INTERFACE
  ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
if(ASSAY_SANITIZE STREQUAL "address")
  target_compile_options(assay_options INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(assay_options INTERFACE -fsanitize=address,undefined)
elseif(ASSAY_SANITIZE STREQUAL "fuzzer")
  # clang's: coverage of all of Assay's own code; the fuzz targets link libFuzzer's main. Warnings are
  # the business of the other builds: clang has others, some about the standard library.
  set(ASSAY_FUZZER_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=all)
  target_compile_options(assay_options INTERFACE ${ASSAY_FUZZER_FLAGS} -fsanitize=fuzzer-no-link
    -fno-omit-frame-pointer -w)
  target_link_options(assay_options INTERFACE ${ASSAY_FUZZER_FLAGS})
elseif(ASSAY_SANITIZE STREQUAL "thread")
  # GCC's -Wtsan warns that fences are not modelled; the doorbell uses none outside atomics.
  target_compile_options(assay_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer -Wno-tsan)
  target_link_options(assay_options INTERFACE -fsanitize=thread)
endif()

# The headers that most files include, compiled once for the program and, with GoogleTest's, once for
# the tests. Tests are compiled at -O1: they wait for processes, not for their own loops.
# assay_precompile(name headers...): a target whose compiled headers others reuse.
function(assay_precompile name)
  cmake_parse_arguments(A "" "" "LINKS;OPTIONS" ${ARGN})
  file(WRITE ${CMAKE_BINARY_DIR}/generated/${name}.cc "")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/generated/${name}.cc)
  target_link_libraries(${name} PRIVATE assay_options ${A_LINKS})
  target_compile_options(${name} PRIVATE ${A_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${A_UNPARSED_ARGUMENTS})
endfunction()
set(ASSAY_COMMON_HEADERS <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <deque> <expected>
  <filesystem> <fmt/format.h> <functional> <limits> <map> <memory> <optional> <random> <set> <span>
  <string> <string_view> <utility> <vector>)

# Compiles the files between two '|' of a list as one: the compiler reads headers and makes templates
# once for all. Names in their anonymous namespaces must differ; where two clash, put one of the files
# behind another '|'. A list without '|' is one group; ALONE compiles each file by itself.
function(assay_group_sources target files)
  set(number 0)
  set(sources)
  foreach(file ${files})
    if(file STREQUAL "|")
      math(EXPR number "${number} + 1")
      continue()
    endif()
    list(APPEND sources ${file})
    set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${target}_${number})
  endforeach()
  set(ASSAY_SOURCES ${sources} PARENT_SCOPE)
endfunction()

# assay_folder(name SOURCES a.cc b.cc | c.cc ... USES assay_base ... LINKS external ... [LIBC_ALONE] [ALONE] [HOT])
# HOT: its loops take time, so it is compiled at the build's own level of optimisation, not at -O1.
function(assay_folder name)
  cmake_parse_arguments(A "LIBC_ALONE;ALONE;HOT" "" "SOURCES;USES;LINKS" ${ARGN})
  if(A_SOURCES)
    assay_group_sources(${name} "${A_SOURCES}")
    add_library(${name} STATIC ${ASSAY_SOURCES})
    target_link_libraries(${name} PUBLIC assay_options ${A_USES} PRIVATE ${A_LINKS})
    if(NOT A_ALONE)
      set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    endif()
    if(NOT A_HOT)
      target_compile_options(${name} PRIVATE -O1)
    endif()
    if(NOT A_LIBC_ALONE)
      target_precompile_headers(${name} REUSE_FROM assay_headers)
    endif()
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE assay_options ${A_USES} ${A_LINKS})
  endif()
endfunction()

# assay_test(name SOURCES a_test.cc ... USES ... [TIMEOUT seconds]): one test binary a folder. They
# watch clocks and processes: ctest runs nothing beside them.
function(assay_test name)
  if(NOT ASSAY_TESTS)
    return()
  endif()
  cmake_parse_arguments(A "" "TIMEOUT" "SOURCES;USES;DEPENDS" ${ARGN})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  assay_group_sources(${name} "${A_SOURCES}")
  add_executable(${name} ${ASSAY_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests
    UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_link_libraries(${name} PRIVATE assay_options ${A_USES} fmt::fmt GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE -O1)
  target_precompile_headers(${name} REUSE_FROM assay_test_headers)
  if(A_DEPENDS)
    add_dependencies(${name} ${A_DEPENDS})
  endif()
  target_compile_definitions(${name} PRIVATE
    ASSAY_SOURCE_DIRECTORY="${CMAKE_SOURCE_DIR}" ASSAY_BUILD_DIRECTORY="${CMAKE_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${A_TIMEOUT} RUN_SERIAL ON)
endfunction()

# assay_fuzz(name USES ... LINKS external ...): the fuzz target of name_fuzz.cc, over the corpus
# tests/fuzz/corpus/name, built by the target 'fuzzers' alone. Without libFuzzer its main is tests/fuzz/replay.cc, and ctest runs the
# corpus and a few seconds of mutations from a fresh seed.
set(ASSAY_FUZZ_SECONDS 5 CACHE STRING "Seconds of mutations a fuzz target gets from ctest")
function(assay_fuzz name)
  if(NOT ASSAY_TESTS)
    return()
  endif()
  cmake_parse_arguments(A "" "" "USES;LINKS" ${ARGN})
  set(target ${name}_fuzz)
  add_executable(${target} EXCLUDE_FROM_ALL ${name}_fuzz.cc)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzzers)
  target_link_libraries(${target} PRIVATE assay_options assay_base ${A_USES} ${A_LINKS})
  set_property(GLOBAL APPEND PROPERTY ASSAY_FUZZERS ${target})
  if(ASSAY_SANITIZE STREQUAL "fuzzer")
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.cc)
  set(arguments --mutate ${ASSAY_FUZZ_SECONDS} --artifacts ${CMAKE_BINARY_DIR}/fuzzers)
  if(EXISTS ${CMAKE_SOURCE_DIR}/tests/fuzz/dictionaries/${name}.dict)
    list(APPEND arguments --dictionary ${CMAKE_SOURCE_DIR}/tests/fuzz/dictionaries/${name}.dict)
  endif()
  add_test(NAME ${target}
    COMMAND ${target} ${arguments} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
  set_tests_properties(${target} PROPERTIES TIMEOUT 60 LABELS fuzz)
endfunction()
