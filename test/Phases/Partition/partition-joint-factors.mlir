// The sharding of an op minimises the bytes sent for all of its operands and results.
// RUN: par-opt %s --par-partition-fragments --par-verify-partition | FileCheck %s
par.stage @s0 <"dp"=2> ranks [0, 1]

// The result's booleans are gathered, not the operand's floats.
// CHECK-LABEL: par.fragment @bytes
// CHECK-NOT: par.all_gather
// CHECK: par.compare {{.*}} : tensor<131072xf32>
// CHECK-NEXT: par.all_gather %{{.*}} dims [0] over ["dp"] : (tensor<131072xi1>) -> tensor<262144xi1>
// CHECK-NEXT: par.return
par.fragment @bytes(%a: tensor<262144xf32>, %b: tensor<262144xf32>) -> tensor<262144xi1> attributes {
    stage = @s0, kind = #par.fragment_kind<forward>,
    shardings = [#par.sharding<[{"dp"}]>, #par.sharding<[{}]>], result_shardings = [#par.sharding<[{}]>]} {
  %r = par.compare lt %a, %b {shardings = [#par.sharding<[{}]>]} : tensor<262144xf32>
  par.return %r : tensor<262144xi1>
}
