# The .cu files as ordinary C++ against the emulation, and the CPU's reductions to compare with.
target_include_directories(runtime-CudaKernels-tests PRIVATE ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/src)
target_compile_options(runtime-CudaKernels-tests PRIVATE -Wall -Wno-unknown-pragmas)
