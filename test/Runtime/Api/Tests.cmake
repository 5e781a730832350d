target_include_directories(runtime-Api-tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
