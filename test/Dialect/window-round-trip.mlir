// The ops of windows print as they are written.
// RUN: par-opt %s | par-opt | FileCheck %s

par.step @eval(%x: tensor<2x4x8x8xf32>, %w: tensor<6x2x3x3xf32>, %ct: tensor<2x6x4x4xf32>) {
  // CHECK: par.convolution %{{.*}}, %{{.*}} strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1] groups 2 : (tensor<2x4x8x8xf32>, tensor<6x2x3x3xf32>) -> tensor<2x6x4x4xf32>
  %0 = par.convolution %x, %w strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1] groups 2
    : (tensor<2x4x8x8xf32>, tensor<6x2x3x3xf32>) -> tensor<2x6x4x4xf32>
  // CHECK: par.convolution_input_grad %{{.*}}, %{{.*}} strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1] groups 2
  %1 = par.convolution_input_grad %ct, %w strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1] groups 2
    : (tensor<2x6x4x4xf32>, tensor<6x2x3x3xf32>) -> tensor<2x4x8x8xf32>
  // CHECK: par.convolution_filter_grad %{{.*}}, %{{.*}} strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1] groups 2
  %2 = par.convolution_filter_grad %x, %ct strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1] groups 2
    : (tensor<2x4x8x8xf32>, tensor<2x6x4x4xf32>) -> tensor<6x2x3x3xf32>
  // CHECK: par.patches %{{.*}} window [3, 2] strides [2, 2] low [1, 0] high [1, 0] dilations [1, 1] value 0.000000e+00 : f32 : tensor<2x4x8x8xf32> to tensor<2x4x4x4x3x2xf32>
  %3 = par.patches %x window [3, 2] strides [2, 2] low [1, 0] high [1, 0] dilations [1, 1] value 0.0 : f32
    : tensor<2x4x8x8xf32> to tensor<2x4x4x4x3x2xf32>
  // CHECK: par.fold_patches %{{.*}} strides [2, 2] low [1, 0] high [1, 0] dilations [1, 1] : tensor<2x4x4x4x3x2xf32> to tensor<2x4x8x8xf32>
  %4 = par.fold_patches %3 strides [2, 2] low [1, 0] high [1, 0] dilations [1, 1]
    : tensor<2x4x4x4x3x2xf32> to tensor<2x4x8x8xf32>
  // CHECK: par.max_pool %{{.*}} window [2, 2] strides [2, 2] low [0, 0] high [0, 0] dilations [1, 1] : tensor<2x4x8x8xf32> to tensor<2x4x4x4xf32>
  %5 = par.max_pool %x window [2, 2] strides [2, 2] low [0, 0] high [0, 0] dilations [1, 1]
    : tensor<2x4x8x8xf32> to tensor<2x4x4x4xf32>
  // CHECK: par.max_pool_grad %{{.*}}, %{{.*}}, %{{.*}} window [2, 2] strides [2, 2] low [0, 0] high [0, 0] dilations [1, 1] : tensor<2x4x4x4xf32>, tensor<2x4x8x8xf32>
  %6 = par.max_pool_grad %5, %x, %5 window [2, 2] strides [2, 2] low [0, 0] high [0, 0] dilations [1, 1]
    : tensor<2x4x4x4xf32>, tensor<2x4x8x8xf32>
  par.return
}
