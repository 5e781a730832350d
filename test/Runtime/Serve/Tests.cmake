target_include_directories(runtime-Serve-tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
