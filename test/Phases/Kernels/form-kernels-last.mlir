// A convolution between transposes to channels last is one call with the ops after it: a factor and a summand for each
// channel, a tensor that is added, bounds. The result takes the place of that tensor, unless the call reads it as its
// input, too. Values with other readers, and ops in another order, end it.
// RUN: par-opt %s --par-form-kernels | FileCheck %s

par.stage @s0 <> ranks [0]
// CHECK: par.kernel @convolution.0({{.*}}builtin:convolution_last_add", tied = array<i64: 4>
// CHECK: par.multiply
// CHECK: par.add
// CHECK: par.add
// CHECK: par.select
// CHECK: par.select
// CHECK: par.return
// CHECK: par.kernel @convolution.1({{.*}}builtin:convolution_last"}
// CHECK-NOT: par.select
// CHECK: par.return
// CHECK: par.kernel @select.0({{.*}}generated
// CHECK: par.kernel @convolution.2({{.*}}builtin:convolution_last"}
// CHECK: par.add
// CHECK: par.return
par.program @p on @s0 ranks [0] {
  par.buffer @x temp : tensor<2x8x8x3xf32>
  par.buffer @w temp : tensor<4x3x1x1xf32>
  par.buffer @s temp : tensor<4xf32>
  par.buffer @b temp : tensor<4xf32>
  par.buffer @r temp : tensor<2x8x8x4xf32>
  par.buffer @z temp : tensor<2x8x8x4xf32>
  par.buffer @v temp : tensor<4x4x1x1xf32>
  // CHECK-LABEL: par.block @whole
  // CHECK: %[[Y:.*]] = par.launch @convolution.0(
  // CHECK-NEXT: par.store %[[Y]] to @z
  par.block @whole {
    %x = par.load @x : tensor<2x8x8x3xf32>
    %w = par.load @w : tensor<4x3x1x1xf32>
    %s = par.load @s : tensor<4xf32>
    %b = par.load @b : tensor<4xf32>
    %r = par.load @r : tensor<2x8x8x4xf32>
    %first = par.transpose %x [0, 3, 1, 2] : tensor<2x8x8x3xf32> to tensor<2x3x8x8xf32>
    %c = par.convolution %first, %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
        : (tensor<2x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x8x8xf32>
    %last = par.transpose %c [0, 2, 3, 1] : tensor<2x4x8x8xf32> to tensor<2x8x8x4xf32>
    %ss = par.broadcast_in_dim %s dims [3] : tensor<4xf32> to tensor<2x8x8x4xf32>
    %scaled = par.multiply %last, %ss : tensor<2x8x8x4xf32>
    %bb = par.broadcast_in_dim %b dims [3] : tensor<4xf32> to tensor<2x8x8x4xf32>
    %biased = par.add %scaled, %bb : tensor<2x8x8x4xf32>
    %sum = par.add %biased, %r : tensor<2x8x8x4xf32>
    %zero = par.constant dense<0.0> : tensor<2x8x8x4xf32>
    %below = par.compare lt %sum, %zero : tensor<2x8x8x4xf32>
    %relu = par.select %below, %zero, %sum : tensor<2x8x8x4xi1>, tensor<2x8x8x4xf32>
    %six = par.constant dense<6.0> : tensor<2x8x8x4xf32>
    %above = par.compare gt %relu, %six : tensor<2x8x8x4xf32>
    %clip = par.select %above, %six, %relu : tensor<2x8x8x4xi1>, tensor<2x8x8x4xf32>
    par.store %clip to @z : tensor<2x8x8x4xf32>
  }
  // A bound that another value replaces is none.
  // CHECK-LABEL: par.block @partly
  // CHECK: par.launch @convolution.1(
  // CHECK-NEXT: par.launch @select.0(
  par.block @partly {
    %x = par.load @x : tensor<2x8x8x3xf32>
    %w = par.load @w : tensor<4x3x1x1xf32>
    %first = par.transpose %x [0, 3, 1, 2] : tensor<2x8x8x3xf32> to tensor<2x3x8x8xf32>
    %c = par.convolution %first, %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
        : (tensor<2x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x8x8xf32>
    %last = par.transpose %c [0, 2, 3, 1] : tensor<2x4x8x8xf32> to tensor<2x8x8x4xf32>
    %zero = par.constant dense<0.0> : tensor<2x8x8x4xf32>
    %one = par.constant dense<1.0> : tensor<2x8x8x4xf32>
    %below = par.compare lt %last, %zero : tensor<2x8x8x4xf32>
    %other = par.select %below, %one, %last : tensor<2x8x8x4xi1>, tensor<2x8x8x4xf32>
    par.store %other to @z : tensor<2x8x8x4xf32>
  }
  // CHECK-LABEL: par.block @twice
  // CHECK: par.launch @convolution.2(
  par.block @twice {
    %x = par.load @r : tensor<2x8x8x4xf32>
    %w = par.load @v : tensor<4x4x1x1xf32>
    %first = par.transpose %x [0, 3, 1, 2] : tensor<2x8x8x4xf32> to tensor<2x4x8x8xf32>
    %c = par.convolution %first, %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
        : (tensor<2x4x8x8xf32>, tensor<4x4x1x1xf32>) -> tensor<2x4x8x8xf32>
    %last = par.transpose %c [0, 2, 3, 1] : tensor<2x4x8x8xf32> to tensor<2x8x8x4xf32>
    %sum = par.add %last, %x : tensor<2x8x8x4xf32>
    par.store %sum to @z : tensor<2x8x8x4xf32>
  }
}
