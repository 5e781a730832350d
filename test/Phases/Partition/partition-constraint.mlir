// On shards a constraint has done its work: the value is resharded to it, and the op is gone.
// RUN: par-opt %s --par-partition-fragments --par-verify-partition | FileCheck %s
par.stage @s0 <"tp"=2> ranks [0, 1]
// CHECK: par.fragment @f(%[[X:.*]]: tensor<2x4xf32>)
// CHECK-NEXT: %[[Y:.*]] = par.all_to_all %[[X]] split [1] concat [0] over ["tp"]
// CHECK-NEXT: par.return %[[Y]] : tensor<4x2xf32>
par.fragment @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32>
    attributes {stage = @s0, kind = #par.fragment_kind<forward>,
                shardings = [#par.sharding<[{"tp"}, {}]>], result_shardings = [#par.sharding<[{}, {"tp"}]>]} {
  %0 = par.constrain %x <[{}, {"tp"}]> {shardings = [#par.sharding<[{}, {"tp"}]>]} : tensor<4x4xf32>
  par.return %0 : tensor<4x4xf32>
}
