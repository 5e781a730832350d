// A program that only predicts keeps channels last from convolution to convolution: the ops between them compute there,
// and a value that something else reads is a transpose. Training, and convolutions in f64 or of groups of several
// channels, keep channels first.
// RUN: par-opt %s --par-channels-last | FileCheck %s

par.stage @s0 <> ranks [0]
// CHECK-LABEL: par.program @served
par.program @served on @s0 ranks [0] {
  par.buffer @x temp : tensor<2x3x8x8xf32>
  par.buffer @w temp : tensor<16x3x3x3xf32>
  par.buffer @b temp : tensor<16xf32>
  par.buffer @d temp : tensor<16x1x1x1xf32>
  par.buffer @y temp : tensor<2x16x4x4xf32>
  par.buffer @sums temp : tensor<2x16xf32>
  // CHECK: %[[X:.*]] = par.load @x
  // CHECK: %[[LAST:.*]] = par.transpose %[[X]] [0, 2, 3, 1] : tensor<2x3x8x8xf32> to tensor<2x8x8x3xf32>
  // CHECK: %[[FIRST:.*]] = par.transpose %[[LAST]] [0, 3, 1, 2]
  // CHECK: %[[C:.*]] = par.convolution %[[FIRST]], {{.*}} -> tensor<2x16x8x8xf32>
  // CHECK: %[[CL:.*]] = par.transpose %[[C]] [0, 2, 3, 1] : tensor<2x16x8x8xf32> to tensor<2x8x8x16xf32>
  // CHECK: %[[B:.*]] = par.broadcast_in_dim %{{.*}} dims [3] : tensor<16xf32> to tensor<2x8x8x16xf32>
  // CHECK: %[[SUM:.*]] = par.add %[[CL]], %[[B]] : tensor<2x8x8x16xf32>
  // CHECK: %[[POOL:.*]] = par.max_pool %[[SUM]] window [2, 2, 1] strides [2, 2, 1] {{.*}} dilations [1, 1, 1]
  // CHECK: %[[IN:.*]] = par.transpose %[[POOL]] [0, 3, 1, 2]
  // CHECK: %[[D:.*]] = par.convolution %[[IN]], {{.*}} groups 16
  // CHECK: %[[DL:.*]] = par.transpose %[[D]] [0, 2, 3, 1]
  // CHECK: %[[OUT:.*]] = par.transpose %[[DL]] [0, 3, 1, 2]
  // CHECK: par.reduce sum %[[DL]] dims [1, 2] : tensor<2x4x4x16xf32> to tensor<2x16xf32>
  // CHECK: par.store %[[OUT]] to @y
  par.block @images {
    %x = par.load @x : tensor<2x3x8x8xf32>
    %w = par.load @w : tensor<16x3x3x3xf32>
    %b = par.load @b : tensor<16xf32>
    %d = par.load @d : tensor<16x1x1x1xf32>
    %c = par.convolution %x, %w strides [1, 1] low [1, 1] high [1, 1] dilations [1, 1]
        : (tensor<2x3x8x8xf32>, tensor<16x3x3x3xf32>) -> tensor<2x16x8x8xf32>
    %all = par.broadcast_in_dim %b dims [1] : tensor<16xf32> to tensor<2x16x8x8xf32>
    %sum = par.add %c, %all : tensor<2x16x8x8xf32>
    %pool = par.max_pool %sum window [2, 2] strides [2, 2] low [0, 0] high [0, 0] dilations [1, 1]
        : tensor<2x16x8x8xf32> to tensor<2x16x4x4xf32>
    %y = par.convolution %pool, %d strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1] groups 16
        : (tensor<2x16x4x4xf32>, tensor<16x1x1x1xf32>) -> tensor<2x16x4x4xf32>
    %sums = par.reduce sum %y dims [2, 3] : tensor<2x16x4x4xf32> to tensor<2x16xf32>
    par.store %y to @y : tensor<2x16x4x4xf32>
    par.store %sums to @sums : tensor<2x16xf32>
  }
  par.buffer @f temp : tensor<2x4x5x5xf64>
  par.buffer @v temp : tensor<4x4x1x1xf64>
  par.buffer @g temp : tensor<4x2x1x1xf32>
  par.buffer @h temp : tensor<2x4x5x5xf32>
  // CHECK-LABEL: par.block @others
  // CHECK-NOT: par.transpose
  par.block @others {
    %f = par.load @f : tensor<2x4x5x5xf64>
    %v = par.load @v : tensor<4x4x1x1xf64>
    %g = par.load @g : tensor<4x2x1x1xf32>
    %h = par.load @h : tensor<2x4x5x5xf32>
    %wide = par.convolution %f, %v strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
        : (tensor<2x4x5x5xf64>, tensor<4x4x1x1xf64>) -> tensor<2x4x5x5xf64>
    %grouped = par.convolution %h, %g strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1] groups 2
        : (tensor<2x4x5x5xf32>, tensor<4x2x1x1xf32>) -> tensor<2x4x5x5xf32>
    par.store %wide to @f : tensor<2x4x5x5xf64>
    par.store %grouped to @h : tensor<2x4x5x5xf32>
  }
  par.entry @predict runs [@images, @others] microbatches [0, 0]
}

// CHECK-LABEL: par.program @trained
// CHECK-NOT: par.transpose
par.program @trained on @s0 ranks [0] {
  par.buffer @x temp : tensor<2x3x8x8xf32>
  par.buffer @w temp : tensor<3x3x1x1xf32>
  par.block @images {
    %x = par.load @x : tensor<2x3x8x8xf32>
    %w = par.load @w : tensor<3x3x1x1xf32>
    %y = par.convolution %x, %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
        : (tensor<2x3x8x8xf32>, tensor<3x3x1x1xf32>) -> tensor<2x3x8x8xf32>
    par.store %y to @x : tensor<2x3x8x8xf32>
  }
  par.entry @train runs [@images] microbatches [0]
}
