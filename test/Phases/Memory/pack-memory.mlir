// State lies first; buffers that are never alive together share bytes; the limit holds.
// RUN: par-opt %s --par-assign-buffers --par-pack-memory --par-verify-memory | FileCheck %s
// RUN: not par-opt %s --par-assign-buffers --par-pack-memory=limit=300 2>&1 | FileCheck %s --check-prefix=LIMIT

// LIMIT: error: needs 768 bytes a rank, the limit is 300 (state 256, pool 512)

par.stage @s0 <> ranks [0]
par.kernel @neg(%a: tensor<4xf32>) -> tensor<4xf32> attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.program @stage0 on @s0 ranks [0] {
  // CHECK: par.buffer @w state of "w" : tensor<4xf32> at [0]
  par.buffer @w state of "w" : tensor<4xf32>
  par.block @forward {
    %w = par.load @w : tensor<4xf32>
    %a = par.launch @neg(%w) : (tensor<4xf32>) -> tensor<4xf32>
    %b = par.launch @neg(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %c = par.launch @neg(%b) : (tensor<4xf32>) -> tensor<4xf32>
    par.fetch %c as "c" : tensor<4xf32>
  }
  // CHECK-DAG: par.buffer @forward.t0 temp : tensor<4xf32> at [256]
  // CHECK-DAG: par.buffer @forward.t1 temp : tensor<4xf32> at [512]
  // CHECK-DAG: par.buffer @forward.t2 temp : tensor<4xf32> at [256]
  par.entry @eval runs [@forward] microbatches [0]
}
