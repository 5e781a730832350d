// Weights that are rounded once for all microbatches are stored with zeros appended, if only matmuls read them.
// RUN: par-opt %s --par-pad-rows | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-pad-rows'
// RUN: par-opt %s --par-pad-rows --par-promote-to-f32 --par-form-kernels=device=cuda --par-verify-kernels \
// RUN:   | FileCheck %s --check-prefix=KERNELS
// RUN: par-opt %s --par-check-phases='passes=par-pad-rows,par-promote-to-f32,par-form-kernels{device=cuda}'

par.stage @s0 <"dp"=1> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @x input of "x" : tensor<2x8x32xbf16> as !par.dist<tensor<2x8x32xbf16>, @s0, [{}, {}, {}]>
  par.buffer @w input of "w" : tensor<97x32xf32> as !par.dist<tensor<97x32xf32>, @s0, [{}, {}]>
  par.buffer @u input of "u" : tensor<97x32xf32> as !par.dist<tensor<97x32xf32>, @s0, [{}, {}]>
  par.buffer @y input of "y" : tensor<2x8xi64> as !par.dist<tensor<2x8xi64>, @s0, [{}, {}]>
  par.buffer @ct input of "ct" : tensor<2x8xf32> as !par.dist<tensor<2x8xf32>, @s0, [{}, {}]>
  par.buffer @lse temp : tensor<2x8xf32>
  // CHECK: par.buffer @rounded temp : tensor<104x32xbf16>
  par.buffer @rounded temp : tensor<97x32xbf16>
  // CHECK: par.buffer @looked.up temp : tensor<97x32xbf16>
  par.buffer @looked.up temp : tensor<97x32xbf16>
  // CHECK: par.buffer @logits temp : tensor<2x8x104xbf16>
  par.buffer @logits temp : tensor<2x8x97xbf16>

  // CHECK-LABEL: par.block @before
  // CHECK: %[[LONGER:.*]] = par.pad %{{.*}} low [0, 0] high [7, 0] value 0.000000e+00 : f32
  // CHECK: %[[N:.*]] = par.convert %[[LONGER]] : tensor<104x32xf32> to tensor<104x32xbf16>
  // CHECK: par.store %[[N]] to @rounded : tensor<104x32xbf16>
  // CHECK: par.store %{{.*}} to @looked.up : tensor<97x32xbf16>
  // KERNELS: par.kernel @convert.0(%{{.*}}: tensor<97x32xf32>) -> tensor<104x32xbf16> attributes {implementation = "generated"}
  // KERNELS-NOT: par.kernel @pad
  // KERNELS: par.kernel @slice.0(%{{.*}}: tensor<104x32xbf16>) -> tensor<97x32xbf16>
  // KERNELS-NOT: par.kernel @{{pad|slice}}
  // KERNELS: par.kernel @pad.0(%{{.*}}: tensor<100x32xbf16>) -> tensor<104x32xbf16>
  // KERNELS-NOT: par.kernel @pad
  par.block @before {
    %w = par.load @w : tensor<97x32xf32>
    %n = par.convert %w : tensor<97x32xf32> to tensor<97x32xbf16>
    par.store %n to @rounded : tensor<97x32xbf16>
    %u = par.load @u : tensor<97x32xf32>
    %m = par.convert %u : tensor<97x32xf32> to tensor<97x32xbf16>
    par.store %m to @looked.up : tensor<97x32xbf16>
  }

  // CHECK-LABEL: par.block @forward
  // CHECK: %[[N:.*]] = par.load @rounded : tensor<104x32xbf16>
  // CHECK: %[[Z:.*]] = par.dot %{{.*}}, %[[N]] {{.*}} -> tensor<2x8x104xbf16>
  // CHECK: par.store %[[Z]] to @logits : tensor<2x8x104xbf16>
  // CHECK: par.dot %{{.*}} contracting [2] x [1] : (tensor<2x8x32xbf16>, tensor<97x32xbf16>) -> tensor<2x8x97xbf16>
  par.block @forward {
    %x = par.load @x : tensor<2x8x32xbf16>
    %n = par.load @rounded : tensor<97x32xbf16>
    %y = par.load @y : tensor<2x8xi64>
    %z = par.dot %x, %n contracting [2] x [1] : (tensor<2x8x32xbf16>, tensor<97x32xbf16>) -> tensor<2x8x97xbf16>
    %loss, %lse = par.cross_entropy %z, %y ignore -100 : (tensor<2x8x97xbf16>, tensor<2x8xi64>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
    par.fetch %loss as "loss" : tensor<2x8xf32>
    par.store %lse to @lse : tensor<2x8xf32>
    par.store %z to @logits : tensor<2x8x97xbf16>
    %m = par.load @looked.up : tensor<97x32xbf16>
    %rows = par.gather %m, %y dim 0 : tensor<97x32xbf16>, tensor<2x8xi64> to tensor<2x8x32xbf16>
    par.fetch %rows as "rows" : tensor<2x8x32xbf16>
    %a = par.dot %x, %m contracting [2] x [1] : (tensor<2x8x32xbf16>, tensor<97x32xbf16>) -> tensor<2x8x97xbf16>
    par.fetch %a as "a" : tensor<2x8x97xbf16>
  }

  // The matmul that contracts classes sums zeros; one over the weight's other dim reads only the weight's own rows.
  // CHECK-LABEL: par.block @backward
  // CHECK: %[[N:.*]] = par.load @rounded : tensor<104x32xbf16>
  // CHECK: %[[ROWS:.*]] = par.slice %[[N]] [0, 0] to [97, 32]
  // CHECK: par.dot %{{.*}}, %[[N]] contracting [2] x [0] : (tensor<2x8x104xbf16>, tensor<104x32xbf16>) -> tensor<2x8x32xbf16>
  // CHECK: par.dot %[[ROWS]], %[[ROWS]] contracting [1] x [1] : (tensor<97x32xbf16>, tensor<97x32xbf16>) -> tensor<97x97xf32>
  par.block @backward {
    %y = par.load @y : tensor<2x8xi64>
    %n = par.load @rounded : tensor<97x32xbf16>
    %ct = par.load @ct : tensor<2x8xf32>
    %lse = par.load @lse : tensor<2x8xf32>
    %z = par.load @logits : tensor<2x8x97xbf16>
    %d = par.cross_entropy_grad %ct, %z, %y, %lse ignore -100 : (tensor<2x8xf32>, tensor<2x8x97xbf16>, tensor<2x8xi64>, tensor<2x8xf32>) -> tensor<2x8x97xbf16>
    %dx = par.dot %d, %n contracting [2] x [0] : (tensor<2x8x97xbf16>, tensor<97x32xbf16>) -> tensor<2x8x32xbf16>
    par.fetch %dx as "dx" : tensor<2x8x32xbf16>
    %g = par.dot %n, %n contracting [1] x [1] : (tensor<97x32xbf16>, tensor<97x32xbf16>) -> tensor<97x97xf32>
    par.fetch %g as "g" : tensor<97x97xf32>
  }

  // Classes of two ranks: those of the other rank are masked in the terms and in the weight.
  // CHECK-LABEL: par.block @masked
  // CHECK: %[[N:.*]] = par.load @rounded : tensor<104x32xbf16>
  // CHECK: %[[M:.*]] = par.select %{{.*}}, %[[N]], %{{.*}} : tensor<104x32xi1>, tensor<104x32xbf16>
  // CHECK: %[[Z:.*]] = par.select %{{.*}}, %[[M]], %{{.*}} : tensor<104x32xi1>, tensor<104x32xbf16>
  // CHECK: par.dot %{{.*}}, %[[Z]] contracting [2] x [0] : (tensor<2x8x104xbf16>, tensor<104x32xbf16>) -> tensor<2x8x32xbf16>
  par.block @masked {
    %y = par.load @y : tensor<2x8xi64>
    %n = par.load @rounded : tensor<97x32xbf16>
    %ct = par.load @ct : tensor<2x8xf32>
    %lse = par.load @lse : tensor<2x8xf32>
    %z = par.load @logits : tensor<2x8x97xbf16>
    %d = par.cross_entropy_grad %ct, %z, %y, %lse ignore -100 : (tensor<2x8xf32>, tensor<2x8x97xbf16>, tensor<2x8xi64>, tensor<2x8xf32>) -> tensor<2x8x97xbf16>
    %at = par.iota dim 0 : tensor<97x32xi64>
    %end = par.constant dense<96> : tensor<97x32xi64>
    %in = par.compare lt %at, %end : tensor<97x32xi64>
    %none = par.constant dense<0.0> : tensor<97x32xbf16>
    %m = par.select %in, %n, %none : tensor<97x32xi1>, tensor<97x32xbf16>
    %dx = par.dot %d, %m contracting [2] x [0] : (tensor<2x8x97xbf16>, tensor<97x32xbf16>) -> tensor<2x8x32xbf16>
    par.fetch %dx as "masked" : tensor<2x8x32xbf16>
  }
  par.entry @train runs [@before, @forward, @backward, @masked] microbatches [0, 0, 0, 0]
}

