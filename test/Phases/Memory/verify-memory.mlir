// The gate refuses the output of Kernels: buffers without offsets, results without storage, and results in another
// buffer than the operand to which they are tied.
// RUN: par-opt %s --par-verify-memory --split-input-file --verify-diagnostics
// RUN: par-compile %models/mlp/model.onnx --set train={} --stop-after=collectives > %t.mlir
// RUN: not par-opt %t.mlir --par-verify-memory 2>&1 | FileCheck %s --check-prefix=COLLECTIVES
// COLLECTIVES: error: {{.*}}has no offsets after Memory

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

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.program @stage0 on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<4xf32> at [0]
  par.buffer @r temp : tensor<4xf32> at [256]
  par.block @forward {
    %w = par.load @w : tensor<4xf32>
    // expected-error @below {{puts result 0, which is tied to operand 0, into "r"; the operand lies in "w"}}
    %r = par.all_reduce sum %w over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    par.store %r to @r : tensor<4xf32>
  }
}

// -----

par.stage @s0 <> ranks [0]
par.kernel @add(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32>
    attributes {implementation = "generated", tied = array<i64: 1>} {
  %0 = par.add %a, %b : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.program @stage0 on @s0 ranks [0] {
  par.buffer @w state of "w" : tensor<4xf32> at [0]
  par.buffer @g temp : tensor<4xf32> at [256]
  par.block @update {
    %w = par.load @w : tensor<4xf32>
    %g = par.load @g : tensor<4xf32>
    // expected-error @below {{puts result 0, which is tied to operand 1, into "w"; the operand lies in "g"}}
    %u = par.launch @add(%w, %g) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    par.store %u to @w : tensor<4xf32>
  }
}

// -----

par.stage @s0 <> ranks [0]
par.program @stage0 on @s0 ranks [0] {
  // expected-note @below {{the buffer is here}}
  par.buffer @m state of "m" : tensor<4xf32> at [0] {host}
  par.block @update {
    %m = par.load @m : tensor<4xf32>
    // expected-error @below {{accesses "m", a buffer in host memory; only copies may access it}}
    par.fetch %m as "m" : tensor<4xf32>
  }
}

// -----

par.stage @s0 <> ranks [0]
par.program @stage0 on @s0 ranks [0] {
  // expected-error @below {{is written by the runtime and lies in the host's memory, which is not supported}}
  par.buffer @x input of "x" : tensor<4xf32> at [0] {host}
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.program @stage0 on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<4xf32> at [0]
  par.buffer @g temp : tensor<8xf32> at [256]
  par.buffer @h temp : tensor<8xf32> at [512]
  par.block @forward {
    %w = par.load @w : tensor<4xf32>
    %g = par.all_gather %w dims [0] over ["dp"] {queue = "all_gather"} : (tensor<4xf32>) -> tensor<8xf32>
    par.store %g to @g : tensor<8xf32>
    %copy = par.load @g : tensor<8xf32>
    par.store %copy to @h : tensor<8xf32>
    %h = par.load @h : tensor<8xf32>
    %v = par.load @w : tensor<4xf32>
    // expected-error @below {{waits for "h", which no collective with a queue has written last}}
    %d = par.done %h of %v : (tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
    par.store %d to @h : tensor<8xf32>
  }
}
