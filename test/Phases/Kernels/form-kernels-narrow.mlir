// Cross entropy reads logits that are kept in bf16 or f16 as they are, and writes their gradient so where it is narrowed
// again: no f32 logits are stored.
// RUN: par-opt %s --par-form-kernels --par-verify-kernels | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-form-kernels'

// CHECK: par.kernel @cross_entropy.0(%{{.*}}: tensor<2x8xbf16>, %{{.*}}: tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>) attributes {implementation = "builtin:cross_entropy_bf16"}
// CHECK: par.kernel @cross_entropy_grad.0(%{{.*}}: tensor<2xf32>, %{{.*}}: tensor<2x8xbf16>, %{{.*}}: tensor<2xi64>, %{{.*}}: tensor<2xf32>) -> tensor<2x8xbf16> attributes {implementation = "builtin:cross_entropy_backward_bf16"}
// A gradient that stays in f32 is computed from f32 logits.
// CHECK: par.kernel @cross_entropy_grad.1(%{{.*}}: tensor<2xf32>, %{{.*}}: tensor<2x8xf32>, %{{.*}}: tensor<2xi64>, %{{.*}}: tensor<2xf32>) -> tensor<2x8xf32> attributes {implementation = "builtin:cross_entropy_backward"}
// CHECK: implementation = "builtin:cross_entropy_f16"
par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @z input of "z" : tensor<2x8xbf16> as !par.dist<tensor<2x8xbf16>, @s0, [{}, {}]>
  par.buffer @h input of "h" : tensor<2x8xf16> as !par.dist<tensor<2x8xf16>, @s0, [{}, {}]>
  par.buffer @y input of "y" : tensor<2xi64> as !par.dist<tensor<2xi64>, @s0, [{}]>
  par.buffer @ct input of "ct" : tensor<2xf32> as !par.dist<tensor<2xf32>, @s0, [{}]>
  par.block @loss_of {
    %z = par.load @z : tensor<2x8xbf16>
    %h = par.load @h : tensor<2x8xf16>
    %y = par.load @y : tensor<2xi64>
    %ct = par.load @ct : tensor<2xf32>
    %f = par.convert %z : tensor<2x8xbf16> to tensor<2x8xf32>
    %loss, %lse = par.cross_entropy %f, %y ignore -100 : (tensor<2x8xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>)
    %d = par.cross_entropy_grad %ct, %f, %y, %lse ignore -100 : (tensor<2xf32>, tensor<2x8xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<2x8xf32>
    %dz = par.convert %d : tensor<2x8xf32> to tensor<2x8xbf16>
    par.fetch %loss as "loss" : tensor<2xf32> of !par.dist<tensor<2xf32>, @s0, [{}]>
    par.fetch %dz as "dz" : tensor<2x8xbf16> of !par.dist<tensor<2x8xbf16>, @s0, [{}, {}]>
    %wide = par.cross_entropy_grad %ct, %f, %y, %lse ignore -100 : (tensor<2xf32>, tensor<2x8xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<2x8xf32>
    par.fetch %wide as "wide" : tensor<2x8xf32> of !par.dist<tensor<2x8xf32>, @s0, [{}, {}]>
    %g = par.convert %h : tensor<2x8xf16> to tensor<2x8xf32>
    %other, %lse2 = par.cross_entropy %g, %y ignore -100 : (tensor<2x8xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>)
    par.fetch %other as "other" : tensor<2xf32> of !par.dist<tensor<2xf32>, @s0, [{}]>
  }
  par.entry @all runs [@loss_of] microbatches [0]
}
