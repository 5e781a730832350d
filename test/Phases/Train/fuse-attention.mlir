// Matmuls, a softmax and matmuls again are one op if they are of bf16 or f16, and on a cpu if they are of f32.
// RUN: par-opt %s --par-fuse-attention --split-input-file | FileCheck %s
// RUN: par-opt %s --par-fuse-attention=device=cpu --split-input-file | FileCheck %s --check-prefix=CPU --implicit-check-not=par.attention
// RUN: par-opt %s --split-input-file --par-check-phases=passes=par-fuse-attention -o /dev/null

// As PyTorch's exporter writes scaled_dot_product_attention: the root of the factor on either side, NaN to 0.
// CHECK-LABEL: par.step @eval
// CHECK-SAME: (%[[Q:.*]]: tensor<2x8x4x16xbf16>, %[[K:[^:]*]]: tensor<2x8x4x16xbf16>, %[[V:[^:]*]]: tensor<2x8x4x16xbf16>)
// CHECK-DAG: %[[QT:.*]] = par.transpose %[[Q]] [0, 2, 1, 3]
// CHECK-DAG: %[[KT:.*]] = par.transpose %[[K]] [0, 2, 1, 3]
// CHECK-DAG: %[[VT:.*]] = par.transpose %[[V]] [0, 2, 1, 3]
// CHECK: %[[O:.*]], %{{.*}} = par.attention %[[QT]], %[[KT]], %[[VT]] scale 2.500000e-01 {causal = true, stage = 3 : i64}
// CHECK-SAME: -> (tensor<2x4x8x16xbf16>, tensor<2x4x8xf32>)
// CHECK-NEXT: par.return %[[O]]
par.step @eval(%q: tensor<2x8x4x16xbf16>, %k: tensor<2x8x4x16xbf16>, %v: tensor<2x8x4x16xbf16>) -> tensor<2x4x8x16xbf16>
    attributes {inputs = ["q", "k", "v"]} {
  %half = par.constant dense<0.5> : tensor<f32>
  %hq = par.broadcast_in_dim %half dims [] : tensor<f32> to tensor<2x4x8x16xf32>
  %nq = par.convert %hq : tensor<2x4x8x16xf32> to tensor<2x4x8x16xbf16>
  %tq = par.transpose %q [0, 2, 1, 3] : tensor<2x8x4x16xbf16> to tensor<2x4x8x16xbf16>
  %sq = par.multiply %tq, %nq : tensor<2x4x8x16xbf16>
  %tk = par.transpose %k [0, 2, 3, 1] : tensor<2x8x4x16xbf16> to tensor<2x4x16x8xbf16>
  %hk = par.broadcast_in_dim %half dims [] : tensor<f32> to tensor<2x4x16x8xf32>
  %wk = par.convert %tk : tensor<2x4x16x8xbf16> to tensor<2x4x16x8xf32>
  %xk = par.multiply %wk, %hk : tensor<2x4x16x8xf32>
  %sk = par.convert %xk : tensor<2x4x16x8xf32> to tensor<2x4x16x8xbf16>
  %s = par.dot %sq, %sk contracting [3] x [2] batching [0, 1] x [0, 1] {stage = 3 : i64}
      : (tensor<2x4x8x16xbf16>, tensor<2x4x16x8xbf16>) -> tensor<2x4x8x8xf32>
  %row = par.iota dim 0 : tensor<8x8xi64>
  %column = par.iota dim 1 : tensor<8x8xi64>
  %meets = par.compare le %column, %row : tensor<8x8xi64>
  %zero = par.constant dense<0.0> : tensor<8x8xf32>
  %low = par.constant dense<-3.40282347E+38> : tensor<8x8xf32>
  %mask = par.select %meets, %zero, %low : tensor<8x8xi1>, tensor<8x8xf32>
  %masks = par.broadcast_in_dim %mask dims [2, 3] : tensor<8x8xf32> to tensor<2x4x8x8xf32>
  %masked = par.add %s, %masks : tensor<2x4x8x8xf32>
  %p = par.softmax %masked dim 3 safe : tensor<2x4x8x8xf32>
  %np = par.convert %p : tensor<2x4x8x8xf32> to tensor<2x4x8x8xbf16>
  %tv = par.transpose %v [0, 2, 1, 3] : tensor<2x8x4x16xbf16> to tensor<2x4x8x16xbf16>
  %o = par.dot %np, %tv contracting [3] x [2] batching [0, 1] x [0, 1] {stage = 3 : i64}
      : (tensor<2x4x8x8xbf16>, tensor<2x4x8x16xbf16>) -> tensor<2x4x8x16xbf16>
  par.return %o : tensor<2x4x8x16xbf16>
}

