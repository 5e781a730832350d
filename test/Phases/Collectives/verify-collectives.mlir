// The gate refuses synchronous collectives that could overlap, and asynchronous ones that overlap with their own use.
// RUN: par-opt %s --par-verify-collectives --split-input-file --verify-diagnostics
// RUN: par-compile %models/mlp/model.onnx --set train={} --set mesh='{dp: 2}' --stop-after=kernels > %t.mlir
// RUN: not par-opt %t.mlir --par-verify-collectives 2>&1 | FileCheck %s --check-prefix=KERNELS
// RUN: par-opt %t.mlir --par-verify-collectives=overlap=false -o /dev/null
// KERNELS: error: only leaves block @train.backward, but is synchronous after Collectives

par.stage @s0 <"dp"=2> ranks [0, 1]
par.kernel @neg(%a: tensor<4xf32>) -> tensor<4xf32> attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.program @p on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<4xf32>
  par.buffer @a temp : tensor<4xf32>
  par.block @last {
    %w = par.load @w : tensor<4xf32>
    %g = par.launch @neg(%w) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-error @below {{is asynchronous in block @last, which uses its results}}
    %r = par.all_reduce sum %g over ["dp"] {queue = "data"} : (tensor<4xf32>) -> tensor<4xf32>
    par.store %r to @a : tensor<4xf32>
    // expected-note @below {{needed here}}
    %a = par.load @a : tensor<4xf32>
    %h = par.launch @neg(%a) : (tensor<4xf32>) -> tensor<4xf32>
    par.store %h to @w : tensor<4xf32>
  }
  par.entry @train runs [@last] microbatches [0]
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.program @p on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<4xf32>
  par.block @last {
    %g = par.load @w : tensor<4xf32>
    // expected-error @below {{joins 65 values in block @last, a group takes 64}}
    %r:65 = par.all_reduce sum %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g over ["dp"]
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  }
  par.entry @train runs [@last] microbatches [0]
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.kernel @neg(%a: tensor<8xf32>) -> tensor<8xf32> attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<8xf32>
  par.return %0 : tensor<8xf32>
}
par.program @p on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<4xf32>
  par.block @forward {
    %w = par.load @w : tensor<4xf32>
    // expected-error @below {{could start earlier in block @forward, but is synchronous after Collectives}}
    %g = par.all_gather %w dims [0] over ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
    %n = par.launch @neg(%g) : (tensor<8xf32>) -> tensor<8xf32>
    par.fetch %n as "n" : tensor<8xf32>
  }
  par.entry @eval runs [@forward] microbatches [0]
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.program @p on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<4xf32>
  par.block @forward {
    %w = par.load @w : tensor<4xf32>
    // expected-error @below {{is asynchronous in block @forward, which uses its results}}
    %g = par.all_gather %w dims [0] over ["dp"] {queue = "all_gather"} : (tensor<4xf32>) -> tensor<8xf32>
    // expected-note @below {{needed here}}
    par.fetch %g as "g" : tensor<8xf32>
    %d = par.done %g of %w : (tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
    par.fetch %d as "d" : tensor<8xf32>
  }
  par.entry @eval runs [@forward] microbatches [0]
}
