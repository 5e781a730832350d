// A float64 convolution is a matmul of its filter and of its windows side by side; one with a library call stays.
// ConvolutionsTest shows that the matmuls give the same.
// RUN: par-opt %s --par-expand-convolutions | FileCheck %s
// RUN: par-opt %s --par-expand-convolutions --par-form-kernels | FileCheck %s --check-prefix=KERNELS

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @x temp : tensor<2x6x8x8xf64>
  par.buffer @w temp : tensor<4x3x3x3xf64>
  par.buffer @y temp : tensor<2x4x4x4xf64>
  // CHECK-LABEL: par.block @double
  // CHECK-NOT: par.convolution
  // CHECK: par.patches %{{.*}} window [3, 3] strides [2, 2] low [1, 1] high [1, 1] {{.*}} to tensor<2x6x4x4x3x3xf64>
  // CHECK: %[[Y:.*]] = par.dot %{{.*}}, %{{.*}} contracting [3] x [2] batching [0, 1] x [0, 1] : (tensor<2x2x2x27xf64>, tensor<2x2x27x16xf64>) -> tensor<2x2x2x16xf64>
  // CHECK: par.dot %{{.*}}, %{{.*}} contracting [2] x [2] batching [0, 1] x [0, 1] : (tensor<2x2x2x27xf64>, tensor<2x2x2x16xf64>) -> tensor<2x2x27x16xf64>
  // CHECK: par.fold_patches %{{.*}} : tensor<2x6x4x4x3x3xf64> to tensor<2x6x8x8xf64>
  // CHECK: par.dot %{{.*}}, %{{.*}} contracting [0, 3] x [0, 2] batching [1] x [1] : (tensor<2x2x2x16xf64>, tensor<2x2x16x27xf64>) -> tensor<2x2x27xf64>
  // Windows are laid side by side once, before the matmul reads them many times.
  // KERNELS-DAG: par.kernel @transpose.{{[0-9]}}(%{{.*}}: tensor<2x6x8x8xf64>) -> tensor<2x2x3x9x16xf64>
  // KERNELS-DAG: par.kernel @dot.{{[0-9]}}(%{{.*}}: tensor<4x3x3x3xf64>, %{{.*}}: tensor<2x2x3x9x16xf64>) -> tensor<2x2x2x16xf64>
  par.block @double {
    %x = par.load @x : tensor<2x6x8x8xf64>
    %w = par.load @w : tensor<4x3x3x3xf64>
    %y = par.convolution %x, %w strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1] groups 2
        : (tensor<2x6x8x8xf64>, tensor<4x3x3x3xf64>) -> tensor<2x4x4x4xf64>
    %dx = par.convolution_input_grad %y, %w strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1] groups 2
        : (tensor<2x4x4x4xf64>, tensor<4x3x3x3xf64>) -> tensor<2x6x8x8xf64>
    %dw = par.convolution_filter_grad %x, %y strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1] groups 2
        : (tensor<2x6x8x8xf64>, tensor<2x4x4x4xf64>) -> tensor<4x3x3x3xf64>
    par.store %y to @y : tensor<2x4x4x4xf64>
    par.store %dx to @x : tensor<2x6x8x8xf64>
    par.store %dw to @w : tensor<4x3x3x3xf64>
  }
  par.buffer @a temp : tensor<1x3x8xf32>
  par.buffer @b temp : tensor<4x3x3xf32>
  par.buffer @c temp : tensor<1x4x6xf32>
  // CHECK-LABEL: par.block @single
  // CHECK: par.convolution
  par.block @single {
    %a = par.load @a : tensor<1x3x8xf32>
    %b = par.load @b : tensor<4x3x3xf32>
    %c = par.convolution %a, %b strides [1] low [0] high [0] dilations [1]
        : (tensor<1x3x8xf32>, tensor<4x3x3xf32>) -> tensor<1x4x6xf32>
    par.store %c to @c : tensor<1x4x6xf32>
  }
}