// A gathered weight has equal rows on each rank (100 on three ranks): it is copied if matmuls of many rows read it.
par.program @q on @s0 ranks [0] {
  par.buffer @gathered input of "gathered" : tensor<100x32xbf16> as !par.dist<tensor<100x32xbf16>, @s0, [{}, {}]>
  par.buffer @many input of "many" : tensor<2x256x32xbf16> as !par.dist<tensor<2x256x32xbf16>, @s0, [{}, {}, {}]>
  par.buffer @few input of "few" : tensor<2x8x32xbf16> as !par.dist<tensor<2x8x32xbf16>, @s0, [{}, {}, {}]>
  // CHECK: par.buffer @kept temp : tensor<104x32xbf16>
  par.buffer @kept temp : tensor<97x32xbf16>

  // CHECK-LABEL: par.block @copied
  // CHECK: %[[S:.*]] = par.slice %{{.*}} [0, 0] to [97, 32]
  // CHECK: %[[W:.*]] = par.pad %[[S]] low [0, 0] high [7, 0]
  // CHECK: par.dot %{{.*}}, %[[W]] {{.*}} -> tensor<2x256x104xbf16>
  // CHECK: par.dot %{{.*}} -> tensor<2x8x97xbf16>
  par.block @copied {
    %g = par.load @gathered : tensor<100x32xbf16>
    %w = par.slice %g [0, 0] to [97, 32] by [1, 1] : tensor<100x32xbf16> to tensor<97x32xbf16>
    %x = par.load @many : tensor<2x256x32xbf16>
    %z = par.dot %x, %w contracting [2] x [1] : (tensor<2x256x32xbf16>, tensor<97x32xbf16>) -> tensor<2x256x97xbf16>
    %e = par.exp %z : tensor<2x256x97xbf16>
    %s = par.convert %e : tensor<2x256x97xbf16> to tensor<2x256x97xf32>
    %r = par.reduce sum %s dims [2] : tensor<2x256x97xf32> to tensor<2x256xf32>
    par.fetch %r as "many" : tensor<2x256xf32>
    %v = par.slice %g [0, 0] to [97, 32] by [1, 1] : tensor<100x32xbf16> to tensor<97x32xbf16>
    %y = par.load @few : tensor<2x8x32xbf16>
    %a = par.dot %y, %v contracting [2] x [1] : (tensor<2x8x32xbf16>, tensor<97x32xbf16>) -> tensor<2x8x97xbf16>
    par.fetch %a as "few" : tensor<2x8x97xbf16>
    %k = par.slice %g [0, 0] to [97, 32] by [1, 1] : tensor<100x32xbf16> to tensor<97x32xbf16>
    par.store %k to @kept : tensor<97x32xbf16>
  }

  // CHECK-LABEL: par.block @later
  // CHECK: %[[W:.*]] = par.load @kept : tensor<104x32xbf16>
  // CHECK: par.dot %{{.*}}, %[[W]] {{.*}} -> tensor<2x256x104xbf16>
  par.block @later {
    %w = par.load @kept : tensor<97x32xbf16>
    %x = par.load @many : tensor<2x256x32xbf16>
    %z = par.dot %x, %w contracting [2] x [1] : (tensor<2x256x32xbf16>, tensor<97x32xbf16>) -> tensor<2x256x97xbf16>
    %e = par.exp %z : tensor<2x256x97xbf16>
    %s = par.convert %e : tensor<2x256x97xbf16> to tensor<2x256x97xf32>
    %r = par.reduce sum %s dims [2] : tensor<2x256x97xf32> to tensor<2x256xf32>
    par.fetch %r as "later" : tensor<2x256xf32>
  }
  par.entry @train runs [@copied, @later] microbatches [0, 0]
}
