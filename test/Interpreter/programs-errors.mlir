// Errors found in programs: a deadlock and who waits for whom, sends and receives that do not match, slots that hold
// another value, bytes that another buffer has taken.
// RUN: par-opt %s --par-interpret --split-input-file --verify-diagnostics --mlir-print-op-on-diagnostic=false -o /dev/null

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.program @p0 on @s0 ranks [0] {
  par.block @b {
    %c = par.constant dense<1.0> : tensor<f32>
    // expected-error@+1 {{deadlock in entry @e: @p0 waits in @b, microbatch 0, at par.send with tag 1}}
    par.send %c to [1] tag 1 : tensor<f32>
    %d = par.recv from [1] tag 2 : tensor<f32>
  }
  par.entry @e runs [@b] microbatches [0]
}
par.program @p1 on @s1 ranks [1] {
  par.block @b {
    %c = par.constant dense<1.0> : tensor<f32>
    // expected-note@+1 {{@p1 waits in @b, microbatch 0, at par.send with tag 2}}
    par.send %c to [0] tag 2 : tensor<f32>
    %d = par.recv from [0] tag 1 : tensor<f32>
  }
  par.entry @e runs [@b] microbatches [0]
}

// -----

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.program @p0 on @s0 ranks [0] {
  par.block @b {
    %c = par.constant dense<1.0> : tensor<f32>
    // expected-error@+1 {{sends other types than its receive takes, tag 1}}
    par.send %c to [1] tag 1 : tensor<f32>
  }
  par.entry @e runs [@b] microbatches [0]
}
par.program @p1 on @s1 ranks [1] {
  par.block @b {
    // expected-note@+1 {{its receive is here}}
    %d = par.recv from [0] tag 1 : tensor<2xf32>
  }
  par.entry @e runs [@b] microbatches [0]
}

