// All entries in one file, so that one run of nvcc makes one image.
#include "CrossEntropy.cu"
#include "LayerNorm.cu"
#include "Optimizers.cu"
#include "Pool.cu"
#include "Reduce.cu"
#include "Rows.cu"
#include "Softmax.cu"
