// Errors of the verifiers of tables, steps and fragments.
// RUN: par-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{lists 1 ranks, its mesh has 2}}
par.stage @s0 <"dp"=2> ranks [0]

// -----

// expected-error @below {{rank 0 is negative or listed twice}}
par.stage @s0 <"dp"=2> ranks [0, 0]

// -----

// expected-error @below {{is stored as 'tensor<9xf32>', which has other elements than 'tensor<2x4xf32>'}}
par.variable @w parameter : tensor<2x4xf32> stored tensor<9xf32>

// -----

// expected-error @below {{sharding has 1 dims, the variable 2}}
par.variable @w parameter : tensor<2x4xf32> sharding <[{}]>

// -----

// expected-error @below {{is at '!par.dist<tensor<3xf32>, @s0, ?>', expected a !par.dist of 'tensor<4xf32>'}}
par.variable @w parameter : tensor<4xf32> at [!par.dist<tensor<3xf32>, @s0, ?>]

// -----

// expected-error @below {{is a state and needs `of`}}
par.variable @w.m state : tensor<4xf32>

// -----

// expected-error @below {{is a parameter and cannot have `of`}}
par.variable @w parameter of @v : tensor<4xf32>

// -----

// expected-error @below {{names 2 inputs, it has 1}}
par.step @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {inputs = ["x", "y"]} {
  par.return %x : tensor<4xf32>
}

// -----

par.step @f(%x: tensor<4xf32>) -> tensor<3xf32> {
  // expected-error @below {{returns ('tensor<4xf32>'), the par.step says ('tensor<3xf32>')}}
  par.return %x : tensor<4xf32>
}

// -----

