// The sum of squares of a large tensor in memory (a norm) is one call of the runtime; that of a small tensor, or of a
// value that the kernel itself computes, is generated.
// RUN: par-opt %s --par-form-kernels --par-verify-kernels | FileCheck %s

// CHECK: par.kernel @reduce.0(%{{.*}}: tensor<128x256xf32>) -> tensor<f32> attributes {implementation = "builtin:sum_squares"}
// CHECK: par.kernel @{{.*}}(%{{.*}}: tensor<64xf32>) -> tensor<f32> attributes {implementation = "generated"}
// CHECK: par.kernel @{{.*}}(%{{.*}}: tensor<128x256xf32>) -> tensor<f32> attributes {implementation = "generated"}
par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @g temp : tensor<128x256xf32>
  par.buffer @b temp : tensor<64xf32>
  par.buffer @a0 temp : tensor<f32>
  par.buffer @a1 temp : tensor<f32>
  par.buffer @a2 temp : tensor<f32>
  par.block @norm {
    %g = par.load @g : tensor<128x256xf32>
    %0 = par.multiply %g, %g : tensor<128x256xf32>
    %1 = par.reduce sum %0 dims [0, 1] : tensor<128x256xf32> to tensor<f32>
    par.store %1 to @a0 : tensor<f32>
    %b = par.load @b : tensor<64xf32>
    %2 = par.multiply %b, %b : tensor<64xf32>
    %3 = par.reduce sum %2 dims [0] : tensor<64xf32> to tensor<f32>
    par.store %3 to @a1 : tensor<f32>
    %4 = par.sqrt %g : tensor<128x256xf32>
    %5 = par.multiply %4, %4 : tensor<128x256xf32>
    %6 = par.reduce sum %5 dims [0, 1] : tensor<128x256xf32> to tensor<f32>
    par.store %6 to @a2 : tensor<f32>
  }
}
