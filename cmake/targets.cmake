# renkei_library(name SOURCES ... DEPENDS folder ... LINK target ... PRIVATE_LINK target ...)
# One static library per folder of src/. DEPENDS names other folders: the link graph is the
# architecture, a folder that is not named there cannot be used.
function(renkei_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;LINK;PRIVATE_LINK" ${ARGN})
  add_library(renkei_${name} STATIC ${arg_SOURCES})
  target_include_directories(renkei_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM arg_DEPENDS PREPEND renkei_)
  target_link_libraries(renkei_${name} PUBLIC ${arg_DEPENDS} ${arg_LINK} PRIVATE ${arg_PRIVATE_LINK})
endfunction()

# renkei_test(name SOURCES ... DEPENDS folder ... [LABELS label ...])
# One test program per folder; the tests in it are sentences.
function(renkei_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;LABELS" ${ARGN})
  list(TRANSFORM arg_DEPENDS PREPEND renkei_)
  add_executable(test_${name} ${arg_SOURCES})
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(test_${name} PRIVATE ${arg_DEPENDS} GTest::gtest GTest::gmock GTest::gtest_main)
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
