// Sends and receives of parts between stages of different meshes: printed and parsed, and their verifiers' errors.
// RUN: par-opt %s --split-input-file --verify-diagnostics | FileCheck %s

par.stage @s0 <"dp"=2> ranks [0, 1]
par.program @p on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<4xf32>
  par.block @b {
    %w = par.load @w : tensor<4xf32>
    // CHECK: par.send_parts %[[W:.*]], %[[W]] to [1, 2] groups [array<i64: 0, 2, 3>, array<i64: 1, 4, 5>] tag 7 : tensor<4xf32>, tensor<4xf32>
    par.send_parts %w, %w to [1, 2] groups [array<i64: 0, 2, 3>, array<i64: 1, 4, 5>] tag 7 : tensor<4xf32>, tensor<4xf32>
    // CHECK: %{{.*}}:2 = par.recv_parts from [1, 2] groups [array<i64: 0, 2, 3>, array<i64: 1, 4, 5>] tag 8 : tensor<4xf32>, tensor<4xf32>
    %a, %b = par.recv_parts from [1, 2] groups [array<i64: 0, 2, 3>, array<i64: 1, 4, 5>] tag 8 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @w state of "w" : tensor<4xf32>
  par.block @b {
    %w = par.load @w : tensor<4xf32>
    // expected-error @below {{(parts_c1) has 1 parts and 2 peers}}
    par.send_parts %w to [1, 2] groups [array<i64: 0, 1, 2>] tag 7 : tensor<4xf32>
  }
}

// -----

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.block @b {
    // expected-error @below {{(parts_c2) has rank 1 twice in its groups}}
    %a = par.recv_parts from [1] groups [array<i64: 0, 1>, array<i64: 1, 2>] tag 7 : tensor<4xf32>
  }
}
