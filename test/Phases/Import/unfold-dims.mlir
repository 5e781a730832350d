// A matmul result that is sliced into equal parts gives the variable a dim for them, and files keep its shape.
// RUN: par-opt --par-unfold-dims --split-input-file %s | FileCheck %s

// CHECK: par.variable @w parameter : tensor<64x3x64xf32> stored tensor<64x192xf32>
// CHECK: par.variable @b parameter : tensor<3x64xf32> stored tensor<192xf32>
par.variable @w parameter : tensor<64x192xf32>
par.variable @b parameter : tensor<192xf32>
// CHECK-LABEL: par.step @predict
par.step @predict(%x: tensor<8x64xf32>) -> (tensor<8x4x16xf32>, tensor<8x64xf32>) attributes {inputs = ["x"], outputs = ["q", "v"]} {
  %w = par.read @w : tensor<64x192xf32>
  %b = par.read @b : tensor<192xf32>
  // CHECK: %[[dot:.*]] = par.dot {{.*}} contracting [1] x [0] : (tensor<8x64xf32>, tensor<64x3x64xf32>) -> tensor<8x3x64xf32>
  // CHECK: %[[bias:.*]] = par.broadcast_in_dim {{.*}} dims [1, 2] : tensor<3x64xf32> to tensor<8x3x64xf32>
  // CHECK: %[[sum:.*]] = par.add %[[dot]], %[[bias]] : tensor<8x3x64xf32>
  %0 = par.dot %x, %w contracting [1] x [0] : (tensor<8x64xf32>, tensor<64x192xf32>) -> tensor<8x192xf32>
  %1 = par.broadcast_in_dim %b dims [1] : tensor<192xf32> to tensor<8x192xf32>
  %2 = par.add %0, %1 : tensor<8x192xf32>
  // CHECK: %[[q:.*]] = par.slice %[[sum]] [0, 0, 0] to [8, 1, 64]
  // CHECK: par.reshape %[[q]] : tensor<8x1x64xf32> to tensor<8x4x16xf32>
  %q = par.slice %2 [0, 0] to [8, 64] by [1, 1] : tensor<8x192xf32> to tensor<8x64xf32>
  %heads = par.reshape %q : tensor<8x64xf32> to tensor<8x4x16xf32>
  // CHECK: %[[v:.*]] = par.slice %[[sum]] [0, 2, 0] to [8, 3, 64]
  // CHECK: par.reshape %[[v]] : tensor<8x1x64xf32> to tensor<8x64xf32>
  %v = par.slice %2 [0, 128] to [8, 192] by [1, 1] : tensor<8x192xf32> to tensor<8x64xf32>
  par.return %heads, %v : tensor<8x4x16xf32>, tensor<8x64xf32>
}

// -----

// A weight with another use stays as it is.
// CHECK: par.variable @w parameter : tensor<64x192xf32>{{$}}
par.variable @w parameter : tensor<64x192xf32>
par.step @predict(%x: tensor<8x64xf32>) -> (tensor<8x96xf32>, tensor<64x192xf32>) attributes {inputs = ["x"], outputs = ["q", "w"]} {
  %w = par.read @w : tensor<64x192xf32>
  %0 = par.dot %x, %w contracting [1] x [0] : (tensor<8x64xf32>, tensor<64x192xf32>) -> tensor<8x192xf32>
  %q = par.slice %0 [0, 0] to [8, 96] by [1, 1] : tensor<8x192xf32> to tensor<8x96xf32>
  par.return %q, %w : tensor<8x96xf32>, tensor<64x192xf32>
}

// -----

// Unequal parts leave the variable as it is.
// CHECK: par.variable @w parameter : tensor<64x192xf32>{{$}}
par.variable @w parameter : tensor<64x192xf32>
par.step @predict(%x: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8x128xf32>) attributes {inputs = ["x"], outputs = ["q", "kv"]} {
  %w = par.read @w : tensor<64x192xf32>
  %0 = par.dot %x, %w contracting [1] x [0] : (tensor<8x64xf32>, tensor<64x192xf32>) -> tensor<8x192xf32>
  %q = par.slice %0 [0, 0] to [8, 64] by [1, 1] : tensor<8x192xf32> to tensor<8x64xf32>
  %kv = par.slice %0 [0, 64] to [8, 192] by [1, 1] : tensor<8x192xf32> to tensor<8x128xf32>
  par.return %q, %kv : tensor<8x64xf32>, tensor<8x128xf32>
}

// -----

// Through the gather of each token's expert, and a dim of one element.
// CHECK: par.variable @experts parameter : tensor<4x2x4x6xf32> stored tensor<4x8x6xf32>
par.variable @experts parameter : tensor<4x8x6xf32>
par.step @predict(%x: tensor<5x6x1xf32>, %ids: tensor<5xi64>) -> tensor<5x4xf32> {
  %w = par.read @experts : tensor<4x8x6xf32>
  // CHECK: par.gather {{.*}} dim 0 : tensor<4x2x4x6xf32>, tensor<5xi64> to tensor<5x2x4x6xf32>
  %e = par.gather %w, %ids dim 0 : tensor<4x8x6xf32>, tensor<5xi64> to tensor<5x8x6xf32>
  // CHECK: par.dot {{.*}} -> tensor<5x2x4x1xf32>
  %y = par.dot %e, %x contracting [2] x [1] batching [0] x [0] : (tensor<5x8x6xf32>, tensor<5x6x1xf32>) -> tensor<5x8x1xf32>
  // CHECK: par.reshape {{.*}} to tensor<5x2x4xf32>
  %r = par.reshape %y : tensor<5x8x1xf32> to tensor<5x8xf32>
  %a = par.slice %r [0, 0] to [5, 4] by [1, 1] : tensor<5x8xf32> to tensor<5x4xf32>
  %b = par.slice %r [0, 4] to [5, 8] by [1, 1] : tensor<5x8xf32> to tensor<5x4xf32>
  %c = par.multiply %a, %b : tensor<5x4xf32>
  par.return %c : tensor<5x4xf32>
}