// -----

// A factor after the matmul; a mask of the batch, broadcast to heads and queries; heads that share keys and values.
// CHECK-LABEL: par.step @eval
// CHECK-SAME: (%[[Q:.*]]: tensor<2x4x8x16xf16>, %[[K:[^:]*]]: tensor<2x2x6x16xf16>, %[[W:[^:]*]]: tensor<2x6xi1>)
// CHECK: %[[M:.*]] = par.reshape %{{.*}} : tensor<2x6xf32> to tensor<2x1x1x6xf32>
// CHECK: par.attention %[[Q]], %[[K]], %[[K]] mask %[[M]] scale 1.250000e-01 :
par.step @eval(%q: tensor<2x4x8x16xf16>, %k: tensor<2x2x6x16xf16>, %w: tensor<2x6xi1>) -> tensor<2x4x8x16xf16>
    attributes {inputs = ["q", "k", "w"]} {
  %rk = par.broadcast_in_dim %k dims [0, 1, 3, 4] : tensor<2x2x6x16xf16> to tensor<2x2x2x6x16xf16>
  %hk = par.reshape %rk : tensor<2x2x2x6x16xf16> to tensor<2x4x6x16xf16>
  %s = par.dot %q, %hk contracting [3] x [3] batching [0, 1] x [0, 1]
      : (tensor<2x4x8x16xf16>, tensor<2x4x6x16xf16>) -> tensor<2x4x8x6xf32>
  %eight = par.constant dense<8.0> : tensor<2x4x8x6xf32>
  %scaled = par.divide %s, %eight : tensor<2x4x8x6xf32>
  %zero = par.constant dense<0.0> : tensor<2x6xf32>
  %low = par.constant dense<-1.0e+30> : tensor<2x6xf32>
  %mask = par.select %w, %zero, %low : tensor<2x6xi1>, tensor<2x6xf32>
  %masks = par.broadcast_in_dim %mask dims [0, 3] : tensor<2x6xf32> to tensor<2x4x8x6xf32>
  %masked = par.add %scaled, %masks : tensor<2x4x8x6xf32>
  %p = par.softmax %masked dim 3 : tensor<2x4x8x6xf32>
  %np = par.convert %p : tensor<2x4x8x6xf32> to tensor<2x4x8x6xf16>
  %o = par.dot %np, %hk contracting [3] x [2] batching [0, 1] x [0, 1]
      : (tensor<2x4x8x6xf16>, tensor<2x4x6x16xf16>) -> tensor<2x4x8x16xf16>
  par.return %o : tensor<2x4x8x16xf16>
}

// -----

// Scores masked where a condition does not hold.
// CHECK-LABEL: par.step @eval
// CHECK: par.attention %{{.*}} scale 1.000000e+00 {causal = true}
par.step @eval(%q: tensor<1x2x4x8xbf16>) -> tensor<1x2x4x8xbf16> attributes {inputs = ["q"]} {
  %s = par.dot %q, %q contracting [3] x [3] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x4xbf16>
  %meets = par.constant dense<[[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]]> : tensor<4x4xi1>
  %all = par.broadcast_in_dim %meets dims [2, 3] : tensor<4x4xi1> to tensor<1x2x4x4xi1>
  %low = par.constant dense<0xFF80> : tensor<1x2x4x4xbf16>
  %masked = par.select %all, %s, %low : tensor<1x2x4x4xi1>, tensor<1x2x4x4xbf16>
  %p = par.softmax %masked dim 3 : tensor<1x2x4x4xbf16>
  %o = par.dot %p, %q contracting [3] x [2] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x4xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x8xbf16>
  par.return %o : tensor<1x2x4x8xbf16>
}

// -----

