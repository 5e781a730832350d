// A change of layout is one collective over all axes that move alike, whichever dims and order they have, padded once.
// RUN: par-opt %s --par-partition-fragments --par-verify-partition | FileCheck %s
par.stage @s0 <"dp.0"=2, "dp.1"=2, "dp.2"=2> ranks [0, 1, 2, 3, 4, 5, 6, 7]

// Eight ranks are three axes of two: 50,257 rows are padded to 8 x 6283 and scattered at once.
// CHECK-LABEL: par.fragment @step.s0.reduce0
// CHECK: par.pad %{{.*}} : tensor<50257x3xf32> to tensor<50264x3xf32>
// CHECK-NEXT: par.reduce_scatter  sum %{{.*}} dims [0] over ["dp.0", "dp.1", "dp.2"] : (tensor<50264x3xf32>) -> tensor<6283x3xf32>
// CHECK-NEXT: par.return
// Two dims are gathered as one: blocks come in front, and each goes back to its dim.
// CHECK-LABEL: par.fragment @step.s0.reduce1
// CHECK: par.reshape %{{.*}} : tensor<4x3xf32> to tensor<1x4x3xf32>
// CHECK-NEXT: par.all_gather %{{.*}} dims [0] over ["dp.0", "dp.1", "dp.2"] : (tensor<1x4x3xf32>) -> tensor<8x4x3xf32>
// CHECK-NEXT: par.reshape %{{.*}} to tensor<2x2x2x4x3xf32>
// CHECK-NEXT: par.transpose %{{.*}} [0, 3, 1, 2, 4] : tensor<2x2x2x4x3xf32> to tensor<2x4x2x2x3xf32>
// CHECK-NEXT: par.reshape %{{.*}} to tensor<8x12xf32>
// CHECK-NEXT: par.return
// The group is in the mesh's order; blocks that are wanted in another are transposed.
// CHECK-LABEL: par.fragment @step.s0.reduce2
// CHECK: par.transpose %{{.*}} [1, 0, 2, 3] : tensor<2x2x2x12xf32> to tensor<2x2x2x12xf32>
// CHECK: par.reduce_scatter  sum %{{.*}} dims [0] over ["dp.0", "dp.1"] : (tensor<4x2x12xf32>) -> tensor<1x2x12xf32>
// CHECK: par.return
par.step @step(%x: !par.dist<tensor<50257x3xf32>, @s0, [{}, {}], unreduced={"dp.0", "dp.1", "dp.2"}>,
               %y: !par.dist<tensor<8x12xf32>, @s0, [{"dp.0"}, {"dp.1", "dp.2"}]>,
               %z: !par.dist<tensor<8x12xf32>, @s0, [{}, {}], unreduced={"dp.0", "dp.1"}>)
    -> (!par.dist<tensor<50257x3xf32>, @s0, [{"dp.0", "dp.1", "dp.2"}, {}]>, !par.dist<tensor<8x12xf32>, @s0, [{}, {}]>,
        !par.dist<tensor<8x12xf32>, @s0, [{"dp.1", "dp.0"}, {}]>)
    attributes {inputs = ["x", "y", "z"], outputs = ["a", "b", "c"]} {
  %a = par.reshard %x : !par.dist<tensor<50257x3xf32>, @s0, [{}, {}], unreduced={"dp.0", "dp.1", "dp.2"}> to !par.dist<tensor<50257x3xf32>, @s0, [{"dp.0", "dp.1", "dp.2"}, {}]>
  %b = par.reshard %y : !par.dist<tensor<8x12xf32>, @s0, [{"dp.0"}, {"dp.1", "dp.2"}]> to !par.dist<tensor<8x12xf32>, @s0, [{}, {}]>
  %c = par.reshard %z : !par.dist<tensor<8x12xf32>, @s0, [{}, {}], unreduced={"dp.0", "dp.1"}> to !par.dist<tensor<8x12xf32>, @s0, [{"dp.1", "dp.0"}, {}]>
  par.return %a, %b, %c : !par.dist<tensor<50257x3xf32>, @s0, [{"dp.0", "dp.1", "dp.2"}, {}]>, !par.dist<tensor<8x12xf32>, @s0, [{}, {}]>, !par.dist<tensor<8x12xf32>, @s0, [{"dp.1", "dp.0"}, {}]>
}
