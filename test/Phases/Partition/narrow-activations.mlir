// Activations are sent in the type of the matmuls that made them; gradients of parameters and sums in f32 are not.
// RUN: par-opt %s --par-narrow-activations --par-verify-partition | FileCheck %s
// RUN: par-opt %s --par-check-phases="passes=par-narrow-activations" -o /dev/null

par.stage @s0 <"tp"=2> ranks [0, 1]
par.variable @w parameter : tensor<4x4xf32> at [!par.dist<tensor<4x4xf32>, @s0, [{}, {}]>]

// Several matmuls are added in f32, and rounded once; a single matmul rounds its sums itself.
// CHECK-LABEL: par.fragment @sums
// CHECK: %[[A:.*]] = par.dot {{.*}} -> tensor<4x4xf32>
// CHECK: %[[B:.*]] = par.dot {{.*}} -> tensor<4x4xf32>
// CHECK: %[[S:.*]] = par.add %[[A]], %[[B]] : tensor<4x4xf32>
// CHECK: %[[N:.*]] = par.convert %[[S]] : tensor<4x4xf32> to tensor<4x4xbf16>
// CHECK: %[[R:.*]] = par.all_reduce sum %[[N]] {{.*}} -> tensor<4x4xbf16>
// CHECK: %[[W:.*]] = par.convert %[[R]] : tensor<4x4xbf16> to tensor<4x4xf32>
// CHECK: %[[D:.*]] = par.dot {{.*}} -> tensor<4x4xbf16>
// CHECK: %[[T:.*]] = par.reduce_scatter sum %[[D]] {{.*}} -> tensor<2x4xbf16>
// CHECK: %[[X:.*]] = par.convert %[[T]] : tensor<2x4xbf16> to tensor<2x4xf32>
// CHECK: par.return %[[W]], %[[X]]
par.fragment @sums(%x: tensor<4x8xbf16>, %w: tensor<8x4xbf16>) -> (tensor<4x4xf32>, tensor<2x4xf32>) attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %a = par.dot %x, %w contracting [1] x [0] : (tensor<4x8xbf16>, tensor<8x4xbf16>) -> tensor<4x4xf32>
  %b = par.dot %x, %w contracting [1] x [0] : (tensor<4x8xbf16>, tensor<8x4xbf16>) -> tensor<4x4xf32>
  %s = par.add %a, %b : tensor<4x4xf32>
  %r = par.all_reduce sum %s over ["tp"] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = par.dot %x, %w contracting [1] x [0] : (tensor<4x8xbf16>, tensor<8x4xbf16>) -> tensor<4x4xf32>
  %t = par.reduce_scatter sum %c dims [0] over ["tp"] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  par.return %r, %t : tensor<4x4xf32>, tensor<2x4xf32>
}

// Rows of a table are looked up in f32, by one rank each, and read in bf16; a value converted to f32 is gathered before
// the convert.
// CHECK-LABEL: par.fragment @moves
// CHECK: %[[C:.*]] = par.select {{.*}} tensor<3x4xf32>
// CHECK: %[[N:.*]] = par.convert %[[C]]
// CHECK: %[[R:.*]] = par.all_reduce sum %[[N]] {{.*}} -> tensor<3x4xbf16>
// CHECK: %[[G:.*]] = par.all_gather %{{.*}} -> tensor<8x8xbf16>
// CHECK: %[[W:.*]] = par.convert %[[G]] : tensor<8x8xbf16> to tensor<8x8xf32>
// CHECK: par.return %[[R]], %[[W]]
par.fragment @moves(%t: tensor<8x4xf32>, %i: tensor<3xi64>, %m: tensor<3x4xi1>, %x: tensor<4x8xbf16>) -> (tensor<3x4xbf16>, tensor<8x8xf32>) attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %a = par.gather %t, %i dim 0 : tensor<8x4xf32>, tensor<3xi64> to tensor<3x4xf32>
  %z = par.constant dense<0.0> : tensor<3x4xf32>
  %c = par.select %m, %a, %z : tensor<3x4xi1>, tensor<3x4xf32>
  %r = par.all_reduce sum %c over ["tp"] : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %n = par.convert %r : tensor<3x4xf32> to tensor<3x4xbf16>
  %w = par.convert %x : tensor<4x8xbf16> to tensor<4x8xf32>
  %g = par.all_gather %w dims [0] over ["tp"] : (tensor<4x8xf32>) -> tensor<8x8xf32>
  par.return %n, %g : tensor<3x4xbf16>, tensor<8x8xf32>
}

