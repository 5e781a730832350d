// Errors found in steps: leaked padding, replicas that differ, values that are no sum, indices out of range.
// RUN: par-opt %s --par-interpret --split-input-file --verify-diagnostics --mlir-print-op-on-diagnostic=false -o /dev/null

// A sum over a shard with padding, without a mask.
par.stage @s0 <"tp"=2> ranks [0, 1]
par.variable @x frozen : tensor<3xf32> value dense<1.0> : tensor<3xf32>
par.fragment @f(%x: tensor<2xf32>) -> tensor<f32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.reduce sum %x dims [0] : tensor<2xf32> to tensor<f32>
  par.return %0 : tensor<f32>
}
par.step @e() -> !par.dist<tensor<f32>, @s0, [], unreduced={"tp"}> attributes {outputs = ["y"]} {
  %x = par.read @x : !par.dist<tensor<3xf32>, @s0, [{"tp"}]>
  // expected-error@+1 {{padding has reached the shard of rank 1 of the stage, of 'tensor<f32>'}}
  %0 = par.run @f(%x) : (!par.dist<tensor<3xf32>, @s0, [{"tp"}]>) -> !par.dist<tensor<f32>, @s0, [], unreduced={"tp"}>
  par.return %0 : !par.dist<tensor<f32>, @s0, [], unreduced={"tp"}>
}

// -----

// The same for integers, and through a maximum.
par.stage @s0 <"tp"=2> ranks [0, 1]
par.variable @x frozen : tensor<3xi64> value dense<1> : tensor<3xi64>
par.fragment @f(%x: tensor<2xi64>) -> tensor<i64> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.reduce min %x dims [0] : tensor<2xi64> to tensor<i64>
  %1 = par.all_reduce min %0 over ["tp"] : (tensor<i64>) -> tensor<i64>
  par.return %1 : tensor<i64>
}
par.step @e() -> !par.dist<tensor<i64>, @s0, []> attributes {outputs = ["y"]} {
  %x = par.read @x : !par.dist<tensor<3xi64>, @s0, [{"tp"}]>
  // expected-error@+1 {{padding has reached the shard of rank 1 of the stage, of 'tensor<i64>'}}
  %0 = par.run @f(%x) : (!par.dist<tensor<3xi64>, @s0, [{"tp"}]>) -> !par.dist<tensor<i64>, @s0, []>
  par.return %0 : !par.dist<tensor<i64>, @s0, []>
}

// -----

// A result that is marked as replicated and is not.
par.stage @s0 <"tp"=2> ranks [0, 1]
par.variable @x frozen : tensor<2xf32> value dense<[1.0, 2.0]> : tensor<2xf32>
par.fragment @f(%x: tensor<1xf32>) -> tensor<1xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.negate %x : tensor<1xf32>
  par.return %0 : tensor<1xf32>
}
par.step @e() -> !par.dist<tensor<1xf32>, @s0, [{}]> attributes {outputs = ["y"]} {
  %x = par.read @x : !par.dist<tensor<2xf32>, @s0, [{"tp"}]>
  // expected-error@+1 {{ranks 0 and 1 of the stage hold different replicas of 'tensor<1xf32>'}}
  %0 = par.run @f(%x) : (!par.dist<tensor<2xf32>, @s0, [{"tp"}]>) -> !par.dist<tensor<1xf32>, @s0, [{}]>
  par.return %0 : !par.dist<tensor<1xf32>, @s0, [{}]>
}

// -----

par.stage @s0 <"tp"=2> ranks [0, 1]
par.fragment @f(%x: tensor<2xf32>) -> tensor<2xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  // expected-error@+1 {{communicates, but runs on one device}}
  %0 = par.all_reduce sum %x over ["tp"] : (tensor<2xf32>) -> tensor<2xf32>
  par.return %0 : tensor<2xf32>
}
par.variable @x frozen : tensor<2xf32>
par.step @e() -> tensor<2xf32> attributes {outputs = ["y"]} {
  %x = par.read @x : tensor<2xf32>
  %0 = par.run @f(%x) : (tensor<2xf32>) -> tensor<2xf32>
  par.return %0 : tensor<2xf32>
}

// -----

par.step @e() -> tensor<1xf32> attributes {outputs = ["y"]} {
  %t = par.constant dense<1.0> : tensor<4xf32>
  %i = par.constant dense<4> : tensor<1xi64>
  // expected-error@+1 {{index 4 is out of range [0, 4)}}
  %0 = par.gather %t, %i dim 0 : tensor<4xf32>, tensor<1xi64> to tensor<1xf32>
  par.return %0 : tensor<1xf32>
}

// -----

par.step @e() -> tensor<1xf32> attributes {outputs = ["y"]} {
  %z = par.constant dense<1.0> : tensor<1x4xf32>
  %y = par.constant dense<-1> : tensor<1xi64>
  // expected-error@+1 {{label -1 is out of range [0, 4) and not the ignored one}}
  %t, %lse = par.cross_entropy %z, %y ignore -100 : (tensor<1x4xf32>, tensor<1xi64>) -> (tensor<1xf32>, tensor<1xf32>)
  par.return %t : tensor<1xf32>
}

// -----

par.step @e() -> tensor<2xf32> attributes {outputs = ["y"]} {
  %t = par.constant dense<1.0> : tensor<4xf32>
  %i = par.constant dense<3> : tensor<i64>
  // expected-error@+1 {{starts at 3 for 2 elements of 4}}
  %0 = par.dynamic_slice %t at %i dim 0 size 2 : tensor<4xf32>, tensor<i64> to tensor<2xf32>
  par.return %0 : tensor<2xf32>
}

// -----

par.step @e() -> tensor<2xf32> attributes {outputs = ["y"]} {
  // expected-error@+1 {{cannot be interpreted in a step}}
  %0 = arith.constant dense<1.0> : tensor<2xf32>
  par.return %0 : tensor<2xf32>
}

// -----

par.stage @s0 <> ranks [0]
par.fragment @f() -> tensor<2xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  // expected-error@+1 {{cannot be interpreted}}
  %0 = arith.constant dense<1.0> : tensor<2xf32>
  par.return %0 : tensor<2xf32>
}
par.step @e() -> tensor<2xf32> attributes {outputs = ["y"]} {
  %0 = par.run @f() : () -> tensor<2xf32>
  par.return %0 : tensor<2xf32>
}
