// Windows of one element that skip some: a slice of the elements they read goes before a convolution with stride 1, and
// is put back after the gradient of its input. Larger windows keep their strides, even if one dim of them is 1.
// RUN: par-opt %s --par-separate-strides | FileCheck %s

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @x temp : tensor<2x3x8x8xf32>
  par.buffer @w temp : tensor<4x3x1x1xf32>
  par.buffer @y temp : tensor<2x4x4x4xf32>
  // CHECK-LABEL: par.block @skipping
  // CHECK: %[[P:.*]] = par.patches %{{.*}} window [1, 1] strides [2, 2] low [0, 0] high [0, 0] dilations [1, 1] value 0.000000e+00 : f32 : tensor<2x3x8x8xf32> to tensor<2x3x4x4x1x1xf32>
  // CHECK: %[[SEEN:.*]] = par.reshape %[[P]] : tensor<2x3x4x4x1x1xf32> to tensor<2x3x4x4xf32>
  // CHECK: par.convolution %[[SEEN]], %{{.*}} strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1] : (tensor<2x3x4x4xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x4x4xf32>
  // CHECK: %[[DX:.*]] = par.convolution_input_grad %{{.*}} strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1] : (tensor<2x4x4x4xf32>, tensor<4x3x1x1xf32>) -> tensor<2x3x4x4xf32>
  // CHECK: %[[APART:.*]] = par.reshape %[[DX]]
  // CHECK: par.fold_patches %[[APART]] strides [2, 2] low [0, 0] high [0, 0] dilations [1, 1] : tensor<2x3x4x4x1x1xf32> to tensor<2x3x8x8xf32>
  // CHECK: par.convolution_filter_grad %{{.*}} strides [1, 1] {{.*}} : (tensor<2x3x4x4xf32>, tensor<2x4x4x4xf32>) -> tensor<4x3x1x1xf32>
  par.block @skipping {
    %x = par.load @x : tensor<2x3x8x8xf32>
    %w = par.load @w : tensor<4x3x1x1xf32>
    %y = par.convolution %x, %w strides [2, 2] low [0, 0] high [0, 0] dilations [1, 1]
        : (tensor<2x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x4x4xf32>
    %dx = par.convolution_input_grad %y, %w strides [2, 2] low [0, 0] high [0, 0] dilations [1, 1]
        : (tensor<2x4x4x4xf32>, tensor<4x3x1x1xf32>) -> tensor<2x3x8x8xf32>
    %dw = par.convolution_filter_grad %x, %y strides [2, 2] low [0, 0] high [0, 0] dilations [1, 1]
        : (tensor<2x3x8x8xf32>, tensor<2x4x4x4xf32>) -> tensor<4x3x1x1xf32>
    par.store %y to @y : tensor<2x4x4x4xf32>
    par.store %dx to @x : tensor<2x3x8x8xf32>
    par.store %dw to @w : tensor<4x3x1x1xf32>
  }
  par.buffer @v temp : tensor<4x3x1x3xf32>
  par.buffer @z temp : tensor<2x4x4x3xf32>
  // CHECK-LABEL: par.block @wider
  // CHECK-NOT: par.patches
  // CHECK: par.convolution %{{.*}}, %{{.*}} strides [2, 2]
  par.block @wider {
    %x = par.load @x : tensor<2x3x8x8xf32>
    %v = par.load @v : tensor<4x3x1x3xf32>
    %z = par.convolution %x, %v strides [2, 2] low [0, 0] high [0, 0] dilations [1, 1]
        : (tensor<2x3x8x8xf32>, tensor<4x3x1x3xf32>) -> tensor<2x4x4x3xf32>
    par.store %z to @z : tensor<2x4x4x3xf32>
  }
}
