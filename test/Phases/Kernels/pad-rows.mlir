// bf16 and f16 rows that matmuls read and write are padded to multiples of 16 bytes, if that needs no additional copy.
// RUN: par-opt %s --par-pad-rows | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-pad-rows'
// RUN: par-opt %s --par-pad-rows --par-promote-to-f32 --par-form-kernels=device=cuda --par-verify-kernels \
// RUN:   | FileCheck %s --check-prefix=KERNELS
// RUN: par-opt %s --par-check-phases='passes=par-pad-rows,par-promote-to-f32,par-form-kernels{device=cuda}'

par.stage @s0 <"dp"=1> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @x input of "x" : tensor<2x8x32xbf16> as !par.dist<tensor<2x8x32xbf16>, @s0, [{}, {}, {}]>
  par.buffer @w input of "w" : tensor<97x32xf32> as !par.dist<tensor<97x32xf32>, @s0, [{}, {}]>
  par.buffer @y input of "y" : tensor<2x8xi64> as !par.dist<tensor<2x8xi64>, @s0, [{}, {}]>
  par.buffer @b input of "b" : tensor<97xf32> as !par.dist<tensor<97xf32>, @s0, [{}]>
  par.buffer @ct input of "ct" : tensor<2x8xf32> as !par.dist<tensor<2x8xf32>, @s0, [{}, {}]>
  par.buffer @lse temp : tensor<2x8xf32>
  par.buffer @v input of "v" : tensor<10x32xf32> as !par.dist<tensor<10x32xf32>, @s0, [{}, {}]>
  par.buffer @t input of "t" : tensor<32x97xf32> as !par.dist<tensor<32x97xf32>, @s0, [{}, {}]>
  par.buffer @square input of "square" : tensor<71x97xf32> as !par.dist<tensor<71x97xf32>, @s0, [{}, {}]>
  par.buffer @kept input of "kept" : tensor<97x32xbf16> as !par.dist<tensor<97x32xbf16>, @s0, [{}, {}]>

  // The logits of one block are those of the next: their buffer has longer rows, too.
  // CHECK: par.buffer @logits temp : tensor<2x8x104xbf16>
  par.buffer @logits temp : tensor<2x8x97xbf16>

  // CHECK-LABEL: par.block @forward
  // CHECK: %[[X:.*]] = par.load @x
  // CHECK: %[[W:.*]] = par.load @w
  // CHECK: %[[LONGER:.*]] = par.pad %[[W]] low [0, 0] high [7, 0] value 0.000000e+00 : f32
  // CHECK-NEXT: %[[N:.*]] = par.convert %[[LONGER]] : tensor<104x32xf32> to tensor<104x32xbf16>
  // CHECK-NEXT: %[[Z:.*]] = par.dot %[[X]], %[[N]] {{.*}} -> tensor<2x8x104xbf16>
  // CHECK-NEXT: %[[ROWS:.*]] = par.slice %[[Z]] [0, 0, 0] to [2, 8, 97]
  // CHECK: par.cross_entropy %[[ROWS]]
  // CHECK: par.store %[[Z]] to @logits : tensor<2x8x104xbf16>

  // A weight is rounded and padded in one kernel, and so is a bias; no other kernel pads, and one slices a bias's gradient.
  // KERNELS: par.kernel @convert.0(%{{.*}}: tensor<97x32xf32>) -> tensor<104x32xbf16> attributes {implementation = "generated"}
  // KERNELS-NOT: par.kernel @{{pad|slice}}
  // KERNELS: par.kernel @convert.1(%{{.*}}: tensor<97xf32>) -> tensor<104xbf16>
  // KERNELS-NOT: par.kernel @{{pad|slice}}
  // KERNELS: par.kernel @slice.0(%{{.*}}: tensor<104xf32>) -> tensor<97xf32>
  // KERNELS-NOT: par.kernel @{{pad|slice}}
  // KERNELS-LABEL: par.block @forward
  // KERNELS: %[[N:.*]] = par.launch @convert.0(
  // KERNELS: %[[Z:.*]] = par.launch @dot.0(%{{.*}}, %[[N]]) : {{.*}} -> tensor<2x8x104xbf16>
  // KERNELS: par.launch @cross_entropy.0(%[[Z]],
  // KERNELS: par.store %[[Z]] to @logits
  par.block @forward {
    %x = par.load @x : tensor<2x8x32xbf16>
    %w = par.load @w : tensor<97x32xf32>
    %y = par.load @y : tensor<2x8xi64>
    %n = par.convert %w : tensor<97x32xf32> to tensor<97x32xbf16>
    %z = par.dot %x, %n contracting [2] x [1] : (tensor<2x8x32xbf16>, tensor<97x32xbf16>) -> tensor<2x8x97xbf16>
    %loss, %lse = par.cross_entropy %z, %y ignore -100 : (tensor<2x8x97xbf16>, tensor<2x8xi64>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
    par.fetch %loss as "loss" : tensor<2x8xf32>
    par.store %lse to @lse : tensor<2x8xf32>
    par.store %z to @logits : tensor<2x8x97xbf16>
  }

  // The matmul that contracts classes sums zeros; that for the weight reads the rows without their padding.
  // CHECK-LABEL: par.block @backward
  // CHECK: %[[Z:.*]] = par.load @logits : tensor<2x8x104xbf16>
  // CHECK: %[[ROWS:.*]] = par.slice %[[Z]]
  // CHECK: %[[D:.*]] = par.cross_entropy_grad %{{.*}}, %[[ROWS]]
  // CHECK-NEXT: %[[P:.*]] = par.pad %[[D]] low [0, 0, 0] high [0, 0, 7]
  // CHECK: par.dot %[[P]], %{{.*}} contracting [2] x [0] : (tensor<2x8x104xbf16>, tensor<104x32xbf16>)
  // CHECK: %[[S:.*]] = par.slice %[[P]]
  // CHECK: par.dot %[[S]], %{{.*}} contracting [0, 1] x [0, 1] : (tensor<2x8x97xbf16>, tensor<2x8x32xbf16>) -> tensor<97x32xf32>
  // KERNELS-LABEL: par.block @backward
  // KERNELS: %[[D:.*]] = par.launch @cross_entropy_grad.0({{.*}}) : {{.*}} -> tensor<2x8x104xbf16>
  // KERNELS: par.launch @dot.1(%[[D]], {{.*}}) : (tensor<2x8x104xbf16>, tensor<104x32xbf16>)
  // KERNELS: par.launch @dot.2(%[[D]], {{.*}}) : (tensor<2x8x104xbf16>, tensor<2x8x32xbf16>) -> tensor<97x32xf32>
  par.block @backward {
    %x = par.load @x : tensor<2x8x32xbf16>
    %w = par.load @w : tensor<97x32xf32>
    %y = par.load @y : tensor<2x8xi64>
    %ct = par.load @ct : tensor<2x8xf32>
    %lse = par.load @lse : tensor<2x8xf32>
    %z = par.load @logits : tensor<2x8x97xbf16>
    %d = par.cross_entropy_grad %ct, %z, %y, %lse ignore -100 : (tensor<2x8xf32>, tensor<2x8x97xbf16>, tensor<2x8xi64>, tensor<2x8xf32>) -> tensor<2x8x97xbf16>
    %n = par.convert %w : tensor<97x32xf32> to tensor<97x32xbf16>
    %dx = par.dot %d, %n contracting [2] x [0] : (tensor<2x8x97xbf16>, tensor<97x32xbf16>) -> tensor<2x8x32xbf16>
    %dw = par.dot %d, %x contracting [0, 1] x [0, 1] : (tensor<2x8x97xbf16>, tensor<2x8x32xbf16>) -> tensor<97x32xf32>
    par.fetch %dx as "dx" : tensor<2x8x32xbf16>
    par.fetch %dw as "dw" : tensor<97x32xf32>
  }

  // A bias is padded, too. Elementwise results are padded with zeros for a sum, and with the identity for a reduction
  // along rows; a reduction of columns has more of them; f32 values are computed from rows without padding.
  // CHECK-LABEL: par.block @elementwise
  // CHECK: %[[DOT:.*]] = par.dot {{.*}} -> tensor<2x8x104xbf16>
  // CHECK: %[[A:.*]] = par.add %[[DOT]], %{{.*}} : tensor<2x8x104xbf16>
  // CHECK: %[[E:.*]] = par.exp %[[A]] : tensor<2x8x104xbf16>
  // CHECK: %[[ZEROS:.*]] = par.select %{{.*}}, %[[E]], %{{.*}} : tensor<2x8x104xi1>, tensor<2x8x104xbf16>
  // CHECK: par.dot %[[ZEROS]], %{{.*}} contracting [2] x [0] : (tensor<2x8x104xbf16>, tensor<104x32xbf16>)
  // CHECK: %[[LEAST:.*]] = par.constant dense<0xFF800000> : tensor<2x8x104xf32>
  // CHECK: %[[TOP:.*]] = par.select %{{.*}}, %{{.*}}, %[[LEAST]] : tensor<2x8x104xi1>, tensor<2x8x104xf32>
  // CHECK: %[[DB:.*]] = par.reduce sum %{{.*}} dims [0, 1] : tensor<2x8x104xf32> to tensor<104xf32>
  // CHECK: par.slice %[[DB]] [0] to [97] by [1]
  // CHECK: par.reduce max %[[TOP]] dims [2] : tensor<2x8x104xf32>
  // KERNELS-LABEL: par.block @elementwise
  // KERNELS: par.launch @dot.{{.*}} -> tensor<2x8x104xbf16>
  // KERNELS: par.launch @dot.{{.*}} : (tensor<2x8x104xbf16>, tensor<104x32xbf16>)
  par.block @elementwise {
    %x = par.load @x : tensor<2x8x32xbf16>
    %w = par.load @w : tensor<97x32xf32>
    %b = par.load @b : tensor<97xf32>
    %n = par.convert %w : tensor<97x32xf32> to tensor<97x32xbf16>
    %d = par.dot %x, %n contracting [2] x [1] : (tensor<2x8x32xbf16>, tensor<97x32xbf16>) -> tensor<2x8x97xbf16>
    %bs = par.broadcast_in_dim %b dims [2] : tensor<97xf32> to tensor<2x8x97xf32>
    %bn = par.convert %bs : tensor<2x8x97xf32> to tensor<2x8x97xbf16>
    %a = par.add %d, %bn : tensor<2x8x97xbf16>
    %e = par.exp %a : tensor<2x8x97xbf16>
    %dx = par.dot %e, %n contracting [2] x [0] : (tensor<2x8x97xbf16>, tensor<97x32xbf16>) -> tensor<2x8x32xbf16>
    %wide = par.convert %a : tensor<2x8x97xbf16> to tensor<2x8x97xf32>
    %db = par.reduce sum %wide dims [0, 1] : tensor<2x8x97xf32> to tensor<97xf32>
    %top = par.reduce max %wide dims [2] : tensor<2x8x97xf32> to tensor<2x8xf32>
    par.fetch %top as "top" : tensor<2x8xf32>
    par.fetch %dx as "more" : tensor<2x8x32xbf16>
    par.fetch %db as "db" : tensor<97xf32>
    par.fetch %wide as "wide" : tensor<2x8x97xf32>
  }

  // Classes outside the shard are masked in the weight, which is stored here with classes along its rows.
  // CHECK-LABEL: par.block @masked
  // CHECK: %[[W:.*]] = par.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<32x104xi1>, tensor<32x104xbf16>
  // CHECK: %[[ZEROS:.*]] = par.select %{{.*}}, %[[W]], %{{.*}} : tensor<32x104xi1>, tensor<32x104xbf16>
  // CHECK: par.dot %{{.*}}, %[[ZEROS]] contracting [2] x [1] : (tensor<2x8x104xbf16>, tensor<32x104xbf16>)
  // KERNELS-LABEL: par.block @masked
  // KERNELS: par.launch @dot.{{.*}} : (tensor<2x8x104xbf16>, tensor<32x104xbf16>)
  par.block @masked {
    %y = par.load @y : tensor<2x8xi64>
    %ct = par.load @ct : tensor<2x8xf32>
    %lse = par.load @lse : tensor<2x8xf32>
    %z = par.load @logits : tensor<2x8x97xbf16>
    %d = par.cross_entropy_grad %ct, %z, %y, %lse ignore -100 : (tensor<2x8xf32>, tensor<2x8x97xbf16>, tensor<2x8xi64>, tensor<2x8xf32>) -> tensor<2x8x97xbf16>
    %t = par.load @t : tensor<32x97xf32>
    %n = par.convert %t : tensor<32x97xf32> to tensor<32x97xbf16>
    %at = par.iota dim 1 : tensor<32x97xi64>
    %end = par.constant dense<96> : tensor<32x97xi64>
    %in = par.compare lt %at, %end : tensor<32x97xi64>
    %none = par.constant dense<0.0> : tensor<32x97xbf16>
    %m = par.select %in, %n, %none : tensor<32x97xi1>, tensor<32x97xbf16>
    %dx = par.dot %d, %m contracting [2] x [1] : (tensor<2x8x97xbf16>, tensor<32x97xbf16>) -> tensor<2x8x32xbf16>
    par.fetch %dx as "masked" : tensor<2x8x32xbf16>
  }

  // A weight is padded along one dim only: for the matmul in which this dim is no result, terms are read without
  // padding. The rounded value may have been rewritten before it is rounded for another matmul.
  // CHECK-LABEL: par.block @both
  // CHECK: %[[W:.*]] = par.convert %{{.*}} : tensor<72x97xf32> to tensor<72x97xbf16>
  // CHECK: %[[TERMS:.*]] = par.slice %{{.*}} : tensor<2x8x104xbf16> to tensor<2x8x97xbf16>
  // CHECK: par.dot %[[TERMS]], %[[W]] contracting [2] x [1] : {{.*}} -> tensor<2x8x72xbf16>
  // CHECK: par.dot %{{.*}} contracting [2] x [1] : {{.*}} -> tensor<2x8x72xbf16>
  par.block @both {
    %z = par.load @logits : tensor<2x8x97xbf16>
    %q = par.load @square : tensor<71x97xf32>
    %n = par.convert %q : tensor<71x97xf32> to tensor<71x97xbf16>
    %a = par.dot %z, %n contracting [2] x [1] : (tensor<2x8x97xbf16>, tensor<71x97xbf16>) -> tensor<2x8x71xbf16>
    %e = par.exp %z : tensor<2x8x97xbf16>
    %b = par.dot %e, %n contracting [2] x [1] : (tensor<2x8x97xbf16>, tensor<71x97xbf16>) -> tensor<2x8x71xbf16>
    %wa = par.convert %a : tensor<2x8x71xbf16> to tensor<2x8x71xf32>
    %wb = par.convert %b : tensor<2x8x71xbf16> to tensor<2x8x71xf32>
    par.fetch %wa as "a" : tensor<2x8x71xf32>
    par.fetch %wb as "b" : tensor<2x8x71xf32>
  }

  // Not padded: rows of ten classes; a weight stored in bf16, which would be copied; and communicated values.
  // CHECK-LABEL: par.block @stays
  // CHECK-NOT: par.pad
  // CHECK-NOT: par.slice
  // CHECK: par.fetch %{{.*}} as "sum" : tensor<2x8x97xbf16>
  par.block @stays {
    %x = par.load @x : tensor<2x8x32xbf16>
    %v = par.load @v : tensor<10x32xf32>
    %k = par.load @kept : tensor<97x32xbf16>
    %w = par.load @w : tensor<97x32xf32>
    %nv = par.convert %v : tensor<10x32xf32> to tensor<10x32xbf16>
    %n = par.convert %w : tensor<97x32xf32> to tensor<97x32xbf16>
    %0 = par.dot %x, %nv contracting [2] x [1] : (tensor<2x8x32xbf16>, tensor<10x32xbf16>) -> tensor<2x8x10xbf16>
    %1 = par.dot %x, %k contracting [2] x [1] : (tensor<2x8x32xbf16>, tensor<97x32xbf16>) -> tensor<2x8x97xbf16>
    %2 = par.dot %x, %n contracting [2] x [1] : (tensor<2x8x32xbf16>, tensor<97x32xbf16>) -> tensor<2x8x97xbf16>
    %3 = par.all_reduce sum %2 over ["dp"] : (tensor<2x8x97xbf16>) -> tensor<2x8x97xbf16>
    par.fetch %0 as "few" : tensor<2x8x10xbf16>
    par.fetch %1 as "kept" : tensor<2x8x97xbf16>
    par.fetch %3 as "sum" : tensor<2x8x97xbf16>
  }
  par.entry @train runs [@forward, @backward, @elementwise, @masked, @both, @stays] microbatches [0, 0, 0, 0, 0, 0]
}
