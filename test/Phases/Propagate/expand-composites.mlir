// With the classes over "tp" the loss is taken apart into reductions that may be cut; over "dp" it stays.
// RUN: par-opt %s --par-expand-composites --split-input-file --verify-diagnostics | FileCheck %s

par.stage @s0 <"dp"=2, "tp"=2> ranks [0, 1, 2, 3]
// CHECK-LABEL: par.fragment @cut
// CHECK-NOT: par.cross_entropy
// CHECK: par.reduce  max
// CHECK: par.exp
// CHECK: par.take
par.fragment @cut(%z: tensor<4x8xf32>, %y: tensor<4xi64>) -> tensor<4xf32>
    attributes {stage = @s0, kind = #par.fragment_kind<forward>,
                shardings = [#par.sharding<[{"dp"}, {"tp"}]>, #par.sharding<[{"dp"}]>]} {
  %t, %l = par.cross_entropy %z, %y ignore -100 {shardings = [#par.sharding<[{"dp"}]>, #par.sharding<[{"dp"}]>]}
    : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  par.return %t : tensor<4xf32>
}
// CHECK-LABEL: par.fragment @whole
// CHECK: par.cross_entropy
par.fragment @whole(%z: tensor<4x8xf32>, %y: tensor<4xi64>) -> tensor<4xf32>
    attributes {stage = @s0, kind = #par.fragment_kind<forward>,
                shardings = [#par.sharding<[{"dp"}, {}]>, #par.sharding<[{"dp"}]>]} {
  %t, %l = par.cross_entropy %z, %y ignore -100 {shardings = [#par.sharding<[{"dp"}]>, #par.sharding<[{"dp"}]>]}
    : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  par.return %t : tensor<4xf32>
}
