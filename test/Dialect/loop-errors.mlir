// Errors of the verifiers of loops, runs and fragments.
// RUN: par-opt %s --split-input-file --verify-diagnostics

par.stage @s0 <> ranks [0]
par.step @f(%x: !par.dist<tensor<4x2xf32>, @s0, [{}, {}]>) -> !par.dist<tensor<2xf32>, @s0, [{}]> {
  // expected-error @below {{runs 0 times, expected at least once}}
  %0 = par.loop 0 (%x) : (!par.dist<tensor<4x2xf32>, @s0, [{}, {}]>) -> !par.dist<tensor<2xf32>, @s0, [{}]> {
  ^bb0(%i: tensor<i64>, %y: !par.dist<tensor<2xf32>, @s0, [{}]>):
    par.yield [sum] %y : !par.dist<tensor<2xf32>, @s0, [{}]>
  }
  par.return %0 : !par.dist<tensor<2xf32>, @s0, [{}]>
}

// -----

par.stage @s0 <> ranks [0]
par.step @f(%x: !par.dist<tensor<4x2xf32>, @s0, [{}, {}]>) -> !par.dist<tensor<2xf32>, @s0, [{}]> {
  // expected-error @below {{body has 1 arguments, expected the index and 1 slices}}
  %0 = par.loop 4 (%x) : (!par.dist<tensor<4x2xf32>, @s0, [{}, {}]>) -> !par.dist<tensor<2xf32>, @s0, [{}]> {
  ^bb0(%i: tensor<i64>):
    par.yield [stack] %i : tensor<i64>
  }
  par.return %0 : !par.dist<tensor<2xf32>, @s0, [{}]>
}

// -----

par.stage @s0 <> ranks [0]
par.step @f(%x: !par.dist<tensor<4x2xf32>, @s0, [{}, {}]>) -> !par.dist<tensor<2xf32>, @s0, [{}]> {
  // expected-error @below {{has 1 results, the body yields 2}}
  %0 = par.loop 4 (%x) : (!par.dist<tensor<4x2xf32>, @s0, [{}, {}]>) -> !par.dist<tensor<2xf32>, @s0, [{}]> {
  ^bb0(%i: tensor<i64>, %y: !par.dist<tensor<2xf32>, @s0, [{}]>):
    par.yield [sum, sum] %y, %y : !par.dist<tensor<2xf32>, @s0, [{}]>, !par.dist<tensor<2xf32>, @s0, [{}]>
  }
  par.return %0 : !par.dist<tensor<2xf32>, @s0, [{}]>
}

// -----

par.step @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = par.loop 4 (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %y: tensor<f32>):
    // expected-error @below {{expected sum or stack, found mean}}
    par.yield [mean] %y : tensor<f32>
  }
  par.return %0 : tensor<4xf32>
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.fragment @g(%x: tensor<2xf32>) -> tensor<2xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  par.return %x : tensor<2xf32>
}
par.step @f(%x: !par.dist<tensor<2xf32>, @s0, [{}]>) -> !par.dist<tensor<2xf32>, @s0, [{}]> {
  // expected-error @below {{has 2 arguments, the fragment 1}}
  %0 = par.run @g(%x, %x) : (!par.dist<tensor<2xf32>, @s0, [{}]>, !par.dist<tensor<2xf32>, @s0, [{}]>) -> !par.dist<tensor<2xf32>, @s0, [{}]>
  par.return %0 : !par.dist<tensor<2xf32>, @s0, [{}]>
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.fragment @g(%x: tensor<2xf32>) -> tensor<2xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  par.return %x : tensor<2xf32>
}
par.step @f(%x: !par.dist<tensor<2xf32>, @s0, ?>) -> !par.dist<tensor<2xf32>, @s0, ?> {
  // expected-error @below {{argument 0 of a local fragment has no sharding}}
  %0 = par.run @g(%x) : (!par.dist<tensor<2xf32>, @s0, ?>) -> !par.dist<tensor<2xf32>, @s0, ?>
  par.return %0 : !par.dist<tensor<2xf32>, @s0, ?>
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
// expected-error @below {{has 2 argument shardings, 1 arguments}}
par.fragment @g(%x: tensor<2xf32>) -> tensor<2xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>,
    shardings = [#par.sharding<[{}]>, #par.sharding<[{}]>]} {
  par.return %x : tensor<2xf32>
}

// -----

// expected-error @below {{needs a body}}
par.step @f(tensor<2xf32>) -> tensor<2xf32>

// -----

par.stage @s0 <> ranks [0]
// expected-error @below {{needs a body}}
par.fragment @f(tensor<2xf32>) -> tensor<2xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>}
