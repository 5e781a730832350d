# cmake --install: programs, libraries, headers, and the package that find_package(Par) finds. The component "runtime"
# is what a machine needs that only runs bundles.
include(CMakePackageConfigHelpers)
install(TARGETS par-run par-rank par-verify RUNTIME DESTINATION bin COMPONENT runtime)
install(TARGETS par-runtime EXPORT ParTargets LIBRARY DESTINATION lib COMPONENT runtime)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/include/ DESTINATION include COMPONENT headers)
if(PAR_COMPILER)
  install(TARGETS par-compile par-opt RUNTIME DESTINATION bin COMPONENT compiler)
  install(TARGETS par-compiler EXPORT ParTargets LIBRARY DESTINATION lib COMPONENT compiler)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ ${PROJECT_BINARY_DIR}/include/ DESTINATION include COMPONENT headers
    FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.inc" PATTERN CMakeFiles EXCLUDE)
endif()
target_include_directories(par-runtime INTERFACE $<INSTALL_INTERFACE:include>)

install(EXPORT ParTargets NAMESPACE Par:: DESTINATION lib/cmake/Par COMPONENT headers)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/ParConfig.cmake.in ${PROJECT_BINARY_DIR}/ParConfig.cmake
  INSTALL_DESTINATION lib/cmake/Par)
# A plugin is loaded by no other version.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ParConfigVersion.cmake COMPATIBILITY ExactVersion)
install(FILES ${PROJECT_BINARY_DIR}/ParConfig.cmake ${PROJECT_BINARY_DIR}/ParConfigVersion.cmake
  DESTINATION lib/cmake/Par COMPONENT headers)
