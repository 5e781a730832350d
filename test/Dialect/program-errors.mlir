// Errors of the verifiers of programs.
// RUN: par-opt %s --split-input-file --verify-diagnostics

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  // expected-error @below {{has depth 0, expected at least 1}}
  par.buffer @w temp depth 0 : tensor<4xf32>
}

// -----

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  // expected-error @below {{has 2 offsets for 1 slots}}
  par.buffer @w temp : tensor<4xf32> at [0, 256]
}

// -----

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.block @b {
  }
  // expected-error @below {{runs 1 blocks with 2 microbatch indices}}
  par.entry @train runs [@b] microbatches [0, 1]
}

// -----

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  // expected-error @below {{runs @b, which is no block of p}}
  par.entry @train runs [@b] microbatches [0]
}

// -----

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.block @b {
    // expected-error @below {{names @w, which is no buffer of its program}}
    %0 = par.load @w : tensor<4xf32>
  }
}

// -----

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @w temp : tensor<3xf32>
  par.block @b {
    // expected-error @below {{has type 'tensor<4xf32>', the buffer 'tensor<3xf32>'}}
    %0 = par.load @w : tensor<4xf32>
  }
}

// -----

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @w temp : tensor<4xf32>
  par.block @b {
    %0 = par.load @w : tensor<4xf32>
    // expected-error @below {{names @k, which is no kernel}}
    %1 = par.launch @k(%0) : (tensor<4xf32>) -> tensor<4xf32>
  }
}

// -----

par.stage @s0 <> ranks [0]
par.kernel @k(%a: tensor<3xf32>) -> tensor<3xf32> attributes {implementation = "generated"} {
  par.return %a : tensor<3xf32>
}
par.program @p on @s0 ranks [0] {
  par.buffer @w temp : tensor<4xf32>
  par.block @b {
    %0 = par.load @w : tensor<4xf32>
    // expected-error @below {{does not have the kernel's type '(tensor<3xf32>) -> tensor<3xf32>'}}
    %1 = par.launch @k(%0) : (tensor<4xf32>) -> tensor<4xf32>
  }
}

// -----

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @w temp : tensor<4xf32>
  // expected-error @below {{runs @w, which is no block of p}}
  par.entry @train runs [@w] microbatches [0]
}
