// A kernel launched early, because its first values are used early, also reads an op that stays and follows in the
// block: that op moves before it.
// RUN: par-opt %s --par-form-kernels --par-verify-kernels | FileCheck %s

// CHECK: par.block @forward
// CHECK: %[[S:.*]] = par.launch @reduce
// CHECK: %[[WHOLE:.*]] = par.all_gather
// CHECK: %[[BOTH:.*]]:2 = par.launch @{{.*}}(%[[S]], %[[WHOLE]])
// CHECK: par.launch @broadcast_in_dim{{.*}}(%[[BOTH]]#0)
par.stage @s0 <"dp"=2> ranks [0, 1]
par.program @p on @s0 ranks [0, 1] {
  par.buffer @x temp : tensor<5x3x4xf32>
  par.buffer @part temp : tensor<3x2xf32>
  par.buffer @wide temp : tensor<3x4x2xf32>
  par.buffer @out temp : tensor<3x4xf32>
  par.block @forward {
    %x = par.load @x : tensor<5x3x4xf32>
    %part = par.load @part : tensor<3x2xf32>
    %s = par.reduce sum %x dims [0] : tensor<5x3x4xf32> to tensor<3x4xf32>
    %r = par.tanh %s : tensor<3x4xf32>
    %wide = par.broadcast_in_dim %r dims [0, 1] : tensor<3x4xf32> to tensor<3x4x2xf32>
    %whole = par.all_gather %part dims [1] over ["dp"] : (tensor<3x2xf32>) -> tensor<3x4xf32>
    %y = par.multiply %r, %whole : tensor<3x4xf32>
    par.store %y to @out : tensor<3x4xf32>
    par.store %wide to @wide : tensor<3x4x2xf32>
  }
}
