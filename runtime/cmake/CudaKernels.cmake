# The CUDA kernels of src/kernels/cuda: nvcc compiles them once to builtins.fatbin (cubins and PTX), which
# becomes part of par_kernels. Without nvcc nothing is built and the runtime has no CUDA kernels; everything
# else is the same.
#   PAR_CUDA_KERNELS   on where nvcc is found and works
#   PAR_CUDA_ARCHS     the chips: of 80, 90 and 100 those that nvcc knows; PTX of the first serves all others
#   PAR_CUDA_SPILLS    let kernels spill registers, where an nvcc other than 13.0 makes them
# Target print-cuda-kernel-table prints registers, shared memory, occupancy and bytes of each kernel and chip.
find_program(PAR_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
# A host compiler that nvcc takes: it only preprocesses, and may be older than what builds the rest.
find_program(PAR_NVCC_HOST NAMES g++ clang++)

if(PAR_NVCC AND NOT DEFINED PAR_NVCC_WORKS)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/nvcc)
  file(WRITE ${folder}/try.cu "#include <span>\nextern \"C\" __global__ void entry() {}\n")
  execute_process(
    COMMAND ${PAR_NVCC} -std=c++20 -ccbin ${PAR_NVCC_HOST} -arch=sm_80 -cubin -o try.cubin try.cu
    WORKING_DIRECTORY ${folder} RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(failed)
    message(STATUS "nvcc does not work; no CUDA kernels: ${said}")
    set(works OFF)
  else()
    set(works ON)
  endif()
  set(PAR_NVCC_WORKS ${works} CACHE INTERNAL "nvcc compiles a small kernel")
endif()
option(PAR_CUDA_KERNELS "compile the CUDA builtin kernels with nvcc" ${PAR_NVCC_WORKS})
option(PAR_CUDA_SPILLS "build the CUDA kernels even if some spill registers" OFF)
if(NOT PAR_CUDA_KERNELS)
  return()
endif()
if(NOT PAR_NVCC_WORKS)
  message(FATAL_ERROR "PAR_CUDA_KERNELS needs an nvcc that works")
endif()

execute_process(COMMAND ${PAR_NVCC} --list-gpu-code OUTPUT_VARIABLE known)
foreach(arch 80 90 100)
  if("${known}" MATCHES "sm_${arch}\n")
    list(APPEND archs ${arch})
  endif()
endforeach()
set(PAR_CUDA_ARCHS "${archs}" CACHE STRING "compute capabilities of the CUDA kernels")

set(source ${CMAKE_CURRENT_SOURCE_DIR}/src/kernels/cuda)
file(GLOB sources CONFIGURE_DEPENDS ${source}/*)
set(image ${CMAKE_CURRENT_BINARY_DIR}/nvcc/builtins.fatbin)
set(log ${CMAKE_CURRENT_BINARY_DIR}/nvcc/builtins.ptxas.txt)
add_custom_command(OUTPUT ${image} ${log}
  COMMAND ${CMAKE_COMMAND} -D NVCC=${PAR_NVCC} -D HOST=${PAR_NVCC_HOST} "-D ARCHS=${PAR_CUDA_ARCHS}"
          -D IMAGE=${image} -D LOG=${log} -D SOURCE=${source}/Builtins.cu
          -D INCLUDE=${CMAKE_CURRENT_SOURCE_DIR}/include -D SPILLS=${PAR_CUDA_SPILLS}
          -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/CompileCudaKernels.cmake
  DEPENDS ${sources} ${CMAKE_CURRENT_SOURCE_DIR}/include/par/kernels/CudaBuiltins.h
          ${CMAKE_CURRENT_SOURCE_DIR}/cmake/CompileCudaKernels.cmake
  COMMENT "Compiling the CUDA kernels for sm_${PAR_CUDA_ARCHS}" VERBATIM)
set_source_files_properties(src/kernels/CudaImage.cpp PROPERTIES
  COMPILE_DEFINITIONS PAR_CUDA_IMAGE="${image}" OBJECT_DEPENDS ${image})

function(par_cuda_kernel_table)
  add_executable(cuda-kernel-table ${CMAKE_CURRENT_SOURCE_DIR}/test/tools/cuda-kernel-table.cpp)
  target_include_directories(cuda-kernel-table PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/test)
  target_link_libraries(cuda-kernel-table PRIVATE par_kernels)
  set_target_properties(cuda-kernel-table PROPERTIES EXCLUDE_FROM_ALL ON)
  add_custom_target(print-cuda-kernel-table
    COMMAND cuda-kernel-table ${CMAKE_CURRENT_BINARY_DIR}/nvcc/builtins.ptxas.txt USES_TERMINAL VERBATIM)
endfunction()