par.step @f() -> tensor<4xf32> {
  // expected-error @below {{names @w, which is no variable}}
  %0 = par.read @w : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

// expected-note @below {{variable declared here}}
par.variable @w parameter : tensor<3xf32>
par.step @f() -> tensor<4xf32> {
  // expected-error @below {{has type 'tensor<4xf32>', the variable 'tensor<3xf32>'}}
  %0 = par.read @w : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

par.step @f(%x: tensor<4x2xf32>) -> tensor<2xf32> {
  // expected-error @below {{slices 'tensor<4x2xf32>' over 4 microbatches, the body takes 'tensor<3xf32>'}}
  %0 = par.loop 4 (%x) : (tensor<4x2xf32>) -> tensor<2xf32> {
  ^bb0(%i: tensor<i64>, %xi: tensor<3xf32>):
    %s = par.slice %xi [0] to [2] by [1] : tensor<3xf32> to tensor<2xf32>
    par.yield [sum] %s : tensor<2xf32>
  }
  par.return %0 : tensor<2xf32>
}

// -----

par.step @f(%x: tensor<4x2xf32>) -> tensor<3xf32> {
  // expected-error @below {{result 0 is 'tensor<3xf32>', the body yields 'tensor<2xf32>' to sum}}
  %0 = par.loop 4 (%x) : (tensor<4x2xf32>) -> tensor<3xf32> {
  ^bb0(%i: tensor<i64>, %xi: tensor<2xf32>):
    par.yield [sum] %xi : tensor<2xf32>
  }
  par.return %0 : tensor<3xf32>
}

// -----

par.stage @s0 <"tp"=2> ranks [0, 1]
par.step @f(%x: !par.dist<tensor<4x2x2xf32>, @s0, [{}, {"tp"}, {}]>) -> !par.dist<tensor<4x2x2xf32>, @s0, [{}, {}, {"tp"}]> {
  // expected-error @below {{result 0 is '!par.dist<tensor<4x2x2xf32>, @s0, [{}, {}, {"tp"}]>', the body yields '!par.dist<tensor<2x2xf32>, @s0, [{"tp"}, {}]>' to stack}}
  %0 = par.loop 4 (%x) : (!par.dist<tensor<4x2x2xf32>, @s0, [{}, {"tp"}, {}]>) -> !par.dist<tensor<4x2x2xf32>, @s0, [{}, {}, {"tp"}]> {
  ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<2x2xf32>, @s0, [{"tp"}, {}]>):
    par.yield [stack] %xi : !par.dist<tensor<2x2xf32>, @s0, [{"tp"}, {}]>
  }
  par.return %0 : !par.dist<tensor<4x2x2xf32>, @s0, [{}, {}, {"tp"}]>
}

// -----

par.step @f(%x: !par.dist<tensor<4xf32>, @s0, [{}]>) -> !par.dist<tensor<4xf32>, @s0, [{}]> {
  // expected-error @below {{names @g, which is no fragment}}
  %0 = par.run @g(%x) : (!par.dist<tensor<4xf32>, @s0, [{}]>) -> !par.dist<tensor<4xf32>, @s0, [{}]>
  par.return %0 : !par.dist<tensor<4xf32>, @s0, [{}]>
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.fragment @g(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  par.return %x : tensor<4xf32>
}
par.step @f(%x: !par.dist<tensor<4xf32>, @s0, [{"dp"}]>) -> !par.dist<tensor<4xf32>, @s0, [{"dp"}]> {
  // expected-error @below {{argument 0 is 'tensor<2xf32>' on a rank, the fragment says 'tensor<4xf32>'}}
  %0 = par.run @g(%x) : (!par.dist<tensor<4xf32>, @s0, [{"dp"}]>) -> !par.dist<tensor<4xf32>, @s0, [{"dp"}]>
  par.return %0 : !par.dist<tensor<4xf32>, @s0, [{"dp"}]>
}

// -----

par.stage @s0 <> ranks [0]
par.fragment @g(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  par.return %x : tensor<4xf32>
}
par.step @f(%x: !par.dist<tensor<4xf32>, @s1, ?>) -> !par.dist<tensor<4xf32>, @s0, ?> {
  // expected-error @below {{argument 0 lives on @s1, the fragment on @s0}}
  %0 = par.run @g(%x) : (!par.dist<tensor<4xf32>, @s1, ?>) -> !par.dist<tensor<4xf32>, @s0, ?>
  par.return %0 : !par.dist<tensor<4xf32>, @s0, ?>
}

// -----

par.step @f(%x: !par.dist<tensor<4xf32>, @s0, ?>) -> !par.dist<tensor<4xf32>, @s0, ?> {
  // expected-error @below {{stays on stage @s0; use par.reshard}}
  %0 = par.transfer %x : <tensor<4xf32>, @s0, ?> to <tensor<4xf32>, @s0, ?>
  par.return %0 : !par.dist<tensor<4xf32>, @s0, ?>
}

// -----

par.step @f(%x: !par.dist<tensor<4xf32>, @s0, ?>) -> !par.dist<tensor<4xf32>, @s1, ?> {
  // expected-error @below {{moves from stage @s0 to @s1; use par.transfer}}
  %0 = par.reshard %x : <tensor<4xf32>, @s0, ?> to <tensor<4xf32>, @s1, ?>
  par.return %0 : !par.dist<tensor<4xf32>, @s1, ?>
}

// -----

par.step @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{combines scalars, found 'tensor<4xf32>'}}
  %0 = par.stage_all_reduce sum %x : (tensor<4xf32>) -> tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

par.step @f(%x: tensor<f32>) -> tensor<f64> {
  // expected-error @below {{operand and result types must be equal}}
  %0 = par.stage_all_reduce sum %x : (tensor<f32>) -> tensor<f64>
  par.return %0 : tensor<f64>
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.fragment @g(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  // expected-error @below {{axis "tp" is not in the mesh #par.mesh<"dp"=2> of stage @s0}}
  %0 = par.all_reduce sum %x over ["tp"] : (tensor<4xf32>) -> tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.fragment @g(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  // expected-error @below {{(all_gather_c1) result 0 is 'tensor<4xf32>', expected 'tensor<8xf32>' on a group of 2}}
  %0 = par.all_gather %x dims [0] over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.fragment @g(%x: tensor<3xf32>) -> tensor<2xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  // expected-error @below {{(reduce_scatter_c1) dim 0 of 'tensor<3xf32>' does not divide by the group of 2}}
  %0 = par.reduce_scatter sum %x dims [0] over ["dp"] : (tensor<3xf32>) -> tensor<2xf32>
  par.return %0 : tensor<2xf32>
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.fragment @g(%x: tensor<4xf32>) -> tensor<8xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  // expected-error @below {{(all_gather_c1) names a dim that 'tensor<4xf32>' lacks}}
  %0 = par.all_gather %x dims [1] over ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
  par.return %0 : tensor<8xf32>
}

// -----

par.step @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{is in no fragment or program of a known stage}}
  %0 = par.all_reduce sum %x over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

// expected-error @below {{sharding has 2 dims, the tensor 1}}
par.variable @w parameter : tensor<4xf32> at [!par.dist<tensor<4xf32>, @s0, [{}, {}]>]

// -----

par.step @f(%x: !par.dist<tensor<4xf32>, @s0, ?>) -> !par.dist<tensor<3xf32>, @s1, ?> {
  // expected-error @below {{turns 'tensor<4xf32>' into 'tensor<3xf32>'}}
  %0 = par.transfer %x : <tensor<4xf32>, @s0, ?> to <tensor<3xf32>, @s1, ?>
  par.return %0 : !par.dist<tensor<3xf32>, @s1, ?>
}

// -----

par.step @f(%x: !par.dist<tensor<4xf32>, @s0, ?>) -> !par.dist<tensor<3xf32>, @s0, ?> {
  // expected-error @below {{turns 'tensor<4xf32>' into 'tensor<3xf32>'}}
  %0 = par.reshard %x : <tensor<4xf32>, @s0, ?> to <tensor<3xf32>, @s0, ?>
  par.return %0 : !par.dist<tensor<3xf32>, @s0, ?>
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.fragment @g(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  // expected-error @below {{has 1 operands and 2 results}}
  %0, %1 = par.all_reduce sum %x over ["dp"] : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  par.return %0 : tensor<4xf32>
}

// -----

// expected-error @below {{names 2 batch dims, it has 1 inputs}}
par.step @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {inputs = ["x"], batch_dims = array<i64: 0, 0>} {
  par.return %x : tensor<4xf32>
}
