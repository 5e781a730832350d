// With no number said, a pair is cut where that saves time by the hardware file: products of 8,192 rows, not of 128.
// RUN: par-opt %s --par-decompose-collectives=hardware=h100-sxm | FileCheck %s
par.stage @s0 <"tp"=2> ranks [0, 1]
// CHECK-LABEL: par.fragment @large
// CHECK-COUNT-4: par.reduce_scatter
// CHECK: par.concat
// CHECK-LABEL: par.fragment @small
// CHECK-NOT: par.concat
par.fragment @large(%x: tensor<8192x4096xbf16>, %w: tensor<4096x8192xbf16>) -> tensor<4096x8192xbf16> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %d = par.dot %x, %w contracting [1] x [0] : (tensor<8192x4096xbf16>, tensor<4096x8192xbf16>) -> tensor<8192x8192xbf16>
  %r = par.reduce_scatter sum %d dims [0] over ["tp"] : (tensor<8192x8192xbf16>) -> tensor<4096x8192xbf16>
  %a = par.add %r, %r : tensor<4096x8192xbf16>
  par.return %a : tensor<4096x8192xbf16>
}
par.fragment @small(%x: tensor<128x4096xbf16>, %w: tensor<4096x8192xbf16>) -> tensor<64x8192xbf16> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %d = par.dot %x, %w contracting [1] x [0] : (tensor<128x4096xbf16>, tensor<4096x8192xbf16>) -> tensor<128x8192xbf16>
  %r = par.reduce_scatter sum %d dims [0] over ["tp"] : (tensor<128x8192xbf16>) -> tensor<64x8192xbf16>
  %a = par.add %r, %r : tensor<64x8192xbf16>
  par.return %a : tensor<64x8192xbf16>
}

// A gather along the second dim brings blocks together by a copy; of one sample a chunk it needs none.
// CHECK-LABEL: par.fragment @samples
// CHECK-COUNT-4: par.all_gather {{.*}} (tensor<1x512x4096xbf16>) -> tensor<1x4096x4096xbf16>
par.stage @s1 <"tp"=8> ranks [2, 3, 4, 5, 6, 7, 8, 9]
par.fragment @samples(%x: tensor<4x512x4096xbf16>, %y: tensor<4x512x4096xbf16>, %w: tensor<4096x512xbf16>) -> tensor<4x4096x512xbf16> attributes {stage = @s1, kind = #par.fragment_kind<forward>, local} {
  %a = par.multiply %x, %y : tensor<4x512x4096xbf16>
  %g = par.all_gather %a dims [1] over ["tp"] : (tensor<4x512x4096xbf16>) -> tensor<4x4096x4096xbf16>
  %d = par.dot %g, %w contracting [2] x [0] : (tensor<4x4096x4096xbf16>, tensor<4096x512xbf16>) -> tensor<4x4096x512xbf16>
  par.return %d : tensor<4x4096x512xbf16>
}