// -----

// A reshape makes a dim of the parts, which is moved and taken apart: torch.nn.MultiheadAttention.
// CHECK: par.variable @w parameter : tensor<3x64x64xf32> stored tensor<192x64xf32>
par.variable @w parameter : tensor<192x64xf32>
par.step @predict(%x: tensor<5x8x64xf32>) -> (tensor<1x5x8x64xf32>, tensor<1x5x8x64xf32>) attributes {inputs = ["x"], outputs = ["q", "v"]} {
  %w = par.read @w : tensor<192x64xf32>
  // CHECK: %[[dot:.*]] = par.dot {{.*}} -> tensor<5x8x3x64xf32>
  // CHECK: par.reshape %[[dot]] : tensor<5x8x3x64xf32> to tensor<1x5x8x3x64xf32>
  %0 = par.dot %x, %w contracting [2] x [1] : (tensor<5x8x64xf32>, tensor<192x64xf32>) -> tensor<5x8x192xf32>
  %1 = par.reshape %0 : tensor<5x8x192xf32> to tensor<1x5x8x3x64xf32>
  %2 = par.transpose %1 [3, 1, 2, 0, 4] : tensor<1x5x8x3x64xf32> to tensor<3x5x8x1x64xf32>
  %3 = par.reshape %2 : tensor<3x5x8x1x64xf32> to tensor<3x5x8x64xf32>
  %q = par.slice %3 [0, 0, 0, 0] to [1, 5, 8, 64] by [1, 1, 1, 1] : tensor<3x5x8x64xf32> to tensor<1x5x8x64xf32>
  %v = par.slice %3 [2, 0, 0, 0] to [3, 5, 8, 64] by [1, 1, 1, 1] : tensor<3x5x8x64xf32> to tensor<1x5x8x64xf32>
  par.return %q, %v : tensor<1x5x8x64xf32>, tensor<1x5x8x64xf32>
}

// -----

// Heads of which each is taken apart lie major: the variable is as it was.
// CHECK: par.variable @w parameter : tensor<192x64xf32>{{$}}
par.variable @w parameter : tensor<192x64xf32>
par.step @predict(%x: tensor<8x64xf32>) -> tensor<8x4x1x16xf32> attributes {inputs = ["x"], outputs = ["q"]} {
  %w = par.read @w : tensor<192x64xf32>
  %0 = par.dot %x, %w contracting [1] x [1] : (tensor<8x64xf32>, tensor<192x64xf32>) -> tensor<8x192xf32>
  %1 = par.reshape %0 : tensor<8x192xf32> to tensor<8x4x3x16xf32>
  %q = par.slice %1 [0, 0, 0, 0] to [8, 4, 1, 16] by [1, 1, 1, 1] : tensor<8x4x3x16xf32> to tensor<8x4x1x16xf32>
  par.return %q : tensor<8x4x1x16xf32>
}

// -----

// Parts of a part, as in a loop over time: the outer slices unfold, and the inner ones are of the unfolded value.
// CHECK: par.variable @w parameter : tensor<64x2x96xf32> stored tensor<64x192xf32>
par.variable @w parameter : tensor<64x192xf32>
par.step @predict(%x: tensor<8x64xf32>) -> (tensor<8x48xf32>, tensor<8x96xf32>) attributes {inputs = ["x"], outputs = ["sum", "b"]} {
  %w = par.read @w : tensor<64x192xf32>
  %0 = par.dot %x, %w contracting [1] x [0] : (tensor<8x64xf32>, tensor<64x192xf32>) -> tensor<8x192xf32>
  %a = par.slice %0 [0, 0] to [8, 96] by [1, 1] : tensor<8x192xf32> to tensor<8x96xf32>
  %b = par.slice %0 [0, 96] to [8, 192] by [1, 1] : tensor<8x192xf32> to tensor<8x96xf32>
  // CHECK: %[[a:.*]] = par.reshape {{.*}} : tensor<8x1x96xf32> to tensor<8x96xf32>
  // CHECK-DAG: par.slice %[[a]] [0, 0] to [8, 48]
  // CHECK-DAG: par.slice %[[a]] [0, 48] to [8, 96]
  %first = par.slice %a [0, 0] to [8, 48] by [1, 1] : tensor<8x96xf32> to tensor<8x48xf32>
  %second = par.slice %a [0, 48] to [8, 96] by [1, 1] : tensor<8x96xf32> to tensor<8x48xf32>
  %sum = par.add %first, %second : tensor<8x48xf32>
  par.return %sum, %b : tensor<8x48xf32>, tensor<8x96xf32>
}
