// RUN: par-opt %s --par-pads-to-concat | FileCheck %s

// Parts that follow each other without gaps are joined, in whatever order they were added up.
// CHECK-LABEL: par.block @all
// CHECK: %[[A:.*]] = par.load @a
// CHECK: %[[B:.*]] = par.load @b
// CHECK-NEXT: %[[C:.*]] = par.concat %[[B]], %[[A]], %[[B]] dim 1 : (tensor<2x1xf32>, tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: par.store %[[C]]
// Parts that overlap, leave a gap, or are padded by another number, are added up.
// CHECK: par.block @others
// CHECK-COUNT-3: par.add
par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @a temp : tensor<2x2xf32>
  par.buffer @b temp : tensor<2x1xf32>
  par.buffer @x temp : tensor<2x4xf32>
  par.buffer @y temp : tensor<2x3xf32>
  par.buffer @z temp : tensor<2x3xf32>
  par.block @all {
    %a = par.load @a : tensor<2x2xf32>
    %b = par.load @b : tensor<2x1xf32>
    %0 = par.pad %a low [0, 1] high [0, 1] value 0.0 : f32 : tensor<2x2xf32> to tensor<2x4xf32>
    %1 = par.pad %b low [0, 3] high [0, 0] value 0.0 : f32 : tensor<2x1xf32> to tensor<2x4xf32>
    %2 = par.add %0, %1 : tensor<2x4xf32>
    %3 = par.pad %b low [0, 0] high [0, 3] value 0.0 : f32 : tensor<2x1xf32> to tensor<2x4xf32>
    %4 = par.add %2, %3 : tensor<2x4xf32>
    par.store %4 to @x : tensor<2x4xf32>
  }
  par.block @others {
    %a = par.load @a : tensor<2x2xf32>
    %b = par.load @b : tensor<2x1xf32>
    %0 = par.pad %a low [0, 0] high [0, 2] value 0.0 : f32 : tensor<2x2xf32> to tensor<2x4xf32>
    %1 = par.pad %b low [0, 3] high [0, 0] value 0.0 : f32 : tensor<2x1xf32> to tensor<2x4xf32>
    %2 = par.add %0, %1 : tensor<2x4xf32>
    par.store %2 to @x : tensor<2x4xf32>
    %3 = par.pad %a low [0, 0] high [0, 1] value 0.0 : f32 : tensor<2x2xf32> to tensor<2x3xf32>
    %4 = par.pad %b low [0, 1] high [0, 1] value 0.0 : f32 : tensor<2x1xf32> to tensor<2x3xf32>
    %5 = par.add %3, %4 : tensor<2x3xf32>
    par.store %5 to @y : tensor<2x3xf32>
    %6 = par.pad %a low [0, 0] high [0, 1] value 1.0 : f32 : tensor<2x2xf32> to tensor<2x3xf32>
    %7 = par.pad %b low [0, 2] high [0, 0] value 0.0 : f32 : tensor<2x1xf32> to tensor<2x3xf32>
    %8 = par.add %6, %7 : tensor<2x3xf32>
    par.store %8 to @z : tensor<2x3xf32>
  }
}