// The mask may stand first in the sum, and a factor be no f32.
// CHECK-LABEL: par.step @eval
// CHECK: par.attention %{{.*}} scale 0.090000007{{[0-9]*}} {causal = true}
par.step @eval(%q: tensor<2x4x8x16xf16>, %k: tensor<2x4x8x16xf16>) -> tensor<2x4x8x16xf16>
    attributes {inputs = ["q", "k"]} {
  %root = par.constant dense<0.3> : tensor<2x4x8x16xf32>
  %narrow = par.convert %root : tensor<2x4x8x16xf32> to tensor<2x4x8x16xf16>
  %sq = par.multiply %q, %narrow : tensor<2x4x8x16xf16>
  %sk = par.multiply %k, %narrow : tensor<2x4x8x16xf16>
  %s = par.dot %sq, %sk contracting [3] x [3] batching [0, 1] x [0, 1]
      : (tensor<2x4x8x16xf16>, tensor<2x4x8x16xf16>) -> tensor<2x4x8x8xf32>
  %row = par.iota dim 0 : tensor<8x8xi64>
  %column = par.iota dim 1 : tensor<8x8xi64>
  %meets = par.compare le %column, %row : tensor<8x8xi64>
  %zero = par.constant dense<0.0> : tensor<8x8xf32>
  %low = par.constant dense<-3.40282347E+38> : tensor<8x8xf32>
  %mask = par.select %meets, %zero, %low : tensor<8x8xi1>, tensor<8x8xf32>
  %masks = par.broadcast_in_dim %mask dims [2, 3] : tensor<8x8xf32> to tensor<2x4x8x8xf32>
  %masked = par.add %masks, %s : tensor<2x4x8x8xf32>
  %p = par.softmax %masked dim 3 : tensor<2x4x8x8xf32>
  %np = par.convert %p : tensor<2x4x8x8xf32> to tensor<2x4x8x8xf16>
  %o = par.dot %np, %k contracting [3] x [2] batching [0, 1] x [0, 1]
      : (tensor<2x4x8x8xf16>, tensor<2x4x8x16xf16>) -> tensor<2x4x8x16xf16>
  par.return %o : tensor<2x4x8x16xf16>
}

// -----

// masked_fill with a condition's negation: the hidden value is the first operand. No match if it hides the diagonal,
// too.
// CHECK-LABEL: par.step @eval
// CHECK: par.attention %{{.*}} scale 1.000000e+00 {causal = true}
// CHECK-NOT: par.attention
par.step @eval(%q: tensor<1x2x4x8xbf16>) -> (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>) attributes {inputs = ["q"]} {
  %low = par.constant dense<0xFF80> : tensor<1x2x4x4xbf16>
  %row = par.iota dim 0 : tensor<4x4xi64>
  %column = par.iota dim 1 : tensor<4x4xi64>
  %meets = par.compare le %column, %row : tensor<4x4xi64>
  %hidden = par.not %meets : tensor<4x4xi1>
  %hiddens = par.broadcast_in_dim %hidden dims [2, 3] : tensor<4x4xi1> to tensor<1x2x4x4xi1>
  %s = par.dot %q, %q contracting [3] x [3] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x4xbf16>
  %masked = par.select %hiddens, %low, %s : tensor<1x2x4x4xi1>, tensor<1x2x4x4xbf16>
  %p = par.softmax %masked dim 3 : tensor<1x2x4x4xbf16>
  %o = par.dot %p, %q contracting [3] x [2] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x4xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x8xbf16>
  %more = par.compare le %row, %column : tensor<4x4xi64>
  %mores = par.broadcast_in_dim %more dims [2, 3] : tensor<4x4xi1> to tensor<1x2x4x4xi1>
  %s2 = par.dot %q, %o contracting [3] x [3] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x4xbf16>
  %finite = par.constant dense<-1.0e+30> : tensor<1x2x4x4xbf16>
  %masked2 = par.select %mores, %finite, %s2 : tensor<1x2x4x4xi1>, tensor<1x2x4x4xbf16>
  %p2 = par.softmax %masked2 dim 3 : tensor<1x2x4x4xbf16>
  %o2 = par.dot %p2, %q contracting [3] x [2] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x4xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x8xbf16>
  par.return %o, %o2 : tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>
}

// -----

// The lowest number of bf16 is finite.
// CHECK-LABEL: par.step @eval
// CHECK: par.attention %{{.*}} mask
par.step @eval(%q: tensor<1x2x4x8xbf16>, %w: tensor<4x4xi1>) -> tensor<1x2x4x8xbf16> attributes {inputs = ["q", "w"]} {
  %s = par.dot %q, %q contracting [3] x [3] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x4xbf16>
  %zero = par.constant dense<0.0> : tensor<4x4xbf16>
  %low = par.constant dense<0xFF7F> : tensor<4x4xbf16>
  %mask = par.select %w, %zero, %low : tensor<4x4xi1>, tensor<4x4xbf16>
  %masks = par.broadcast_in_dim %mask dims [2, 3] : tensor<4x4xbf16> to tensor<1x2x4x4xbf16>
  %masked = par.add %s, %masks : tensor<1x2x4x4xbf16>
  %p = par.softmax %masked dim 3 : tensor<1x2x4x4xbf16>
  %o = par.dot %p, %q contracting [3] x [2] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x4xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x8xbf16>
  par.return %o : tensor<1x2x4x8xbf16>
}

