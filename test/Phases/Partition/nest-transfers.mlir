// Transfers between meshes: senders gather until their shards make up the receivers', and replicated senders each send
// a part.
// RUN: par-opt %s --par-nest-transfers --split-input-file | FileCheck %s

// Three of 4 rows and two of 6 do not: all rows are gathered.
// CHECK-LABEL: par.step @gather
// CHECK: %[[W:.*]] = par.reshard %{{.*}} : <tensor<12x4xf32>, @s0, [{"dp"}, {}]> to <tensor<12x4xf32>, @s0, [{}, {}]>
// CHECK: par.transfer %[[W]] : <tensor<12x4xf32>, @s0, [{}, {}]> to <tensor<12x4xf32>, @s1, [{"dp"}, {}]>
par.stage @s0 <"dp"=3> ranks [0, 1, 2]
par.stage @s1 <"dp"=2> ranks [3, 4]
par.step @gather(%x: !par.dist<tensor<12x4xf32>, @s0, [{"dp"}, {}]>) {
  %b = par.transfer %x : <tensor<12x4xf32>, @s0, [{"dp"}, {}]> to <tensor<12x4xf32>, @s1, [{"dp"}, {}]>
  par.return
}

// -----

// Four parts to six: only the minor axis is gathered; two parts of 6 rows are three of 2 each.
// CHECK-LABEL: par.step @half
// CHECK: par.reshard %{{.*}} : <tensor<12xf32>, @s0, [{"dp.0", "dp.1"}]> to <tensor<12xf32>, @s0, [{"dp.0"}]>
par.stage @s0 <"dp.0"=2, "dp.1"=2> ranks [0, 1, 2, 3]
par.stage @s1 <"dp.0"=3, "dp.1"=2> ranks [4, 5, 6, 7, 8, 9]
par.step @half(%x: !par.dist<tensor<12xf32>, @s0, [{"dp.0", "dp.1"}]>) {
  %b = par.transfer %x : <tensor<12xf32>, @s0, [{"dp.0", "dp.1"}]> to <tensor<12xf32>, @s1, [{"dp.0", "dp.1"}]>
  par.return
}

// -----

// Both senders have all rows: each sends those of one receiver.
// CHECK-LABEL: par.step @cut
// CHECK: par.reshard %{{.*}} : <tensor<8x4xf32>, @s0, [{}, {}]> to <tensor<8x4xf32>, @s0, [{"tp"}, {}]>
par.stage @s0 <"tp"=2> ranks [0, 1]
par.stage @s1 <"dp"=2> ranks [2, 3]
par.step @cut(%x: !par.dist<tensor<8x4xf32>, @s0, [{}, {}]>) {
  %b = par.transfer %x : <tensor<8x4xf32>, @s0, [{}, {}]> to <tensor<8x4xf32>, @s1, [{"dp"}, {}]>
  par.return
}

// -----

// One rank receives the parts of two, and one part goes to two ranks: nothing to do. Nor between stages of one mesh.
// CHECK-LABEL: par.step @nests
// CHECK-NOT: par.reshard
par.stage @s0 <"dp"=2> ranks [0, 1]
par.stage @s1 <> ranks [2]
par.stage @s2 <"dp"=2> ranks [3, 4]
par.step @nests(%x: !par.dist<tensor<7x4xf32>, @s0, [{"dp"}, {}]>) {
  %b = par.transfer %x : <tensor<7x4xf32>, @s0, [{"dp"}, {}]> to <tensor<7x4xf32>, @s1, [{}, {}]>
  %c = par.transfer %b : <tensor<7x4xf32>, @s1, [{}, {}]> to <tensor<7x4xf32>, @s2, [{"dp"}, {}]>
  %d = par.transfer %x : <tensor<7x4xf32>, @s0, [{"dp"}, {}]> to <tensor<7x4xf32>, @s2, [{}, {}]>
  par.return
}
