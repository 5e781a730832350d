// What the verifiers of tensor ops and attributes refuse.
// RUN: par-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{mesh axis "dp" has size 0, expected at least 1}}
par.stage @s0 <"dp"=0> ranks []

// -----

// expected-error @below {{mesh axis "dp" occurs twice}}
par.stage @s0 <"dp"=2, "dp"=2> ranks [0, 1, 2, 3]

// -----

// expected-error @below {{axis "dp" occurs twice in a sharding}}
par.variable @w parameter : tensor<4x4xf32> sharding <[{"dp"}, {"dp"}]>

// -----

par.step @f(%x: tensor<4xf32>, %y: tensor<4x4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has 1 and 2 contracting dims}}
  %0 = "par.dot"(%x, %y) {lhs_contracting = array<i64: 0>, rhs_contracting = array<i64: 0, 1>} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

par.step @f(%x: tensor<4xf32>, %y: tensor<4x4xf32>) -> tensor<4xf32> {
  // expected-error @below {{contracting dims 1 x 0 are not within the operands}}
  %0 = par.dot %x, %y contracting [1] x [0] : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

par.step @f(%x: tensor<4xf32>, %y: tensor<5x4xf32>) -> tensor<4xf32> {
  // expected-error @below {{contracting dims 0 x 0 have sizes 4 and 5}}
  %0 = par.dot %x, %y contracting [0] x [0] : (tensor<4xf32>, tensor<5x4xf32>) -> tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

par.step @f(%x: tensor<4xf32>, %y: tensor<4x3xf32>) -> tensor<4xf32> {
  // expected-error @below {{result is 'tensor<4xf32>', expected the shape 'tensor<3xf32>'}}
  %0 = par.dot %x, %y contracting [0] x [0] : (tensor<4xf32>, tensor<4x3xf32>) -> tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

par.step @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{dim is 1, the operand has rank 1}}
  %0 = par.softmax %x dim 1 : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

par.step @f() -> tensor<4xf32> {
  // expected-error @below {{dim is 1, the result has rank 1}}
  %0 = par.iota dim 1 : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

par.step @f(%x: tensor<4xf32>) -> tensor<2x4xf32> {
  // expected-error @below {{has 2 dims, the operand has rank 1}}
  %0 = par.broadcast_in_dim %x dims [0, 1] : tensor<4xf32> to tensor<2x4xf32>
  par.return %0 : tensor<2x4xf32>
}

// -----

par.step @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{dims must rise strictly within the result's rank 2, dims[1] is 0}}
  %0 = par.broadcast_in_dim %x dims [1, 0] : tensor<4x4xf32> to tensor<4x4xf32>
  par.return %0 : tensor<4x4xf32>
}

// -----

par.step @f(%x: tensor<3xf32>) -> tensor<2x4xf32> {
  // expected-error @below {{operand dim 0 is 3, result dim 1 is 4}}
  %0 = par.broadcast_in_dim %x dims [1] : tensor<3xf32> to tensor<2x4xf32>
  par.return %0 : tensor<2x4xf32>
}

// -----

par.step @f(%x: tensor<3xf32>) -> tensor<2x2xf32> {
  // expected-error @below {{turns 'tensor<3xf32>' into 'tensor<2x2xf32>', which has other elements}}
  %0 = par.reshape %x : tensor<3xf32> to tensor<2x2xf32>
  par.return %0 : tensor<2x2xf32>
}

// -----

par.step @f(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  // expected-error @below {{failed to infer returned types}}
  // expected-error @below {{permutation does not name each dim of the operand once}}
  %0 = par.transpose %x [1, 1] : tensor<2x3xf32> to tensor<3x2xf32>
  par.return %0 : tensor<3x2xf32>
}

// -----

par.step @f(%x: tensor<4xf32>) -> tensor<2xf32> {
  // expected-error @below {{failed to infer returned types}}
  // expected-error @below {{slice [3, 5) by 1 is not within a dim of 4}}
  %0 = par.slice %x [3] to [5] by [1] : tensor<4xf32> to tensor<2xf32>
  par.return %0 : tensor<2xf32>
}

// -----

par.step @f(%x: tensor<4xf32>, %u: tensor<2xf32>, %i: tensor<1xi64>) -> tensor<4xf32> {
  // expected-error @below {{start must be a scalar}}
  %0 = par.update_slice %x, %u at %i dim 0 : tensor<4xf32>, tensor<2xf32>, tensor<1xi64>
  par.return %0 : tensor<4xf32>
}

// -----

par.step @f(%x: tensor<4xf32>, %u: tensor<5xf32>, %i: tensor<i64>) -> tensor<4xf32> {
  // expected-error @below {{update 'tensor<5xf32>' does not fit along dim 0 of 'tensor<4xf32>'}}
  %0 = par.update_slice %x, %u at %i dim 0 : tensor<4xf32>, tensor<5xf32>, tensor<i64>
  par.return %0 : tensor<4xf32>
}

// -----

par.step @f(%x: tensor<4x3xf32>, %u: tensor<2x2xf32>, %i: tensor<i64>) -> tensor<4x3xf32> {
  // expected-error @below {{update 'tensor<2x2xf32>' differs from 'tensor<4x3xf32>' in another dim than 0}}
  %0 = par.update_slice %x, %u at %i dim 0 : tensor<4x3xf32>, tensor<2x2xf32>, tensor<i64>
  par.return %0 : tensor<4x3xf32>
}
