// Members become dim 0, the parts go where they belong, and the numbers stay.
// RUN: par-opt %s --par-flatten-collectives | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-flatten-collectives' -o /dev/null

par.stage @s0 <"a"=2, "b"=3> ranks [0, 1, 2, 3, 4, 5]

// CHECK-LABEL: par.fragment @step.s0.gather
// CHECK: %[[A:.*]] = par.reshape %{{.*}} : tensor<2x4xf32> to tensor<1x2x4xf32>
// CHECK: %[[B:.*]] = par.all_gather %[[A]] dims [0] over ["b"] : (tensor<1x2x4xf32>) -> tensor<3x2x4xf32>
// CHECK: %[[C:.*]] = par.transpose %[[B]] [1, 0, 2] : tensor<3x2x4xf32> to tensor<2x3x4xf32>
// CHECK: par.reshape %[[C]] : tensor<2x3x4xf32> to tensor<2x12xf32>
// A collective along dim 0 stays.
// CHECK: par.all_gather %{{.*}} dims [0] over ["a"] : (tensor<2x12xf32>) -> tensor<4x12xf32>
// CHECK-LABEL: par.fragment @step.s0.scatter
// CHECK: par.reshape %{{.*}} : tensor<4x12xf32> to tensor<4x6x2xf32>
// CHECK: par.transpose %{{.*}} [1, 0, 2] : tensor<4x6x2xf32> to tensor<6x4x2xf32>
// CHECK: par.reduce_scatter  sum %{{.*}} dims [0] over ["b", "a"] : (tensor<6x4x2xf32>) -> tensor<1x4x2xf32>
// CHECK: par.reshape %{{.*}} : tensor<1x4x2xf32> to tensor<4x2xf32>
// CHECK-LABEL: par.fragment @step.s0.exchange
// CHECK: par.all_to_all %{{.*}} split [0] concat [0] over ["a"] : (tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
// CHECK: par.reshape %{{.*}} : tensor<2x4x1xf32> to tensor<8x1xf32>
par.fragment @step.s0.gather(%x: tensor<2x4xf32>) -> tensor<4x12xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.all_gather %x dims [1] over ["b"] : (tensor<2x4xf32>) -> tensor<2x12xf32>
  %1 = par.all_gather %0 dims [0] over ["a"] : (tensor<2x12xf32>) -> tensor<4x12xf32>
  par.return %1 : tensor<4x12xf32>
}
par.fragment @step.s0.scatter(%x: tensor<4x12xf32>) -> tensor<4x2xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.reduce_scatter sum %x dims [1] over ["b", "a"] : (tensor<4x12xf32>) -> tensor<4x2xf32>
  par.return %0 : tensor<4x2xf32>
}
par.fragment @step.s0.exchange(%x: tensor<4x2xf32>) -> tensor<8x1xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.all_to_all %x split [1] concat [0] over ["a"] : (tensor<4x2xf32>) -> tensor<8x1xf32>
  par.return %0 : tensor<8x1xf32>
}
par.step @step(%x: !par.dist<tensor<4x12xf32>, @s0, [{"a"}, {"b"}]>) -> !par.dist<tensor<8x6xf32>, @s0, [{}, {"b", "a"}]> attributes {inputs = ["x"], outputs = ["y"]} {
  %0 = par.run @step.s0.gather(%x) : (!par.dist<tensor<4x12xf32>, @s0, [{"a"}, {"b"}]>) -> !par.dist<tensor<4x12xf32>, @s0, [{}, {}]>
  %1 = par.run @step.s0.scatter(%0) : (!par.dist<tensor<4x12xf32>, @s0, [{}, {}]>) -> !par.dist<tensor<4x12xf32>, @s0, [{}, {"b", "a"}]>
  %2 = par.run @step.s0.exchange(%1) : (!par.dist<tensor<4x12xf32>, @s0, [{}, {"b", "a"}]>) -> !par.dist<tensor<8x6xf32>, @s0, [{}, {"b", "a"}]>
  par.return %2 : !par.dist<tensor<8x6xf32>, @s0, [{}, {"b", "a"}]>
}

// Past a dim of one element nothing is transposed.
// CHECK-LABEL: par.fragment @single
// CHECK-NOT: par.transpose
// CHECK: par.all_gather %{{.*}} dims [0] over ["b"] : (tensor<1x1x4xf32>) -> tensor<3x1x4xf32>
// CHECK-NOT: par.transpose
// CHECK: par.return
par.fragment @single(%x: tensor<1x4xf32>) -> tensor<1x12xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.all_gather %x dims [1] over ["b"] : (tensor<1x4xf32>) -> tensor<1x12xf32>
  par.return %0 : tensor<1x12xf32>
}
par.step @one(%x: !par.dist<tensor<1x12xf32>, @s0, [{}, {"b"}]>) -> !par.dist<tensor<1x12xf32>, @s0, [{}, {}]> attributes {inputs = ["x"], outputs = ["y"]} {
  %0 = par.run @single(%x) : (!par.dist<tensor<1x12xf32>, @s0, [{}, {"b"}]>) -> !par.dist<tensor<1x12xf32>, @s0, [{}, {}]>
  par.return %0 : !par.dist<tensor<1x12xf32>, @s0, [{}, {}]>
}
