// An op that does not say how it may be cut is refused.
// RUN: par-opt %s --par-partition-fragments --verify-diagnostics

par.stage @s0 <"dp"=2> ranks [0, 1]
par.fragment @f(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {stage = @s0, kind = #par.fragment_kind<forward>, shardings = [#par.sharding<[{"dp"}]>], result_shardings = [#par.sharding<[{"dp"}]>]} {
  // expected-error @below {{has no sharding rule, so it cannot be cut}}
  %0 = arith.negf %x {shardings = [#par.sharding<[{"dp"}]>]} : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
