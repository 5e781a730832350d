// Ops that join one generated kernel, and ops that must not.
// RUN: par-opt %s --par-form-kernels --par-verify-kernels | FileCheck %s

par.stage @s0 <"dp"=2> ranks [0, 1]
par.program @p on @s0 ranks [0, 1] {
  par.buffer @x temp : tensor<4x8xf32>
  par.buffer @y temp : tensor<4x8xf32>
  par.buffer @g temp : tensor<8xf32>
  par.buffer @c temp : tensor<4x8x5xf32>
  par.buffer @h temp : tensor<8x5xf32>
  par.buffer @w state of "w" : tensor<4x8xf32>
  par.buffer @m temp : tensor<8x8xf32>
  par.buffer @s temp : tensor<f32>
  par.buffer @lr hyperparameter of "lr" : tensor<f32>

  // A chain with a norm in it is one launch; the sum over rows, which has no rows in common, is another.
  // CHECK-LABEL: par.block @chain
  // CHECK-COUNT-2: par.load
  // CHECK-NEXT: %[[Y:.*]]:2 = par.launch @[[CHAIN:.*]](
  // CHECK-NEXT: %[[G:.*]] = par.launch @reduce.0(%[[Y]]#
  // CHECK-NEXT: par.store %[[Y]]#
  // CHECK-NEXT: par.store %[[G]] to @g
  par.block @chain {
    %x = par.load @x : tensor<4x8xf32>
    %g = par.load @g : tensor<8xf32>
    %0 = par.exp %x : tensor<4x8xf32>
    %1, %mean, %rstd = par.layer_norm %0, %g, %g epsilon 1.0e-5 : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
    %2 = par.add %1, %0 : tensor<4x8xf32>
    %3 = par.tanh %2 : tensor<4x8xf32>
    %4 = par.reduce sum %2 dims [0] : tensor<4x8xf32> to tensor<8xf32>
    par.store %3 to @y : tensor<4x8xf32>
    par.store %4 to @g : tensor<8xf32>
  }

  // Reductions that keep the second dim, along which elements are contiguous, share it as rows: sums and their users
  // are one launch.
  // CHECK-LABEL: par.block @channels
  // CHECK: %[[N:.*]]:2 = par.launch @{{.*}} -> (tensor<8xf32>, tensor<4x8x5xf32>)
  // CHECK-NEXT: par.store %[[N]]#1 to @c
  // CHECK-NEXT: par.store %[[N]]#0 to @g
  par.block @channels {
    %x = par.load @c : tensor<4x8x5xf32>
    %s = par.reduce sum %x dims [0, 2] : tensor<4x8x5xf32> to tensor<8xf32>
    %mean = par.broadcast_in_dim %s dims [1] : tensor<8xf32> to tensor<4x8x5xf32>
    %0 = par.subtract %x, %mean : tensor<4x8x5xf32>
    %1 = par.multiply %0, %0 : tensor<4x8x5xf32>
    %v = par.reduce sum %1 dims [0, 2] : tensor<4x8x5xf32> to tensor<8xf32>
    %r = par.rsqrt %v : tensor<8xf32>
    %factor = par.broadcast_in_dim %r dims [1] : tensor<8xf32> to tensor<4x8x5xf32>
    %y = par.multiply %0, %factor : tensor<4x8x5xf32>
    par.store %y to @c : tensor<4x8x5xf32>
    par.store %r to @g : tensor<8xf32>
  }

  // Sums that keep other dims have no rows in common.
  // CHECK-LABEL: par.block @apart
  // CHECK: %[[A:.*]]:2 = par.launch @{{.*}} -> (tensor<4x8x5xf32>, tensor<8xf32>)
  // CHECK-NEXT: par.launch @{{.*}}(%[[A]]#0) : (tensor<4x8x5xf32>) -> tensor<8x5xf32>
  par.block @apart {
    %x = par.load @c : tensor<4x8x5xf32>
    %0 = par.exp %x : tensor<4x8x5xf32>
    %1 = par.reduce sum %0 dims [0, 2] : tensor<4x8x5xf32> to tensor<8xf32>
    %2 = par.reduce sum %0 dims [0] : tensor<4x8x5xf32> to tensor<8x5xf32>
    par.store %1 to @g : tensor<8xf32>
    par.store %2 to @h : tensor<8x5xf32>
  }

  // The add depends on the matmul, which depends on the exp: exp and add are two kernels.
  // CHECK-LABEL: par.block @cycle
  // CHECK: %[[E:.*]] = par.launch @exp.0
  // CHECK-NEXT: %[[D:.*]] = par.launch @dot.0(%[[E]])
  // CHECK-NEXT: %[[R:.*]] = par.launch @{{.*}}(%[[D]], %[[E]])
  // CHECK-NEXT: par.store %[[R]] to @y
  par.block @cycle {
    %x = par.load @x : tensor<4x8xf32>
    %0 = par.exp %x : tensor<4x8xf32>
    %t = par.transpose %0 [1, 0] : tensor<4x8xf32> to tensor<8x4xf32>
    %1 = par.dot %t, %0 contracting [1] x [0] : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %2 = par.slice %1 [0, 0] to [4, 8] by [1, 1] : tensor<8x8xf32> to tensor<4x8xf32>
    %3 = par.add %0, %2 : tensor<4x8xf32>
    par.store %3 to @y : tensor<4x8xf32>
  }

  // Communication keeps its order, so a common user of two collectives waits for both.
  // CHECK-LABEL: par.block @communication
  // CHECK: %[[A:.*]] = par.launch @exp.0
  // CHECK-NEXT: %[[B:.*]] = par.all_reduce sum %[[A]]
  // CHECK-NEXT: %[[C:.*]] = par.all_reduce max
  // CHECK-NEXT: par.launch @add.{{[0-9]+}}(%[[A]], %[[C]])
  par.block @communication {
    %x = par.load @x : tensor<4x8xf32>
    %0 = par.exp %x : tensor<4x8xf32>
    %1 = par.all_reduce sum %0 over ["dp"] : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = par.all_reduce max %x over ["dp"] : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = par.add %0, %2 : tensor<4x8xf32>
    par.store %1 to @x : tensor<4x8xf32>
    par.store %3 to @y : tensor<4x8xf32>
  }

  // The scaling of a gradient is the optimizer's; a sum that goes back to where a summand lies is in place.
  // CHECK-LABEL: par.block @update
  // CHECK-COUNT-4: par.load
  // CHECK-NEXT: %[[W:.*]] = par.launch @sgd.0(
  // CHECK-NEXT: par.store %[[W]] to @w
  par.block @update {
    %g = par.load @x : tensor<4x8xf32>
    %s = par.load @s : tensor<f32>
    %w = par.load @w : tensor<4x8xf32>
    %lr = par.load @lr : tensor<f32>
    %0 = par.broadcast_in_dim %s dims [] : tensor<f32> to tensor<4x8xf32>
    %1 = par.multiply %g, %0 : tensor<4x8xf32>
    %2 = par.sgd %w, %1, %lr decay 0.0 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>
    par.store %2 to @w : tensor<4x8xf32>
  }
}
