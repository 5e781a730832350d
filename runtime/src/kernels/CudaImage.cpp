// The compiled CUDA kernels, as bytes of the runtime: nvcc's output for cuda/Builtins.cu, if nvcc was available.
#include "par/kernels/CudaBuiltins.h"

#ifdef PAR_CUDA_IMAGE
asm(".section .rodata, \"a\"\n"
    ".balign 64\n"
    ".hidden par_cuda_image\n.global par_cuda_image\n"
    ".hidden par_cuda_image_end\n.global par_cuda_image_end\n"
    "par_cuda_image: .incbin \"" PAR_CUDA_IMAGE "\"\n"
    "par_cuda_image_end:\n"
    ".previous\n");
extern "C" const std::byte par_cuda_image[], par_cuda_image_end[];

std::span<const std::byte> par::kernels::cudaImage() { return {par_cuda_image, par_cuda_image_end}; }
#else
std::span<const std::byte> par::kernels::cudaImage() { return {}; }
#endif
