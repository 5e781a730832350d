// The end of an asynchronous collective: printed and parsed, and its verifier's errors.
// RUN: par-opt %s --split-input-file --verify-diagnostics | FileCheck %s

par.stage @s0 <"dp"=2> ranks [0, 1]
par.program @p on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<4xf32>
  par.block @b {
    %w = par.load @w : tensor<4xf32>
    // CHECK: %[[G:.*]] = par.all_gather
    // CHECK-NEXT: par.done %[[G]] of %{{.*}} : (tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
    %g = par.all_gather %w dims [0] over ["dp"] {queue = "all_gather"} : (tensor<4xf32>) -> tensor<8xf32>
    %d = par.done %g of %w : (tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
    par.fetch %d as "d" : tensor<8xf32>
    // CHECK: par.done %{{.*}} : (tensor<4xf32>) -> tensor<4xf32>
    %r = par.all_reduce sum %w over ["dp"] {queue = "all_reduce"} : (tensor<4xf32>) -> tensor<4xf32>
    %e = par.done %r : (tensor<4xf32>) -> tensor<4xf32>
    par.fetch %e as "e" : tensor<4xf32>
  }
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.program @p on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<4xf32>
  par.block @b {
    %w = par.load @w : tensor<4xf32>
    %g = par.all_gather %w dims [0] over ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
    // expected-error @below {{(done_c1) does not have all results of one collective with a queue}}
    %d = par.done %g of %w : (tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
  }
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.program @p on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<4xf32>
  par.block @b {
    %w = par.load @w : tensor<4xf32>
    %g = par.all_gather %w dims [0] over ["dp"] {queue = "all_gather"} : (tensor<4xf32>) -> tensor<8xf32>
    // expected-error @below {{(done_c1) has 1 results for 1 values, expected some, of their types}}
    %d = par.done %g of %w : (tensor<8xf32>, tensor<4xf32>) -> tensor<4xf32>
  }
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.program @p on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<4xf32>
  par.buffer @v state of "v" : tensor<4xf32>
  par.block @b {
    %w = par.load @w : tensor<4xf32>
    %v = par.load @v : tensor<4xf32>
    %g = par.all_gather %w dims [0] over ["dp"] {queue = "all_gather"} : (tensor<4xf32>) -> tensor<8xf32>
    // expected-error @below {{(done_c1) keeps 'tensor<4xf32>', which is no operand of its collective}}
    %d = par.done %g of %v : (tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
  }
}