// -----

// Not: keys of two groups beside values of four.
// CHECK-LABEL: par.step @eval
// CHECK-NOT: par.attention
par.step @eval(%q: tensor<2x8x8x16xf16>, %k: tensor<2x2x6x16xf16>, %v: tensor<2x4x6x16xf16>) -> tensor<2x8x8x16xf16>
    attributes {inputs = ["q", "k", "v"]} {
  %rk = par.broadcast_in_dim %k dims [0, 1, 3, 4] : tensor<2x2x6x16xf16> to tensor<2x2x4x6x16xf16>
  %hk = par.reshape %rk : tensor<2x2x4x6x16xf16> to tensor<2x8x6x16xf16>
  %rv = par.broadcast_in_dim %v dims [0, 1, 3, 4] : tensor<2x4x6x16xf16> to tensor<2x4x2x6x16xf16>
  %hv = par.reshape %rv : tensor<2x4x2x6x16xf16> to tensor<2x8x6x16xf16>
  %s = par.dot %q, %hk contracting [3] x [3] batching [0, 1] x [0, 1]
      : (tensor<2x8x8x16xf16>, tensor<2x8x6x16xf16>) -> tensor<2x8x8x6xf32>
  %p = par.softmax %s dim 3 : tensor<2x8x8x6xf32>
  %np = par.convert %p : tensor<2x8x8x6xf32> to tensor<2x8x8x6xf16>
  %o = par.dot %np, %hv contracting [3] x [2] batching [0, 1] x [0, 1]
      : (tensor<2x8x8x6xf16>, tensor<2x8x6x16xf16>) -> tensor<2x8x8x16xf16>
  par.return %o : tensor<2x8x8x16xf16>
}

// -----

