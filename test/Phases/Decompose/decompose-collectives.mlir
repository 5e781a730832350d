// All-gathers with the matmuls that read them, and matmuls with the reduce-scatters of their results, in chunks: the
// numbers stay.
// RUN: par-opt %s --par-decompose-collectives=chunks=2 | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-decompose-collectives{chunks=2}' -o /dev/null
// RUN: par-opt %s --par-check-phases='passes=par-decompose-collectives{chunks=2},par-flatten-collectives' -o /dev/null
// RUN: par-opt %s --par-check-phases='passes=par-decompose-collectives{chunks=4}' -o /dev/null
// RUN: par-opt %s --par-decompose-collectives=chunks=1 | FileCheck %s --check-prefix=NONE
// The machine of cpu.yaml does one thing at a time; these are too small for the other.
// RUN: par-opt %s --par-decompose-collectives | FileCheck %s --check-prefix=NONE
// RUN: par-opt %s --par-decompose-collectives=hardware=h100-sxm | FileCheck %s --check-prefix=NONE
// RUN: not par-opt %s --par-decompose-collectives=hardware=abacus 2>&1 | FileCheck %s --check-prefix=ABACUS

// NONE-NOT: par.concat
// ABACUS: error: abacus: no hardware file of this name

par.stage @s0 <"tp"=2> ranks [0, 1]

