target_include_directories(runtime-App-tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
