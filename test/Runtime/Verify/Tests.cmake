target_include_directories(runtime-Verify-tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
