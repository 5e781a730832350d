// Errors of the verifiers of windows.
// RUN: par-opt %s --split-input-file --verify-diagnostics

par.step @f(%x: tensor<2x4x8xf32>, %w: tensor<6x4x3xf32>) {
  // expected-error @below {{7 windows of 3 fit spatial dim 0 of 8 elements, its type says 8}}
  %0 = par.convolution %x, %w strides [1] low [1] high [0] dilations [1] : (tensor<2x4x8xf32>, tensor<6x4x3xf32>) -> tensor<2x6x8xf32>
  par.return
}

// -----

par.step @f(%x: tensor<2x4x8xf32>, %w: tensor<6x3x3xf32>) {
  // expected-error @below {{a filter of 6 x 3 channels in 1 groups does not take 2 x 4 to 2 x 6}}
  %0 = par.convolution %x, %w strides [1] low [1] high [1] dilations [1] : (tensor<2x4x8xf32>, tensor<6x3x3xf32>) -> tensor<2x6x8xf32>
  par.return
}

// -----

par.step @f(%x: tensor<2x4xf32>, %w: tensor<6x4xf32>) {
  // expected-error @below {{ranks are 2, 2 and 2, expected equal ones of at least 3}}
  %0 = par.convolution %x, %w strides [] low [] high [] dilations [] : (tensor<2x4xf32>, tensor<6x4xf32>) -> tensor<2x6xf32>
  par.return
}

// -----

par.step @f(%x: tensor<2x4x8xf32>) {
  // expected-error @below {{strides has 2 entries for 1 spatial dims}}
  %0 = par.max_pool %x window [2] strides [2, 2] low [0] high [0] dilations [1] : tensor<2x4x8xf32> to tensor<2x4x4xf32>
  par.return
}

// -----

par.step @f(%x: tensor<2x4x8xf32>) {
  // expected-error @below {{dilations has the entry 0, expected at least 1}}
  %0 = par.max_pool %x window [2] strides [2] low [0] high [0] dilations [0] : tensor<2x4x8xf32> to tensor<2x4x4xf32>
  par.return
}

// -----

par.step @f(%x: tensor<2x4x8xf32>) {
  // expected-error @below {{leading dims differ}}
  %0 = par.max_pool %x window [2] strides [2] low [0] high [0] dilations [1] : tensor<2x4x8xf32> to tensor<2x3x4xf32>
  par.return
}

// -----

par.step @f(%x: tensor<2x4x8xf32>) {
  // expected-error @below {{element types differ}}
  %0 = par.max_pool %x window [2] strides [2] low [0] high [0] dilations [1] : tensor<2x4x8xf32> to tensor<2x4x4xf64>
  par.return
}

// -----

par.step @f(%x: tensor<2x4x8xf32>) {
  // expected-error @below {{'tensor<2x4x4x3xf32>' does not end in its window}}
  %0 = par.patches %x window [2] strides [2] low [0] high [0] dilations [1] value 0.0 : f32 : tensor<2x4x8xf32> to tensor<2x4x4x3xf32>
  par.return
}

// -----

par.step @f(%x: tensor<2x4x8xf32>) {
  // expected-error @below {{pads with 0 : i64, its operand is 'tensor<2x4x8xf32>'}}
  %0 = par.patches %x window [2] strides [2] low [0] high [0] dilations [1] value 0 : i64 : tensor<2x4x8xf32> to tensor<2x4x4x2xf32>
  par.return
}

// -----

par.step @f(%x: tensor<4xf32>) {
  // expected-error @below {{has 2 strides for 'tensor<4xf32>'}}
  %0 = par.fold_patches %x strides [2, 1] low [0] high [0] dilations [1] : tensor<4xf32> to tensor<8xf32>
  par.return
}
