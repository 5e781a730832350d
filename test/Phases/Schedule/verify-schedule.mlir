// The gate refuses the output of Partition, and programs that do not fit together.
// RUN: par-opt %s --par-verify-schedule --split-input-file --verify-diagnostics
// RUN: par-compile %models/mlp/model.onnx --set train={} --stop-after=recompute > %t.mlir
// RUN: not par-opt %t.mlir --par-verify-schedule 2>&1 | FileCheck %s --check-prefix=RECOMPUTE
// RECOMPUTE: error: {{.*}}is left after Schedule

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {}
// expected-error @below {{is left after Schedule}}
par.step @eval() {
  par.return
}

// -----

// expected-error @below {{has no program after Schedule}}
par.stage @s0 <> ranks [0]

// -----

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {}
// expected-error @below {{is a second program of @s0}}
par.program @q on @s0 ranks [0] {}

// -----

par.stage @s0 <> ranks [0]
// expected-error @below {{lies on ranks 1 with mesh #par.mesh<>, its program @p on 0 with #par.mesh<>}}
par.stage @s1 <> ranks [1]
par.program @p on @s0, @s1 ranks [0] {}

// -----

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.program @p on @s0 ranks [0] {
  // expected-error @below {{is no entry of @q}}
  par.entry @train runs [] microbatches []
}
par.program @q on @s1 ranks [1] {}

// -----

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @a temp : tensor<4xf32>
  par.block @run {
    // expected-error @below {{loads from @a, which is not stored in entry @train}}
    %0 = par.load @a : tensor<4xf32>
  }
  par.entry @train runs [@run] microbatches [0]
}

// -----

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @x input of "x" : tensor<4xf32>
  par.buffer @a temp by microbatch depth 2 : tensor<4xf32>
  par.block @make {
    %0 = par.load @x : tensor<4xf32>
    par.store %0 to @a : tensor<4xf32>
  }
  par.block @use {
    // expected-error @below {{of microbatch 0 finds in slot 0 of @a a value of microbatch 2}}
    %0 = par.load @a : tensor<4xf32>
  }
  par.entry @train runs [@make, @make, @make, @use] microbatches [0, 1, 2, 0]
}

// -----

// Receive before use, send after produce, on both sides: both wait.
par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.program @p on @s0 ranks [0] {
  par.buffer @x input of "x" : tensor<4xf32>
  par.block @receive {
    // expected-error @below {{waits for ever in entry @train, microbatch 0}}
    %0 = par.recv from [1] tag 1 : tensor<4xf32>
  }
  par.block @send {
    %0 = par.load @x : tensor<4xf32>
    par.send %0 to [1] tag 0 : tensor<4xf32>
  }
  par.entry @train runs [@receive, @send] microbatches [0, 0]
}
par.program @q on @s1 ranks [1] {
  par.buffer @x input of "x" : tensor<4xf32>
  par.block @receive {
    %0 = par.recv from [0] tag 0 : tensor<4xf32>
  }
  par.block @send {
    %0 = par.load @x : tensor<4xf32>
    par.send %0 to [0] tag 1 : tensor<4xf32>
  }
  par.entry @train runs [@receive, @send] microbatches [0, 0]
}

// -----

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.program @p on @s0 ranks [0] {
  par.buffer @x input of "x" : tensor<4xf32>
  par.block @send {
    %0 = par.load @x : tensor<4xf32>
    // expected-error @below {{of tag 0 meets a receive of tag 1 or of other types}}
    par.send %0 to [1] tag 0 : tensor<4xf32>
  }
  par.entry @train runs [@send] microbatches [0]
}
par.program @q on @s1 ranks [1] {
  par.block @receive {
    // expected-note @below {{received here}}
    %0 = par.recv from [0] tag 1 : tensor<4xf32>
  }
  par.entry @train runs [@receive] microbatches [0]
}

// -----

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.block @run {
    // expected-error @below {{names @f, which is no fragment}}
    par.exec @f() : () -> ()
  }
}

// -----

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.fragment @f() attributes {stage = @s1, kind = #par.fragment_kind<forward>, local} {
  par.return
}
par.program @p on @s0 ranks [0] {
  par.block @run {
    // expected-error @below {{runs a fragment of @s1 on @s0}}
    par.exec @f() : () -> ()
  }
}
par.program @q on @s1 ranks [1] {}

// -----

par.stage @s0 <> ranks [0]
par.fragment @f() attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  par.return
}
par.program @p on @s0 ranks [0] {
  par.block @run {
    // expected-error @below {{runs a fragment that is not local}}
    par.exec @f() : () -> ()
  }
}

// -----

par.stage @s0 <> ranks [0]
par.fragment @f() -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.constant dense<1.0> : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.program @p on @s0 ranks [0] {
  par.block @run {
    // expected-error @below {{does not have the fragment's type '() -> tensor<4xf32>'}}
    par.exec @f() : () -> ()
  }
}

// -----

par.stage @s0 <"tp"=2> ranks [0, 1]
par.program @p on @s0 ranks [0, 1] {
  // expected-error @below {{accumulates the gradient of "w", which is no variable}}
  par.buffer @sum temp of "w" : tensor<2xf32> as !par.dist<tensor<4xf32>, @s0, [{"tp"}]>
}

// -----

par.stage @s0 <"tp"=2> ranks [0, 1]
par.variable @w parameter : tensor<4xf32>
par.program @p on @s0 ranks [0, 1] {
  // expected-error @below {{accumulates the gradient of "w" without saying how it lies on @s0}}
  par.buffer @sum temp of "w" : tensor<2xf32>
}

// -----

par.stage @s0 <"tp"=2> ranks [0, 1]
par.variable @w parameter : tensor<4xf32>
par.program @p on @s0 ranks [0, 1] {
  // expected-error @below {{has type 'tensor<4xf32>', a shard of '!par.dist<tensor<4xf32>, @s0, [{"tp"}]>' has 'tensor<2xf32>'}}
  par.buffer @sum temp of "w" : tensor<4xf32> as !par.dist<tensor<4xf32>, @s0, [{"tp"}]>
}

// -----

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.program @p on @s0 ranks [0] {
  par.buffer @x input of "x" : tensor<4xf32>
  par.block @send {
    %0 = par.load @x : tensor<4xf32>
    // expected-note @below {{sent here}}
    par.send_parts %0 to [1] groups [array<i64: 0, 1>] tag 3 : tensor<4xf32>
  }
  par.entry @train runs [@send] microbatches [0]
}
par.program @q on @s1 ranks [1] {
  par.block @receive {
    // expected-error @below {{of tag 3: no rank sends rank 1 its part 0 of type 'tensor<2xf32>'}}
    %0 = par.recv_parts from [0] groups [array<i64: 0, 1>] tag 3 : tensor<2xf32>
  }
  par.entry @train runs [@receive] microbatches [0]
}
