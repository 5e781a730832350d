// Reductions that only leave the block follow their operand and get their own queue; others stay.
// RUN: par-opt %s --par-overlap-collectives | FileCheck %s

par.stage @s0 <"dp"=2> ranks [0, 1]
par.kernel @neg(%a: tensor<4xf32>) -> tensor<4xf32> attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.program @p on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<4xf32>
  par.buffer @a temp : tensor<4xf32>
  // CHECK-LABEL: par.block @last
  par.block @last {
    // CHECK: %[[G:.*]] = par.launch @neg
    // CHECK-NEXT: %[[R:.*]] = par.all_reduce  sum %[[G]] over ["dp"] {queue = "data"}
    // CHECK-NEXT: par.launch @neg
    // CHECK: par.all_reduce  sum %{{.*}} over ["dp"] :
    // CHECK: par.store %[[R]] to @a
    %w = par.load @w : tensor<4xf32>
    %g = par.launch @neg(%w) : (tensor<4xf32>) -> tensor<4xf32>
    %h = par.launch @neg(%g) : (tensor<4xf32>) -> tensor<4xf32>
    %rh = par.all_reduce sum %h over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    par.fetch %rh as "h" : tensor<4xf32>
    %rg = par.all_reduce sum %g over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    par.store %rg to @a : tensor<4xf32>
  }
  par.entry @train runs [@last] microbatches [0]
}
