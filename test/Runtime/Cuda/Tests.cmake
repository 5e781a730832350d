# Stub driver libraries, opened by path where the real ones would be opened by name. Tests talk to the first one's
# Machine.
set(stubs ${CMAKE_CURRENT_LIST_DIR}/Stub)
add_library(cuda-stub SHARED ${stubs}/Driver.cpp ${stubs}/Generated.cpp ${stubs}/Kernels.cpp ${stubs}/Machine.cpp)
target_link_libraries(cuda-stub PRIVATE par_format par_kernels ${CMAKE_DL_LIBS})
target_include_directories(cuda-stub PUBLIC ${stubs})
set(stub_paths PAR_STUB_CUDA="$<TARGET_FILE:cuda-stub>")
foreach(name Nccl CublasLt Cudnn)
  if(EXISTS ${stubs}/${name}.cpp)
    string(TOLOWER ${name} lower)
    file(GLOB sources CONFIGURE_DEPENDS ${stubs}/${name}*.cpp)
    add_library(${lower}-stub SHARED ${sources})
    target_link_libraries(${lower}-stub PRIVATE cuda-stub par_cpu)
    string(TOUPPER ${name} upper)
    list(APPEND stub_paths PAR_STUB_${upper}="$<TARGET_FILE:${lower}-stub>")
    add_dependencies(runtime-Cuda-tests ${lower}-stub)
  endif()
endforeach()
target_link_libraries(runtime-Cuda-tests PRIVATE cuda-stub)
target_include_directories(runtime-Cuda-tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
target_compile_definitions(runtime-Cuda-tests PRIVATE ${stub_paths} PAR_TEST_CUDA="${CMAKE_CURRENT_LIST_DIR}")
# DnnLibraryTest.cpp asks cuDNN itself where it is.
find_library(PAR_CUDNN NAMES libcudnn.so.9 HINTS /usr/local/cuda/lib ENV CUDA_PATH PATH_SUFFIXES lib64 lib)
mark_as_advanced(PAR_CUDNN)
target_compile_definitions(runtime-Cuda-tests PRIVATE
  PAR_TEST_CUDNN="$<IF:$<BOOL:${PAR_CUDNN}>,${PAR_CUDNN},libcudnn.so.9>")
# The driver's library as the toolkit has it to link with: enough for cuDNN to look for engines.
find_library(PAR_CUDA_DRIVER NAMES cuda
  HINTS /usr/local/cuda/lib64/stubs ENV CUDA_PATH PATH_SUFFIXES lib64/stubs lib/stubs)
mark_as_advanced(PAR_CUDA_DRIVER)
target_compile_definitions(runtime-Cuda-tests PRIVATE
  PAR_TEST_DRIVER="$<IF:$<BOOL:${PAR_CUDA_DRIVER}>,${PAR_CUDA_DRIVER},libcuda.so>")
# HeadersTest.cpp looks at NVIDIA's headers where they are.
find_path(PAR_CUDA_HEADERS cublasLt.h HINTS /usr/local/cuda/include ENV CUDA_PATH PATH_SUFFIXES include)
mark_as_advanced(PAR_CUDA_HEADERS)
if(PAR_CUDA_HEADERS)
  target_include_directories(runtime-Cuda-tests SYSTEM PRIVATE ${PAR_CUDA_HEADERS})
endif()
