# Signals come as they come to a job.
target_include_directories(runtime-Cpu-tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
