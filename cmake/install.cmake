# cmake --install: programs, library, headers, documentation. Nothing installed names the prefix, so it can be moved.

include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Capstan)
set(pkgconfig_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(TARGETS capstan capstan-data capstan-tools)
if(CAPSTAN_TORCH)
  install(TARGETS capstan-torch)
endif()

# Component client: a component is the file Capstan-NAME.cmake beside CapstanConfig.cmake.
install(TARGETS capstan_client_library EXPORT Capstan-client INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT Capstan-client DESTINATION ${package_folder} NAMESPACE capstan::)
# Component training: the same with libtorch.
if(CAPSTAN_TORCH)
  install(TARGETS capstan_training_library capstan_training_start EXPORT Capstan-training
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT Capstan-training DESTINATION ${package_folder} NAMESPACE capstan::)
endif()
install(DIRECTORY include/capstan DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

configure_package_config_file(cmake/CapstanConfig.cmake.in ${PROJECT_BINARY_DIR}/CapstanConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
else()
  set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file(${PROJECT_BINARY_DIR}/CapstanConfigVersion.cmake COMPATIBILITY ${compatibility})
install(FILES ${PROJECT_BINARY_DIR}/CapstanConfig.cmake ${PROJECT_BINARY_DIR}/CapstanConfigVersion.cmake
        DESTINATION ${package_folder})

# pkg-config finds the prefix from the place of its own file.
file(RELATIVE_PATH prefix_from_pkgconfig /prefix/${pkgconfig_folder} /prefix)
string(REGEX REPLACE "/$" "" prefix_from_pkgconfig ${prefix_from_pkgconfig})
configure_file(cmake/capstan-client.pc.in ${PROJECT_BINARY_DIR}/capstan-client.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/capstan-client.pc DESTINATION ${pkgconfig_folder})

install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Where capstan bench ps finds them (lab/shipped_files.h).
install(DIRECTORY experiments configurations DESTINATION ${CMAKE_INSTALL_DATADIR}/capstan)
