// The gate refuses what Kernels leaves: buffers without offsets, results without storage.
// RUN: par-opt %s --par-verify-memory --split-input-file --verify-diagnostics

par.stage @s0 <> ranks [0]
par.program @stage0 on @s0 ranks [0] {
  // expected-error @below {{has no offsets after Memory}}
  par.buffer @w state of "w" : tensor<4xf32>
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.program @stage0 on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<4xf32> at [0]
  par.block @forward {
    %w = par.load @w : tensor<4xf32>
    // expected-error @below {{gives a value that is not stored at once after Memory}}
    %r = par.all_reduce sum %w over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    par.fetch %r as "r" : tensor<4xf32>
  }
}
