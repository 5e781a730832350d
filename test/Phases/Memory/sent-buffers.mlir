// A value sent to another stage keeps its bytes until the next write: the send ends beside later blocks.
// RUN: par-opt %s --par-assign-buffers --par-pack-memory --par-verify-memory | FileCheck %s

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.kernel @neg(%a: tensor<4xf32>) -> tensor<4xf32> attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.program @stage0 on @s0 ranks [0] {
  // CHECK: par.buffer @w state of "w" : tensor<4xf32> at [0]
  par.buffer @w state of "w" : tensor<4xf32>
  // CHECK: par.buffer @out temp : tensor<4xf32> at [[[OUT:[0-9]+]]]
  par.buffer @out temp : tensor<4xf32>
  par.block @forward {
    %w = par.load @w : tensor<4xf32>
    %a = par.launch @neg(%w) : (tensor<4xf32>) -> tensor<4xf32>
    par.store %a to @out : tensor<4xf32>
  }
  par.block @send {
    %a = par.load @out : tensor<4xf32>
    par.send %a to [1] tag 0 : tensor<4xf32>
  }
  par.block @behind {
    %w = par.load @w : tensor<4xf32>
    %b = par.launch @neg(%w) : (tensor<4xf32>) -> tensor<4xf32>
    par.fetch %b as "b" : tensor<4xf32>
  }
  // CHECK-NOT: par.buffer @behind.t0 {{.*}} at [[[OUT]]]
  // CHECK: par.buffer @behind.t0 temp : tensor<4xf32> at
  par.entry @eval runs [@forward, @send, @behind] microbatches [0, 0, 0]
}
