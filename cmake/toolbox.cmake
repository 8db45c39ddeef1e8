# ccache and lld where present; capstan_library, capstan_program and capstan_test, which every folder uses.

find_program(CAPSTAN_CCACHE ccache)
if(CAPSTAN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/cmake/compile.sh ${PROJECT_SOURCE_DIR})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# What our own targets are compiled and linked with; each of them links it PRIVATE, so that no flag reaches a program that links
# Capstan. Third-party headers are SYSTEM and stay out of -Werror.
add_library(capstan_flags INTERFACE)
# -fPIC is for libraries and programs alike, because they share precompiled headers.
target_compile_options(capstan_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror -fPIC)
find_program(CAPSTAN_LLD ld.lld)
if(CAPSTAN_LLD)
  target_link_options(capstan_flags INTERFACE -fuse-ld=lld)
endif()
target_link_options(capstan_flags INTERFACE -Wl,--as-needed)
if(CAPSTAN_SANITIZE)
  # Instrumented code makes GCC see uninitialised values and overruns in the standard library that are not there.
  target_compile_options(capstan_flags INTERFACE -fsanitize=${CAPSTAN_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all $<$<CXX_COMPILER_ID:GNU>:-Wno-error>)
  target_link_options(capstan_flags INTERFACE -fsanitize=${CAPSTAN_SANITIZE})
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(capstan_flags INTERFACE -fpch-preprocess)  # for ccache
else()
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)  # other compilers want the same macros in all users of one
endif()

# The first that asks for a precompiled header compiles it; the others, which have the same flags, use it.
function(capstan_precompile target uses_torch)
  set(owner capstan_base)
  set(header precompiled.h)
  if(uses_torch)
    set(owner capstan_models)
    set(header precompiled_torch.h)
  endif()
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/${header})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

# capstan_library(<folder> SOURCES … [LINKS …] [PRIVATE_LINKS …] [TORCH])
# One static library per folder of src/capstan; LINKS are the arrows the folder is allowed. TORCH: libtorch is among them.
function(capstan_library name)
  cmake_parse_arguments(arg "TORCH" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(capstan_${name} STATIC ${arg_SOURCES})
  add_library(capstan::${name} ALIAS capstan_${name})
  target_include_directories(capstan_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(capstan_${name} PUBLIC ${arg_LINKS} PRIVATE capstan_flags ${arg_PRIVATE_LINKS})
  capstan_precompile(capstan_${name} ${arg_TORCH})
endfunction()

# capstan_program(<name> SOURCES … LINKS … [TORCH])
function(capstan_program name)
  cmake_parse_arguments(arg "TORCH" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE capstan_flags ${arg_LINKS})
  capstan_precompile(${name} ${arg_TORCH})
endfunction()

# capstan_test(<name> SOURCES … LINKS … [LABELS …] [TIMEOUT seconds] [SERIAL] [PATHS] [TORCH])
# One gtest executable; each of its cases is one CTest test. SERIAL ones run alone; PATHS ones know where the
# repository and the build are (only those: a path on the command line makes another clone's ccache useless).
function(capstan_test name)
  cmake_parse_arguments(arg "SERIAL;PATHS;TORCH" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE capstan_flags ${arg_LINKS} capstan_test_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  if(arg_PATHS)
    target_compile_definitions(${name} PRIVATE CAPSTAN_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                               CAPSTAN_BINARY_DIR="${CMAKE_BINARY_DIR}")
  endif()
  if(arg_TORCH)
    target_precompile_headers(${name} REUSE_FROM capstan_test_torch)
  else()
    target_precompile_headers(${name} REUSE_FROM capstan_test_main)
  endif()
  # What tests/support/main.cpp prints for a test that may be skipped; of any other, a skip is a failure there.
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${arg_TIMEOUT} RUN_SERIAL ${arg_SERIAL}
                                  SKIP_REGULAR_EXPRESSION "capstan: may be skipped" LABELS "${arg_LABELS}")
endfunction()