// No match: f32; on a cpu only f32.
// CHECK-LABEL: par.step @eval
// CHECK-NOT: par.attention
// CPU: par.step @eval(%[[Q:.*]]: tensor<1x2x4x8xf32>)
// CPU-NEXT: par.attention %[[Q]], %[[Q]], %[[Q]] scale 1.000000e+00 :
par.step @eval(%q: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> attributes {inputs = ["q"]} {
  %s = par.dot %q, %q contracting [3] x [3] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x4xf32>
  %p = par.softmax %s dim 3 : tensor<1x2x4x4xf32>
  %o = par.dot %p, %q contracting [3] x [2] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  par.return %o : tensor<1x2x4x8xf32>
}

// -----

// Not: the probabilities are a result, too.
// CHECK-LABEL: par.step @eval
// CHECK-NOT: par.attention
par.step @eval(%q: tensor<1x2x4x8xbf16>) -> (tensor<1x2x4x8xbf16>, tensor<1x2x4x4xbf16>) attributes {inputs = ["q"]} {
  %s = par.dot %q, %q contracting [3] x [3] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x4xbf16>
  %p = par.softmax %s dim 3 : tensor<1x2x4x4xbf16>
  %o = par.dot %p, %q contracting [3] x [2] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x4xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x8xbf16>
  par.return %o, %p : tensor<1x2x4x8xbf16>, tensor<1x2x4x4xbf16>
}

// -----

// Not: a mask that may hide all of a row at minus infinity, and one that is learned.
// CHECK-LABEL: par.step @eval
// CHECK-NOT: par.attention
par.variable @bias parameter : tensor<4x4xbf16>
par.step @eval(%q: tensor<1x2x4x8xbf16>, %w: tensor<4x4xi1>) -> (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>)
    attributes {inputs = ["q", "w"]} {
  %s = par.dot %q, %q contracting [3] x [3] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x4xbf16>
  %zero = par.constant dense<0.0> : tensor<4x4xbf16>
  %low = par.constant dense<0xFF80> : tensor<4x4xbf16>
  %mask = par.select %w, %zero, %low : tensor<4x4xi1>, tensor<4x4xbf16>
  %masks = par.broadcast_in_dim %mask dims [2, 3] : tensor<4x4xbf16> to tensor<1x2x4x4xbf16>
  %masked = par.add %s, %masks : tensor<1x2x4x4xbf16>
  %p = par.softmax %masked dim 3 : tensor<1x2x4x4xbf16>
  %o = par.dot %p, %q contracting [3] x [2] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x4xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x8xbf16>
  %s2 = par.dot %q, %o contracting [3] x [3] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x4xbf16>
  %bias = par.read @bias : tensor<4x4xbf16>
  %biases = par.broadcast_in_dim %bias dims [2, 3] : tensor<4x4xbf16> to tensor<1x2x4x4xbf16>
  %biased = par.add %s2, %biases : tensor<1x2x4x4xbf16>
  %p2 = par.softmax %biased dim 3 : tensor<1x2x4x4xbf16>
  %o2 = par.dot %p2, %o contracting [3] x [2] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x4xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x8xbf16>
  par.return %o, %o2 : tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>
}

// -----

// A causal sum and a mask that lowers scores by much less.
// CHECK-LABEL: par.step @eval
// CHECK: par.attention %{{.*}} mask %{{.*}} {causal = true}
par.step @eval(%q: tensor<1x2x4x8xbf16>, %w: tensor<4xi1>) -> tensor<1x2x4x8xbf16> attributes {inputs = ["q", "w"]} {
  %s = par.dot %q, %q contracting [3] x [3] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x4xf32>
  %zero = par.constant dense<0.0> : tensor<4x4xf32>
  %hidden = par.constant dense<-1.0e9> : tensor<4x4xf32>
  %row = par.iota dim 0 : tensor<4x4xi64>
  %column = par.iota dim 1 : tensor<4x4xi64>
  %meets = par.compare le %column, %row : tensor<4x4xi64>
  %causal = par.select %meets, %zero, %hidden : tensor<4x4xi1>, tensor<4x4xf32>
  %causals = par.broadcast_in_dim %causal dims [2, 3] : tensor<4x4xf32> to tensor<1x2x4x4xf32>
  %seen = par.add %s, %causals : tensor<1x2x4x4xf32>
  %none = par.constant dense<0.0> : tensor<4xf32>
  %low = par.constant dense<-1.0e5> : tensor<4xf32>
  %mask = par.select %w, %none, %low : tensor<4xi1>, tensor<4xf32>
  %masks = par.broadcast_in_dim %mask dims [3] : tensor<4xf32> to tensor<1x2x4x4xf32>
  %masked = par.add %seen, %masks : tensor<1x2x4x4xf32>
  %p = par.softmax %masked dim 3 : tensor<1x2x4x4xf32>
  %np = par.convert %p : tensor<1x2x4x4xf32> to tensor<1x2x4x4xbf16>
  %o = par.dot %np, %q contracting [3] x [2] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x4xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x8xbf16>
  par.return %o : tensor<1x2x4x8xbf16>
}

// -----

// No match: a mask that lowers scores by a constant. If it hides all keys of the first query, this attends to hidden
// keys, which an attention never does.
// CHECK-LABEL: par.step @eval
// CHECK-NOT: par.attention
par.step @eval(%q: tensor<1x2x4x8xbf16>, %w: tensor<4xi1>) -> tensor<1x2x4x8xbf16> attributes {inputs = ["q", "w"]} {
  %s = par.dot %q, %q contracting [3] x [3] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x4xf32>
  %zero = par.constant dense<0.0> : tensor<4x4xf32>
  %hidden = par.constant dense<-1.0e9> : tensor<4x4xf32>
  %row = par.iota dim 0 : tensor<4x4xi64>
  %column = par.iota dim 1 : tensor<4x4xi64>
  %meets = par.compare le %column, %row : tensor<4x4xi64>
  %causal = par.select %meets, %zero, %hidden : tensor<4x4xi1>, tensor<4x4xf32>
  %causals = par.broadcast_in_dim %causal dims [2, 3] : tensor<4x4xf32> to tensor<1x2x4x4xf32>
  %seen = par.add %s, %causals : tensor<1x2x4x4xf32>
  %none = par.constant dense<0.0> : tensor<4xf32>
  %low = par.constant dense<-1.0e9> : tensor<4xf32>
  %mask = par.select %w, %none, %low : tensor<4xi1>, tensor<4xf32>
  %masks = par.broadcast_in_dim %mask dims [3] : tensor<4xf32> to tensor<1x2x4x4xf32>
  %masked = par.add %seen, %masks : tensor<1x2x4x4xf32>
  %p = par.softmax %masked dim 3 : tensor<1x2x4x4xf32>
  %np = par.convert %p : tensor<1x2x4x4xf32> to tensor<1x2x4x4xbf16>
  %o = par.dot %np, %q contracting [3] x [2] batching [0, 1] x [0, 1]
      : (tensor<1x2x4x4xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4x8xbf16>
  par.return %o : tensor<1x2x4x8xbf16>
}