// Along another dim than the gathered one, chunks are slices of the gathers and of the matmul after them. If another
// matmul contracts that dim, its chunks are added up, and its other operand is sliced alike.
// CHECK-LABEL: par.fragment @step.s0.rows
// CHECK: %[[X:.*]] = par.add
// CHECK: %[[A:.*]] = par.slice %[[X]] [0, 0, 0] to [2, 2, 6]
// CHECK: %[[GA:.*]] = par.all_gather %[[A]] dims [1] over ["tp"] : (tensor<2x2x6xf32>) -> tensor<2x4x6xf32>
// CHECK: %[[B:.*]] = par.slice %[[X]] [2, 0, 0] to [4, 2, 6]
// CHECK: %[[GB:.*]] = par.all_gather %[[B]]
// CHECK: %[[DA:.*]] = par.dot %[[GA]], %{{.*}} contracting [2] x [0]
// CHECK: %[[DB:.*]] = par.dot %[[GB]], %{{.*}} contracting [2] x [0]
// CHECK: par.concat %[[DA]], %[[DB]] dim 0
// CHECK: %[[YA:.*]] = par.slice %{{.*}} [0, 0, 0] to [2, 4, 3]
// CHECK: %[[SA:.*]] = par.dot %[[GA]], %[[YA]] contracting [0, 1] x [0, 1]
// CHECK: %[[SB:.*]] = par.dot %[[GB]], %{{.*}} contracting [0, 1] x [0, 1]
// CHECK: par.add %[[SA]], %[[SB]]
par.fragment @step.s0.rows(%s: tensor<4x2x6xf32>, %w: tensor<6x3xf32>, %y: tensor<4x4x3xf32>) -> (tensor<4x4x3xf32>, tensor<6x3xf32>) attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %x = par.add %s, %s : tensor<4x2x6xf32>
  %g = par.all_gather %x dims [1] over ["tp"] : (tensor<4x2x6xf32>) -> tensor<4x4x6xf32>
  %d = par.dot %g, %w contracting [2] x [0] : (tensor<4x4x6xf32>, tensor<6x3xf32>) -> tensor<4x4x3xf32>
  %s2 = par.dot %g, %y contracting [0, 1] x [0, 1] : (tensor<4x4x6xf32>, tensor<4x4x3xf32>) -> tensor<6x3xf32>
  par.return %d, %s2 : tensor<4x4x3xf32>, tensor<6x3xf32>
}
// With one row the gathered dim is cut: a chunk has the same part of each member's shard.
// CHECK-LABEL: par.fragment @step.s0.shares
// CHECK: %[[A:.*]] = par.slice %{{.*}} [0, 0, 0] to [1, 4, 3]
// CHECK: par.all_gather %[[A]] dims [1] over ["tp"] : (tensor<1x4x3xf32>) -> tensor<1x8x3xf32>
// CHECK: par.dot
// CHECK: par.dot
// CHECK: %[[P:.*]] = par.reshape %{{.*}} : tensor<1x8x5xf32> to tensor<1x2x4x5xf32>
// CHECK: %[[J:.*]] = par.concat %[[P]], %{{.*}} dim 2
// CHECK: par.reshape %[[J]] : tensor<1x2x8x5xf32> to tensor<1x16x5xf32>
par.fragment @step.s0.shares(%s: tensor<1x8x3xf32>, %w: tensor<3x5xf32>) -> tensor<1x16x5xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %x = par.add %s, %s : tensor<1x8x3xf32>
  %g = par.all_gather %x dims [1] over ["tp"] : (tensor<1x8x3xf32>) -> tensor<1x16x3xf32>
  %d = par.dot %g, %w contracting [2] x [0] : (tensor<1x16x3xf32>, tensor<3x5xf32>) -> tensor<1x16x5xf32>
  par.return %d : tensor<1x16x5xf32>
}
// The small operand is cut, here columns of the weight.
// CHECK-LABEL: par.fragment @step.s0.scatter
// CHECK: %[[A:.*]] = par.slice %{{.*}} [0, 0] to [3, 4]
// CHECK: %[[D:.*]] = par.dot %{{.*}}, %[[A]] contracting [2] x [0]
// CHECK: par.reduce_scatter sum %[[D]] dims [1] over ["tp"] : (tensor<1x16x4xf32>) -> tensor<1x8x4xf32>
// CHECK: par.slice %{{.*}} [0, 4] to [3, 8]
// CHECK: %[[J:.*]] = par.concat %{{.*}}, %{{.*}} dim 2 : (tensor<1x8x4xf32>, tensor<1x8x4xf32>) -> tensor<1x8x8xf32>
// CHECK: par.add %[[J]], %[[J]]
par.fragment @step.s0.scatter(%x: tensor<1x16x3xf32>, %w: tensor<3x8xf32>) -> tensor<1x8x8xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %d = par.dot %x, %w contracting [2] x [0] : (tensor<1x16x3xf32>, tensor<3x8xf32>) -> tensor<1x16x8xf32>
  %r = par.reduce_scatter sum %d dims [1] over ["tp"] : (tensor<1x16x8xf32>) -> tensor<1x8x8xf32>
  %a = par.add %r, %r : tensor<1x8x8xf32>
  par.return %a : tensor<1x8x8xf32>
}
// Seven rows of two ranks: the padding of the last is removed after each chunk's gather, and added before its scatter.
// CHECK-LABEL: par.fragment @step.s0.uneven
// CHECK: %[[GA:.*]] = par.all_gather %{{.*}} dims [1] over ["tp"] : (tensor<2x4x6xf32>) -> tensor<2x8x6xf32>
// CHECK: %[[FA:.*]] = par.slice %[[GA]] [0, 0, 0] to [2, 7, 6] by [1, 1, 1] : tensor<2x8x6xf32> to tensor<2x7x6xf32>
// CHECK: par.all_gather
// CHECK: par.dot %[[FA]], %{{.*}} contracting [2] x [0]
// CHECK: %[[D:.*]] = par.dot %{{.*}} : (tensor<4x7x3xf32>, tensor<3x3xf32>) -> tensor<4x7x3xf32>
// CHECK: %[[P:.*]] = par.pad %[[D]] low [0, 0, 0] high [0, 1, 0] {{.*}} : tensor<4x7x3xf32> to tensor<4x8x3xf32>
// CHECK: par.reduce_scatter sum %[[P]] dims [1] over ["tp"] : (tensor<4x8x3xf32>) -> tensor<4x4x3xf32>
// CHECK: par.concat %{{.*}} dim 2 : (tensor<4x4x3xf32>, tensor<4x4x3xf32>) -> tensor<4x4x6xf32>
par.fragment @step.s0.uneven(%s: tensor<4x4x6xf32>, %w: tensor<6x3xf32>, %v: tensor<3x6xf32>) -> tensor<4x4x6xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %x = par.add %s, %s : tensor<4x4x6xf32>
  %g = par.all_gather %x dims [1] over ["tp"] : (tensor<4x4x6xf32>) -> tensor<4x8x6xf32>
  %f = par.slice %g [0, 0, 0] to [4, 7, 6] by [1, 1, 1] : tensor<4x8x6xf32> to tensor<4x7x6xf32>
  %d = par.dot %f, %w contracting [2] x [0] : (tensor<4x7x6xf32>, tensor<6x3xf32>) -> tensor<4x7x3xf32>
  %n = par.negate %d : tensor<4x7x3xf32>
  %e = par.dot %n, %v contracting [2] x [0] : (tensor<4x7x3xf32>, tensor<3x6xf32>) -> tensor<4x7x6xf32>
  %p = par.pad %e low [0, 0, 0] high [0, 1, 0] value 0.0 : f32 : tensor<4x7x6xf32> to tensor<4x8x6xf32>
  %r = par.reduce_scatter sum %p dims [1] over ["tp"] : (tensor<4x8x6xf32>) -> tensor<4x4x6xf32>
  %a = par.add %r, %r : tensor<4x4x6xf32>
  par.return %a : tensor<4x4x6xf32>
}
// If only the scattered dim is divisible, a chunk is the same part of each member's.
// CHECK-LABEL: par.fragment @step.s0.pieces
// CHECK: par.reshape %{{.*}} : tensor<16x3xf32> to tensor<2x8x3xf32>
// CHECK: par.reduce_scatter sum %{{.*}} dims [0] over ["tp"] : (tensor<8x5xf32>) -> tensor<4x5xf32>
// CHECK: par.concat %{{.*}}, %{{.*}} dim 0 : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<8x5xf32>
par.fragment @step.s0.pieces(%x: tensor<16x3xf32>, %w: tensor<3x5xf32>) -> tensor<8x5xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %d = par.dot %x, %w contracting [1] x [0] : (tensor<16x3xf32>, tensor<3x5xf32>) -> tensor<16x5xf32>
  %r = par.reduce_scatter sum %d dims [0] over ["tp"] : (tensor<16x5xf32>) -> tensor<8x5xf32>
  %a = par.add %r, %r : tensor<8x5xf32>
  par.return %a : tensor<8x5xf32>
}
// A collective that runs beside compute anyway stays: a gather of values available at the begin, a scatter whose result
// leaves. So do a gather with other users than matmuls, and a sum in 16 bits.
// CHECK-LABEL: par.fragment @stays
// CHECK-NOT: par.slice
// CHECK: par.return
par.fragment @stays(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4x4xbf16>, %c: tensor<8x4xbf16>) -> (tensor<8x4xf32>, tensor<2x4xf32>, tensor<8x4xf32>, tensor<4x4xbf16>, tensor<8x4xbf16>) attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %g = par.all_gather %x dims [0] over ["tp"] : (tensor<4x4xf32>) -> tensor<8x4xf32>
  %d = par.dot %g, %w contracting [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %e = par.dot %x, %w contracting [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = par.reduce_scatter sum %e dims [0] over ["tp"] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %m = par.add %x, %w : tensor<4x4xf32>
  %h = par.all_gather %m dims [0] over ["tp"] : (tensor<4x4xf32>) -> tensor<8x4xf32>
  %k = par.dot %h, %w contracting [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %l = par.add %k, %h : tensor<8x4xf32>
  %n = par.add %b, %b : tensor<4x4xbf16>
  %o = par.all_gather %n dims [0] over ["tp"] : (tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %p = par.dot %o, %c contracting [0, 1] x [0, 1] : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<bf16>
  %q = par.broadcast_in_dim %p dims [] : tensor<bf16> to tensor<4x4xbf16>
  %t = par.broadcast_in_dim %p dims [] : tensor<bf16> to tensor<8x4xbf16>
  par.return %d, %r, %l, %q, %t : tensor<8x4xf32>, tensor<2x4xf32>, tensor<8x4xf32>, tensor<4x4xbf16>, tensor<8x4xbf16>
}
par.step @step(%s: !par.dist<tensor<4x4x6xf32>, @s0, [{}, {"tp"}, {}]>, %w: !par.dist<tensor<6x3xf32>, @s0, [{}, {}]>, %y: !par.dist<tensor<4x4x3xf32>, @s0, [{}, {}, {}]>,
    %t: !par.dist<tensor<1x16x3xf32>, @s0, [{}, {"tp"}, {}]>, %v: !par.dist<tensor<3x5xf32>, @s0, [{}, {}]>,
    %x: !par.dist<tensor<1x16x6xf32>, @s0, [{}, {}, {"tp"}]>, %u: !par.dist<tensor<6x8xf32>, @s0, [{"tp"}, {}]>,
    %p: !par.dist<tensor<16x6xf32>, @s0, [{}, {"tp"}]>, %q: !par.dist<tensor<6x5xf32>, @s0, [{"tp"}, {}]>)
    -> (!par.dist<tensor<4x4x3xf32>, @s0, [{}, {}, {}]>, !par.dist<tensor<6x3xf32>, @s0, [{}, {}]>, !par.dist<tensor<1x16x5xf32>, @s0, [{}, {}, {}]>, !par.dist<tensor<1x16x8xf32>, @s0, [{}, {"tp"}, {}]>, !par.dist<tensor<16x5xf32>, @s0, [{"tp"}, {}]>)
    attributes {inputs = ["s", "w", "y", "t", "v", "x", "u", "p", "q"], outputs = ["a", "b", "c", "d", "e"]} {
  %0:2 = par.run @step.s0.rows(%s, %w, %y) : (!par.dist<tensor<4x4x6xf32>, @s0, [{}, {"tp"}, {}]>, !par.dist<tensor<6x3xf32>, @s0, [{}, {}]>, !par.dist<tensor<4x4x3xf32>, @s0, [{}, {}, {}]>) -> (!par.dist<tensor<4x4x3xf32>, @s0, [{}, {}, {}]>, !par.dist<tensor<6x3xf32>, @s0, [{}, {}]>)
  %1 = par.run @step.s0.shares(%t, %v) : (!par.dist<tensor<1x16x3xf32>, @s0, [{}, {"tp"}, {}]>, !par.dist<tensor<3x5xf32>, @s0, [{}, {}]>) -> !par.dist<tensor<1x16x5xf32>, @s0, [{}, {}, {}]>
  %2 = par.run @step.s0.scatter(%x, %u) : (!par.dist<tensor<1x16x6xf32>, @s0, [{}, {}, {"tp"}]>, !par.dist<tensor<6x8xf32>, @s0, [{"tp"}, {}]>) -> !par.dist<tensor<1x16x8xf32>, @s0, [{}, {"tp"}, {}]>
  %3 = par.run @step.s0.pieces(%p, %q) : (!par.dist<tensor<16x6xf32>, @s0, [{}, {"tp"}]>, !par.dist<tensor<6x5xf32>, @s0, [{"tp"}, {}]>) -> !par.dist<tensor<16x5xf32>, @s0, [{"tp"}, {}]>
  par.return %0#0, %0#1, %1, %2, %3 : !par.dist<tensor<4x4x3xf32>, @s0, [{}, {}, {}]>, !par.dist<tensor<6x3xf32>, @s0, [{}, {}]>, !par.dist<tensor<1x16x5xf32>, @s0, [{}, {}, {}]>, !par.dist<tensor<1x16x8xf32>, @s0, [{}, {"tp"}, {}]>, !par.dist<tensor<16x5xf32>, @s0, [{"tp"}, {}]>
}
