// Zeros are not appended to a constant in place, as no op writes constants: a copy of it is padded.
// RUN: par-opt %s --par-assign-buffers --par-pack-memory --par-verify-memory | FileCheck %s

par.stage @s0 <"tp"=2> ranks [0, 1]
par.variable @c constant : tensor<5x4xf32> value dense<1.0> : tensor<5x4xf32>
par.kernel @fill(%a: tensor<5x4xf32>) -> tensor<6x4xf32> attributes {implementation = "fill", tied = array<i64: 0>} {
  %0 = par.pad %a low [0, 0] high [1, 0] value 0.0 : f32 : tensor<5x4xf32> to tensor<6x4xf32>
  par.return %0 : tensor<6x4xf32>
}
par.kernel @neg(%a: tensor<6x4xf32>) -> tensor<6x4xf32> attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<6x4xf32>
  par.return %0 : tensor<6x4xf32>
}
// CHECK: par.buffer @c state of "c" : tensor<5x4xf32> as
// CHECK-NOT: to @c
par.program @stage0 on @s0 ranks [0, 1] {
  par.buffer @c state of "c" : tensor<5x4xf32> as !par.dist<tensor<5x4xf32>, @s0, [{}, {}]>
  par.buffer @y temp : tensor<6x4xf32>
  par.block @look {
    %c = par.load @c : tensor<5x4xf32>
    %f = par.launch @fill(%c) : (tensor<5x4xf32>) -> tensor<6x4xf32>
    %n = par.launch @neg(%f) : (tensor<6x4xf32>) -> tensor<6x4xf32>
    par.store %n to @y : tensor<6x4xf32>
  }
  par.entry @eval runs [@look] microbatches [0]
}
