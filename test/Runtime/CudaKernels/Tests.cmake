# The .cu files as ordinary C++ against the emulation, and the CPU's reductions to compare with.
target_include_directories(runtime-CudaKernels-tests PRIVATE ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/src)
target_compile_options(runtime-CudaKernels-tests PRIVATE -Wall -Wno-unknown-pragmas)
# The same tests on a GPU, and how fast the kernels move bytes there: for bench/gpu-check, not part of the suite.
add_executable(cuda-kernels-check ${CMAKE_CURRENT_LIST_DIR}/KernelsTest.cpp ${CMAKE_CURRENT_LIST_DIR}/ReduceTest.cpp
  ${CMAKE_CURRENT_LIST_DIR}/Device/Entries.cpp ${CMAKE_CURRENT_LIST_DIR}/Device/Convolutions.cpp
  ${CMAKE_CURRENT_LIST_DIR}/Device/Attention.cpp ${CMAKE_CURRENT_LIST_DIR}/Device/Gemms.cpp)
target_include_directories(cuda-kernels-check PRIVATE ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/src)
target_link_libraries(cuda-kernels-check PRIVATE par_cuda GTest::gtest GTest::gtest_main)
add_executable(cuda-kernels-speed ${CMAKE_CURRENT_LIST_DIR}/Device/Speed.cpp
               ${CMAKE_CURRENT_LIST_DIR}/Device/AttentionSpeed.cpp)
target_include_directories(cuda-kernels-speed PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/test ${CMAKE_CURRENT_SOURCE_DIR}/src)
target_link_libraries(cuda-kernels-speed PRIVATE par_cuda)