// Values computed in f32, maxima, and rows with f32 users.
// CHECK-LABEL: par.fragment @others
// CHECK-NOT: bf16>) -> tensor<{{.*}}bf16>
// CHECK: par.all_reduce sum {{.*}} -> tensor<4xf32>
// CHECK: par.all_reduce max {{.*}} -> tensor<4x4xf32>
// CHECK: par.all_reduce sum {{.*}} -> tensor<3x4xf32>
par.fragment @others(%x: tensor<4xf32>, %y: tensor<4x8xbf16>, %w: tensor<8x4xbf16>, %t: tensor<8x4xf32>, %i: tensor<3xi64>) -> (tensor<4xbf16>, tensor<4x4xf32>, tensor<3x4xf32>, tensor<3x4xbf16>) attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %e = par.exp %x : tensor<4xf32>
  %s = par.all_reduce sum %e over ["tp"] : (tensor<4xf32>) -> tensor<4xf32>
  %n = par.convert %s : tensor<4xf32> to tensor<4xbf16>
  %d = par.dot %y, %w contracting [1] x [0] : (tensor<4x8xbf16>, tensor<8x4xbf16>) -> tensor<4x4xf32>
  %m = par.all_reduce max %d over ["tp"] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = par.gather %t, %i dim 0 : tensor<8x4xf32>, tensor<3xi64> to tensor<3x4xf32>
  %r = par.all_reduce sum %a over ["tp"] : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %b = par.convert %r : tensor<3x4xf32> to tensor<3x4xbf16>
  par.return %n, %m, %r, %b : tensor<4xbf16>, tensor<4x4xf32>, tensor<3x4xf32>, tensor<3x4xbf16>
}

// The first result is a parameter's gradient, which the loop accumulates; the second is not.
// CHECK-LABEL: par.fragment @backward
// CHECK: par.all_reduce sum {{.*}} -> tensor<4x4xf32>
// CHECK: par.all_reduce sum {{.*}} -> tensor<4x4xbf16>
par.fragment @backward(%x: tensor<4x8xbf16>, %w: tensor<8x4xbf16>) -> (tensor<4x4xf32>, tensor<4x4xf32>) attributes {stage = @s0, kind = #par.fragment_kind<backward>, local} {
  %a = par.dot %x, %w contracting [1] x [0] : (tensor<4x8xbf16>, tensor<8x4xbf16>) -> tensor<4x4xf32>
  %b = par.dot %x, %w contracting [1] x [0] : (tensor<4x8xbf16>, tensor<8x4xbf16>) -> tensor<4x4xf32>
  %s = par.all_reduce sum %a over ["tp"] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = par.all_reduce sum %b over ["tp"] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  par.return %s, %t : tensor<4x4xf32>, tensor<4x4xf32>
}

par.step @train(%x: !par.dist<tensor<2x4x8xbf16>, @s0, [{}, {}, {}]>, %w: !par.dist<tensor<8x4xbf16>, @s0, [{}, {}]>) -> !par.dist<tensor<4x4xf32>, @s0, [{}, {}]> attributes {inputs = ["x", "w"], outputs = ["y"]} {
  %g, %d = par.loop 2 (%x) {labels = ["w", ""]} : (!par.dist<tensor<2x4x8xbf16>, @s0, [{}, {}, {}]>) -> (!par.dist<tensor<4x4xf32>, @s0, [{}, {}]>, !par.dist<tensor<4x4xf32>, @s0, [{}, {}]>) {
  ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<4x8xbf16>, @s0, [{}, {}]>):
    %a, %b = par.run @backward(%xi, %w) : (!par.dist<tensor<4x8xbf16>, @s0, [{}, {}]>, !par.dist<tensor<8x4xbf16>, @s0, [{}, {}]>) -> (!par.dist<tensor<4x4xf32>, @s0, [{}, {}]>, !par.dist<tensor<4x4xf32>, @s0, [{}, {}]>)
    par.yield [sum, sum] %a, %b : !par.dist<tensor<4x4xf32>, @s0, [{}, {}]>, !par.dist<tensor<4x4xf32>, @s0, [{}, {}]>
  }
  par.return %d : !par.dist<tensor<4x4xf32>, @s0, [{}, {}]>
}
