# Every third-party library, as an imported target. All of them come from the system's packages.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(ucx REQUIRED)

pkg_check_modules(archive REQUIRED IMPORTED_TARGET libarchive)
pkg_check_modules(crypto REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(curl REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)

if(CAPSTAN_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  include(GoogleTest)
endif()

# libcsv has neither a CMake package nor a .pc file.
find_path(CAPSTAN_CSV_INCLUDE csv.h REQUIRED)
find_library(CAPSTAN_CSV_LIBRARY csv REQUIRED)
add_library(capstan_csv INTERFACE)
add_library(capstan::csv ALIAS capstan_csv)
target_include_directories(capstan_csv SYSTEM INTERFACE ${CAPSTAN_CSV_INCLUDE})
target_link_libraries(capstan_csv INTERFACE ${CAPSTAN_CSV_LIBRARY})

find_file(CAPSTAN_CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH REQUIRED
          DOC "Chart.js, which pages of plots carry")

if(CAPSTAN_TORCH)
  find_package(Torch REQUIRED)
  # Torch's own target carries global flags; this one carries only what our code needs, as system headers.
  add_library(capstan_torch INTERFACE)
  add_library(capstan::torch ALIAS capstan_torch)
  target_include_directories(capstan_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(capstan_torch INTERFACE ${TORCH_LIBRARIES})
endif()