// -----

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.program @p0 on @s0 ranks [0] {
  par.block @b {
    %c = par.constant dense<1.0> : tensor<f32>
    // expected-error@+1 {{sends microbatch 0 to a receive for microbatch 1, tag 1}}
    par.send %c to [1] tag 1 : tensor<f32>
  }
  par.entry @e runs [@b] microbatches [0]
}
par.program @p1 on @s1 ranks [1] {
  par.block @b {
    // expected-note@+1 {{its receive is here}}
    %d = par.recv from [0] tag 1 : tensor<f32>
  }
  par.entry @e runs [@b] microbatches [1]
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.stage @s1 <"dp"=2> ranks [2, 3]
par.program @p0 on @s0 ranks [0, 1] {
  par.block @b {
    %c = par.constant dense<1.0> : tensor<f32>
    // expected-error@+1 {{rank 2 receives from rank 1, which does not send to it}}
    par.send %c to [2, 3] tag 1 : tensor<f32>
  }
  par.entry @e runs [@b] microbatches [0]
}
par.program @p1 on @s1 ranks [2, 3] {
  par.block @b {
    // expected-note@+1 {{its receive is here}}
    %d = par.recv from [1, 0] tag 1 : tensor<f32>
  }
  par.entry @e runs [@b] microbatches [0]
}

// -----

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.program @p0 on @s0 ranks [0] {
  par.block @b {
    %c = par.constant dense<1.0> : tensor<f32>
    // expected-error@+1 {{has other groups or another kind than another role's, tag 3}}
    %d = par.world_all_reduce sum %c groups [array<i64: 0, 1>] tag 3 : (tensor<f32>) -> tensor<f32>
  }
  par.entry @e runs [@b] microbatches [0]
}
par.program @p1 on @s1 ranks [1] {
  par.block @b {
    %c = par.constant dense<1.0> : tensor<f32>
    // expected-note@+1 {{the other role's is here}}
    %d = par.world_all_reduce max %c groups [array<i64: 0, 1>] tag 3 : (tensor<f32>) -> tensor<f32>
  }
  par.entry @e runs [@b] microbatches [0]
}

// -----

par.stage @s0 <> ranks [0]
par.program @p0 on @s0 ranks [0] {
  par.buffer @a temp : tensor<f32>
  par.block @b {
    // expected-error@+1 {{reads slot 0 of @a before anything was stored there, at microbatch 0}}
    %c = par.load @a : tensor<f32>
  }
  par.entry @e runs [@b] microbatches [0]
}

// -----

par.stage @s0 <> ranks [0]
par.program @p0 on @s0 ranks [0] {
  par.buffer @a temp by microbatch depth 2 : tensor<f32>
  par.block @put {
    %c = par.constant dense<1.0> : tensor<f32>
    par.store %c to @a : tensor<f32>
  }
  par.block @get {
    // expected-error@+1 {{reads slot 0 of @a for microbatch 0, which holds microbatch 2}}
    %c = par.load @a : tensor<f32>
  }
  par.entry @e runs [@put, @put, @put, @get] microbatches [0, 1, 2, 0]
}

// -----

par.stage @s0 <> ranks [0]
par.program @p0 on @s0 ranks [0] {
  par.buffer @a temp : tensor<4xf32> at [0]
  par.buffer @c temp : tensor<4xf32> at [12]
  par.block @b {
    %0 = par.constant dense<1.0> : tensor<4xf32>
    par.store %0 to @a : tensor<4xf32>
    par.store %0 to @c : tensor<4xf32>
    // expected-error@+1 {{reads bytes of slot 0 of @a that @c has overwritten, at microbatch 0}}
    %1 = par.load @a : tensor<4xf32>
  }
  par.entry @e runs [@b] microbatches [0]
}

// -----

par.stage @s0 <> ranks [0]
par.program @p0 on @s0 ranks [0] {
  par.buffer @a temp : tensor<4xf32> at [0]
  par.buffer @c temp : tensor<4xf32> at [0]
  par.block @b {
    %0 = par.constant dense<1.0> : tensor<4xf32>
    par.store %0 to @a : tensor<4xf32>
    // expected-note@+1 {{loaded here}}
    %1 = par.load @a : tensor<4xf32>
    par.store %0 to @c : tensor<4xf32>
    // expected-error@+1 {{uses the value of @a, but its bytes now hold @c}}
    %2 = par.negate %1 : tensor<4xf32>
  }
  par.entry @e runs [@b] microbatches [0]
}

// -----

par.stage @s0 <> ranks [0]
par.program @p0 on @s0 ranks [0] {
  par.buffer @a temp : tensor<4xf32> at [0]
  par.block @b {
    %0 = par.constant dense<1.0> : tensor<4xf32>
    par.store %0 to @a : tensor<4xf32>
    // expected-note@+1 {{loaded here}}
    %1 = par.load @a : tensor<4xf32>
    par.store %0 to @a : tensor<4xf32>
    // expected-error@+1 {{uses the value of @a, but its bytes now hold a later value}}
    %2 = par.negate %1 : tensor<4xf32>
  }
  par.entry @e runs [@b] microbatches [0]
}

// -----

par.stage @s0 <> ranks [0]
par.program @p0 on @s0 ranks [0] {
  // expected-error@+1 {{does not name the value that it is a shard of}}
  par.buffer @a state of "a" : tensor<f32>
  par.entry @e runs [] microbatches []
}

// -----

par.stage @s0 <> ranks [0]
par.program @p0 on @s0 ranks [0] {
  // expected-error@+1 {{names "a", which is no variable}}
  par.buffer @a state of "a" : tensor<f32> as !par.dist<tensor<f32>, @s0, []>
  par.entry @e runs [] microbatches []
}

// -----

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.program @p0 on @s0 ranks [0] {
  par.entry @e runs [] microbatches []
}
// expected-error@+1 {{has no entry @e}}
par.program @p1 on @s1 ranks [1] {
}

// -----

par.stage @s0 <> ranks [0]
par.program @p0 on @s0 ranks [0] {
  // expected-error@+1 {{takes 'tensor<2xf32>' for microbatch 0 of input "x", which has 3 elements}}
  par.buffer @x input of "x" : tensor<2xf32> as !par.dist<tensor<2xf32>, @s0, [{}]>
  par.buffer @y input of "x" : tensor<3xf32> as !par.dist<tensor<3xf32>, @s0, [{}]>
  par.block @b {
    %0 = par.load @x : tensor<2xf32>
    %1 = par.load @y : tensor<3xf32>
  }
  par.entry @e runs [@b] microbatches [0]
}
