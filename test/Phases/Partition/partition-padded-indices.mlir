// Indices in an uneven shard's padding must not address anything beyond the table: they become 0.
// RUN: par-opt %s --par-partition-fragments | FileCheck %s
par.stage @s0 <"tp"=2> ranks [0, 1]
// CHECK: par.fragment @f(%[[T:.*]]: tensor<4x2xf32>, %[[I:.*]]: tensor<2xi64>)
// CHECK: %[[REAL:.*]] = par.compare lt
// CHECK: %[[SAFE:.*]] = par.select %[[REAL]], %[[I]], %{{.*}} : tensor<2xi1>, tensor<2xi64>
// CHECK: par.gather %[[T]], %[[SAFE]] dim 0
par.fragment @f(%t: tensor<4x2xf32>, %i: tensor<3xi64>) -> tensor<3x2xf32>
    attributes {stage = @s0, kind = #par.fragment_kind<forward>,
                shardings = [#par.sharding<[{}, {}]>, #par.sharding<[{"tp"}]>],
                result_shardings = [#par.sharding<[{"tp"}, {}]>]} {
  %0 = par.gather %t, %i dim 0 {shardings = [#par.sharding<[{"tp"}, {}]>]} : tensor<4x2xf32>, tensor<3xi64> to tensor<3x2xf32>
  par.return %0 : tensor<3x2xf32>
}
