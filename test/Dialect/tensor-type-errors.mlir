// Errors of tensor ops in the inference of their result types.
// RUN: par-opt %s --split-input-file --verify-diagnostics

par.step @f(%x: tensor<4x8xf32>, %i: tensor<3xi64>) -> tensor<9x8xf32> {
  // expected-error @below {{updates 'tensor<4x8xf32>' do not hold the indices' dims at dim 0}}
  // expected-error @below {{failed to infer returned types}}
  %0 = par.index_add %x, %i dim 0 size 9 : tensor<4x8xf32>, tensor<3xi64> to tensor<9x8xf32>
  par.return %0 : tensor<9x8xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>, %i: tensor<3xi64>) -> tensor<3xf32> {
  // expected-error @below {{operand 'tensor<4x8xf32>' and indices 'tensor<3xi64>' must agree in all dims but 1}}
  // expected-error @below {{failed to infer returned types}}
  %0 = par.take %x, %i dim 1 : tensor<4x8xf32>, tensor<3xi64> to tensor<3xf32>
  par.return %0 : tensor<3xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>, %i: tensor<3xi64>) -> tensor<4x9xf32> {
  // expected-error @below {{updates 'tensor<4x8xf32>' and indices 'tensor<3xi64>' must have one shape}}
  // expected-error @below {{failed to infer returned types}}
  %0 = par.scatter_add %x, %i dim 1 size 9 : tensor<4x8xf32>, tensor<3xi64> to tensor<4x9xf32>
  par.return %0 : tensor<4x9xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>, %i: tensor<3xi64>) -> tensor<3xf32> {
  // expected-error @below {{logits 'tensor<4x8xf32>' must have the dims of labels 'tensor<3xi64>' and one of classes}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1 = par.cross_entropy %x, %i ignore -100 : (tensor<4x8xf32>, tensor<3xi64>) -> (tensor<3xf32>, tensor<3xf32>)
  par.return %0 : tensor<3xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>, %w: tensor<4xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{scale 'tensor<4xf32>' and bias 'tensor<4xf32>' must have the shape of the trailing dims of 'tensor<4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1, %2 = par.layer_norm %x, %w, %w epsilon 1.0e-5
      : (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  par.return %0 : tensor<4x8xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  // expected-error @below {{dims must name different dims of 'tensor<4x8xf32>', found 1}}
  // expected-error @below {{failed to infer returned types}}
  %0 = par.reduce sum %x dims [1, 1] : tensor<4x8xf32> to tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>) -> tensor<2x8xf32> {
  // expected-error @below {{starts, limits and strides must have the operand's rank 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = par.slice %x [0] to [2] by [1] : tensor<4x8xf32> to tensor<2x8xf32>
  par.return %0 : tensor<2x8xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>, %s: tensor<i64>) -> tensor<5x8xf32> {
  // expected-error @below {{dim 0 with size 5 is not within the operand}}
  // expected-error @below {{failed to infer returned types}}
  %0 = par.dynamic_slice %x at %s dim 0 size 5 : tensor<4x8xf32>, tensor<i64> to tensor<5x8xf32>
  par.return %0 : tensor<5x8xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>) -> tensor<5x8xf32> {
  // expected-error @below {{low and high must have the operand's rank 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = par.pad %x low [1] high [0] value 0.0 : f32 : tensor<4x8xf32> to tensor<5x8xf32>
  par.return %0 : tensor<5x8xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{needs at least one operand}}
  // expected-error @below {{failed to infer returned types}}
  %0 = "par.concat"() {dim = 0 : i64} : () -> tensor<4x8xf32>
  par.return %0 : tensor<4x8xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{dim is 2, the operands have rank 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = par.concat %x, %x dim 2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  par.return %0 : tensor<4x8xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>, %y: tensor<8xf32>) -> tensor<5x8xf32> {
  // expected-error @below {{operands have ranks 2 and 1}}
  // expected-error @below {{failed to infer returned types}}
  %0 = par.concat %x, %y dim 0 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  par.return %0 : tensor<5x8xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>, %y: tensor<4x9xf32>) -> tensor<8x8xf32> {
  // expected-error @below {{operands differ in another dim than 0}}
  // expected-error @below {{failed to infer returned types}}
  %0 = par.concat %x, %y dim 0 : (tensor<4x8xf32>, tensor<4x9xf32>) -> tensor<8x8xf32>
  par.return %0 : tensor<8x8xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>) -> tensor<8x8xf32> {
  // expected-error @below {{permutation does not name each dim of the operand once}}
  // expected-error @below {{failed to infer returned types}}
  %0 = par.transpose %x [1, 1] : tensor<4x8xf32> to tensor<8x8xf32>
  par.return %0 : tensor<8x8xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>, %i: tensor<3xi64>) -> tensor<4x8x3xf32> {
  // expected-error @below {{dim is 2, the operand has rank 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = par.gather %x, %i dim 2 : tensor<4x8xf32>, tensor<3xi64> to tensor<4x8x3xf32>
  par.return %0 : tensor<4x8x3xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>) -> tensor<4x7xf32> {
  // expected-error @below {{padding must not be negative; use par.slice}}
  // expected-error @below {{failed to infer returned types}}
  %0 = par.pad %x low [0, -1] high [0, 0] value 0.0 : f32 : tensor<4x8xf32> to tensor<4x7xf32>
  par.return %0 : tensor<4x7xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{permutation has 1 dims, the operand has rank 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = par.transpose %x [0] : tensor<4x8xf32> to tensor<4x8xf32>
  par.return %0 : tensor<4x8xf32>
}

// -----

par.step @f(%x: tensor<4x8xf32>, %i: tensor<3xi64>) -> tensor<4x9xf32> {
  // expected-error @below {{updates 'tensor<4x8xf32>' and indices 'tensor<3xi64>' must have one shape}}
  // expected-error @below {{failed to infer returned types}}
  %0 = par.scatter_reduce max %x, %i dim 1 size 9 : tensor<4x8xf32>, tensor<3xi64> to tensor<4x9xf32>
  par.return %0 : tensor<4x9xf32>
}

// -----

par.step @f(%x: tensor<4xf32>) -> tensor<4xi64> {
  // expected-error @below {{dim is 1, the operand has rank 1}}
  // expected-error @below {{failed to infer returned types}}
  %0 = par.sorted_position %x dim 1 : tensor<4xf32> to tensor<4xi64>
  par.return %0 : tensor<4xi64>
}

// -----

par.step @f(%q: tensor<2x4x8x16xf32>, %k: tensor<2x3x8x16xf32>) -> tensor<2x4x8x16xf32> {
  // expected-error @below {{has queries 'tensor<2x4x8x16xf32>' for keys 'tensor<2x3x8x16xf32>', expected the same batch and head dim, and heads of the queries for each of the keys'}}
  %0, %lse = par.attention %q, %k, %k scale 0.25
      : (tensor<2x4x8x16xf32>, tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  par.return %0 : tensor<2x4x8x16xf32>
}

// -----

par.step @f(%q: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf64>) -> tensor<2x4x8x16xf32> {
  // expected-error @below {{takes 'tensor<2x4x8x16xf32>', 'tensor<2x4x8x16xf32>' and 'tensor<2x4x8x16xf64>', expected batch, heads, sequence and head dim of one element type}}
  %0, %lse = par.attention %q, %q, %v scale 0.25
      : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf64>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  par.return %0 : tensor<2x4x8x16xf32>
}

// -----

par.step @f(%q: tensor<2x4x8x16xf32>, %v: tensor<2x4x9x16xf32>) -> tensor<2x4x8x16xf32> {
  // expected-error @below {{has keys 'tensor<2x4x8x16xf32>' and values 'tensor<2x4x9x16xf32>', which differ before the last dim}}
  %0, %lse = par.attention %q, %q, %v scale 0.25
      : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x9x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  par.return %0 : tensor<2x4x8x16xf32>
}

// -----

par.step @f(%q: tensor<2x4x8x16xf32>, %m: tensor<1x2x8x8xf32>) -> tensor<2x4x8x16xf32> {
  // expected-error @below {{has the mask 'tensor<1x2x8x8xf32>' for scores 'tensor<2x4x8x8xf32>', expected its dims or 1}}
  %0, %lse = par.attention %q, %q, %q mask %m scale 0.25
      : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<1x2x8x8xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  par.return %0 : tensor<2x4x8x16xf32>
}

// -----

par.step @f(%q: tensor<2x4x8x16xbf16>) -> tensor<2x4x8x16xbf16> {
  // expected-error @below {{has lse 'tensor<2x4x8xbf16>', expected 'tensor<2x4x8xf32>'}}
  %0, %lse = par.attention %q, %q, %q scale 0.25
      : (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>) -> (tensor<2x4x8x16xbf16>, tensor<2x4x8xbf16>)
  par.return %0 : tensor<2x4x8x16xbf16>
}
