// A pad that appends zeros after all elements, and is no part of another kernel, is written in its operand's buffer.
// RUN: par-opt %s --par-form-kernels --par-verify-kernels | FileCheck %s

// CHECK: par.kernel @pad.0(%{{.*}}: tensor<1x5x4xf32>) -> tensor<1x6x4xf32> attributes {implementation = "fill", tied = array<i64: 0>}
// CHECK: par.kernel @pad.1(%{{.*}}: tensor<5x4xf32>) -> tensor<5x5xf32> attributes {implementation = "generated"}
// CHECK: par.kernel @pad.2(%{{.*}}: tensor<5x4xf32>) -> tensor<6x4xf32> attributes {implementation = "generated"}
par.stage @s0 <"dp"=1> ranks [0]
par.program @stage0 on @s0 ranks [0] {
  par.buffer @a input of "a" : tensor<1x5x4xf32>
  par.buffer @b input of "b" : tensor<5x4xf32>
  par.buffer @rows temp : tensor<1x6x4xf32>
  par.buffer @columns temp : tensor<5x5xf32>
  par.buffer @ones temp : tensor<6x4xf32>
  par.block @forward {
    %a = par.load @a : tensor<1x5x4xf32>
    %0 = par.pad %a low [0, 0, 0] high [0, 1, 0] value 0.0 : f32 : tensor<1x5x4xf32> to tensor<1x6x4xf32>
    par.store %0 to @rows : tensor<1x6x4xf32>
    %b = par.load @b : tensor<5x4xf32>
    %1 = par.pad %b low [0, 0] high [0, 1] value 0.0 : f32 : tensor<5x4xf32> to tensor<5x5xf32>
    par.store %1 to @columns : tensor<5x5xf32>
    %2 = par.pad %b low [0, 0] high [1, 0] value 1.0 : f32 : tensor<5x4xf32> to tensor<6x4xf32>
    par.store %2 to @ones : tensor<6x4xf32>
  }
  par.entry @eval runs [@forward] microbatches [0]
}
