# UNITY in the functions below compiles the files of a folder together, eight at a time, which takes much less
# from nothing, because the templates of the headers are instantiated once. Names in the
# unnamed namespaces of such a folder must differ. The dev preset compiles all files one by one.

# renkei_library(name [UNITY] SOURCES ... DEPENDS folder ... LINK target ... PRIVATE_LINK target ...)
# One static library per folder of src/. DEPENDS names other folders: the link graph is the
# architecture, a folder that is not named there cannot be used.
function(renkei_library name)
  cmake_parse_arguments(arg "UNITY" "" "SOURCES;DEPENDS;LINK;PRIVATE_LINK" ${ARGN})
  add_library(renkei_${name} STATIC ${arg_SOURCES})
  if(arg_UNITY AND RENKEI_UNITY)
    set_target_properties(renkei_${name} PROPERTIES UNITY_BUILD ON)
  endif()
  target_include_directories(renkei_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM arg_DEPENDS PREPEND renkei_)
  target_link_libraries(renkei_${name} PUBLIC ${arg_DEPENDS} ${arg_LINK} PRIVATE ${arg_PRIVATE_LINK})
endfunction()

# renkei_test(name [UNITY] SOURCES ... DEPENDS folder ... [LABELS label ...] [PRECOMPILED target])
# One test program per folder; the tests in it are sentences. GoogleTest's header, which takes longer
# than most tests to compile, is compiled once, with the first program; a program that includes Torch
# names the target that has compiled that.
function(renkei_test name)
  cmake_parse_arguments(arg "UNITY" "PRECOMPILED" "SOURCES;DEPENDS;LABELS" ${ARGN})
  list(TRANSFORM arg_DEPENDS PREPEND renkei_)
  add_executable(test_${name} ${arg_SOURCES})
  if(arg_UNITY AND RENKEI_UNITY)
    set_target_properties(test_${name} PROPERTIES UNITY_BUILD ON)
  endif()
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(test_${name} PRIVATE ${arg_DEPENDS} GTest::gtest GTest::gmock GTest::gtest_main)
  if(arg_PRECOMPILED)
    target_precompile_headers(test_${name} REUSE_FROM ${arg_PRECOMPILED})
  elseif(TARGET test_base AND NOT name STREQUAL base)
    target_precompile_headers(test_${name} REUSE_FROM test_base)
  else()
    target_precompile_headers(test_${name} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  add_test(NAME ${name} COMMAND test_${name})
  set_tests_properties(${name} PROPERTIES LABELS "${name};${arg_LABELS}" TIMEOUT 900)
endfunction()

# renkei_mpi_test(name RANKS n SOURCES ... DEPENDS folder ...)
# A test program under the launcher of the linked MPI; its main asserts the number of ranks.
function(renkei_mpi_test name)
  cmake_parse_arguments(arg "" "RANKS" "SOURCES;DEPENDS;LABELS" ${ARGN})
  list(TRANSFORM arg_DEPENDS PREPEND renkei_)
  if(NOT TARGET test_${name})
    add_executable(test_${name} ${arg_SOURCES})
    target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(test_${name} PRIVATE ${arg_DEPENDS} GTest::gtest GTest::gmock)
  endif()
  set(flags -n ${arg_RANKS})
  if(RENKEI_MPI_NAME STREQUAL "Open MPI")
    list(PREPEND flags --allow-run-as-root --oversubscribe --bind-to none)
  endif()
  add_test(NAME ${name}_${arg_RANKS}_ranks
           COMMAND ${RENKEI_MPI_LAUNCHER} ${flags} $<TARGET_FILE:test_${name}> --ranks=${arg_RANKS})
  # What MPI libraries allocate once and never free is not ours to report.
  set_tests_properties(${name}_${arg_RANKS}_ranks PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 300 PROCESSORS 2
    ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0")
endfunction()
