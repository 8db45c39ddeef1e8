# ccache and lld where present; capstan_library and capstan_test, which every folder uses.

find_program(CAPSTAN_CCACHE ccache)
if(CAPSTAN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the source folder are hashed relative to it, so that another clone finds what one has built.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                  ${CAPSTAN_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# What our own targets are compiled with; third-party headers are SYSTEM and stay out of -Werror.
add_library(capstan_flags INTERFACE)
target_compile_options(capstan_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror)
target_include_directories(capstan_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
find_program(CAPSTAN_LLD ld.lld)
if(CAPSTAN_LLD)
  target_link_options(capstan_flags INTERFACE -fuse-ld=lld)
endif()
if(CAPSTAN_SANITIZE)
  # Instrumented code makes GCC see uninitialised values in the standard library that are not there.
  target_compile_options(capstan_flags INTERFACE -fsanitize=${CAPSTAN_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(capstan_flags INTERFACE -fsanitize=${CAPSTAN_SANITIZE})
endif()

# capstan_library(<folder> SOURCES … [LINKS …] [PRIVATE_LINKS …])
# One static library per folder of src/capstan; LINKS are the arrows the folder is allowed.
function(capstan_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(capstan_${name} STATIC ${arg_SOURCES})
  add_library(capstan::${name} ALIAS capstan_${name})
  target_link_libraries(capstan_${name} PUBLIC capstan_flags ${arg_LINKS} PRIVATE ${arg_PRIVATE_LINKS})
endfunction()

# capstan_test(<name> SOURCES … LINKS … [LABELS …] [TIMEOUT seconds] [SERIAL] [PATHS])
# One gtest executable; each of its cases is one CTest test. SERIAL ones run alone; PATHS ones know where the
# repository and the build are (only those: a path on the command line makes another clone's ccache useless).
function(capstan_test name)
  cmake_parse_arguments(arg "SERIAL;PATHS" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINKS} GTest::gtest_main GTest::gmock)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  if(arg_PATHS)
    target_compile_definitions(${name} PRIVATE CAPSTAN_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                               CAPSTAN_BINARY_DIR="${CMAKE_BINARY_DIR}")
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${arg_TIMEOUT} RUN_SERIAL ${arg_SERIAL} LABELS "${arg_LABELS}")
endfunction()
