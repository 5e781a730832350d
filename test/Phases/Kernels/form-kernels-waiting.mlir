// Which elementwise values wait for those who read them, to be computed in the same kernel.
// RUN: par-opt %s --par-form-kernels --par-verify-kernels | FileCheck %s

par.stage @s0 <"dp"=2> ranks [0, 1]
par.program @p on @s0 ranks [0, 1] {
  par.buffer @x temp : tensor<8x8xf32>
  par.buffer @y temp : tensor<8x8xf32>
  par.buffer @z temp : tensor<8x8xf32>
  par.buffer @w temp : tensor<8x8x4xf32>
  par.buffer @m temp : tensor<8x8xf32>
  par.buffer @n temp : tensor<8x8xf32>

  // An activation's derivative does not need the gradient that comes back. A matmul of another gradient, which comes
  // later, reads it too, so both are one launch after the first matmul.
  // CHECK-LABEL: par.block @activation
  // CHECK: %[[C:.*]] = par.launch @dot.0(
  // CHECK-NEXT: %[[D:.*]] = par.launch @dot.0(%[[C]],
  // CHECK-NEXT: %[[B:.*]]:2 = par.launch @{{.*}}(%{{.*}}, %[[D]]) : (tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  // CHECK-NEXT: par.launch @dot.1(%[[B]]#
  par.block @activation {
    %x = par.load @x : tensor<8x8xf32>
    %m = par.load @m : tensor<8x8xf32>
    %n = par.load @n : tensor<8x8xf32>
    %t = par.tanh %x : tensor<8x8xf32>
    %s = par.multiply %t, %t : tensor<8x8xf32>
    %c = par.dot %m, %n contracting [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %d = par.dot %c, %n contracting [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %w = par.dot %t, %m contracting [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %0 = par.multiply %d, %s : tensor<8x8xf32>
    %1 = par.add %0, %d : tensor<8x8xf32>
    par.store %1 to @y : tensor<8x8xf32>
    par.store %w to @z : tensor<8x8xf32>
  }

  // So is the forward part that a softmax's gradient reads, which has the same rows.
  // CHECK-LABEL: par.block @rows
  // CHECK: %[[C:.*]] = par.launch @dot.0(
  // CHECK-NEXT: %[[D:.*]] = par.launch @dot.0(%[[C]],
  // CHECK-NEXT: %[[S:.*]] = par.launch @softmax_grad.0(%{{.*}}, %[[D]])
  // CHECK-NEXT: par.store %[[S]] to @y
  par.block @rows {
    %x = par.load @x : tensor<8x8xf32>
    %m = par.load @m : tensor<8x8xf32>
    %n = par.load @n : tensor<8x8xf32>
    %t = par.tanh %x : tensor<8x8xf32>
    %c = par.dot %m, %n contracting [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %d = par.dot %c, %n contracting [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %0 = par.softmax_grad %d, %t dim 1 : tensor<8x8xf32>
    par.store %0 to @y : tensor<8x8xf32>
  }

  // An earlier user would have to wait for the matmul.
  // CHECK-LABEL: par.block @needed_before
  // CHECK: %[[T:.*]] = par.launch @tanh.0(
  // CHECK-NEXT: %[[W:.*]] = par.launch @dot.{{[0-9]+}}(%[[T]],
  // CHECK-NEXT: %[[C:.*]] = par.launch @dot.{{[0-9]+}}(
  // CHECK-NEXT: %[[D:.*]] = par.launch @dot.{{[0-9]+}}(%[[C]],
  // CHECK-NEXT: par.launch @multiply.{{[0-9]+}}(%[[D]], %[[T]])
  par.block @needed_before {
    %x = par.load @x : tensor<8x8xf32>
    %m = par.load @m : tensor<8x8xf32>
    %n = par.load @n : tensor<8x8xf32>
    %t = par.tanh %x : tensor<8x8xf32>
    %w = par.dot %t, %m contracting [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %c = par.dot %m, %n contracting [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %d = par.dot %c, %n contracting [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %0 = par.multiply %d, %t : tensor<8x8xf32>
    par.store %w to @z : tensor<8x8xf32>
    par.store %0 to @y : tensor<8x8xf32>
  }

  // Two operands would be kept until then, for one value.
  // CHECK-LABEL: par.block @more_kept
  // CHECK: %[[A:.*]] = par.launch @add.{{[0-9]+}}(
  // CHECK-NEXT: %[[C:.*]] = par.launch @dot.{{[0-9]+}}(
  // CHECK-NEXT: %[[D:.*]] = par.launch @dot.{{[0-9]+}}(%[[C]],
  // CHECK-NEXT: par.launch @multiply.{{[0-9]+}}(%[[D]], %[[A]])
  par.block @more_kept {
    %x = par.load @x : tensor<8x8xf32>
    %y = par.load @y : tensor<8x8xf32>
    %m = par.load @m : tensor<8x8xf32>
    %n = par.load @n : tensor<8x8xf32>
    %a = par.add %x, %y : tensor<8x8xf32>
    %c = par.dot %m, %n contracting [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %d = par.dot %c, %n contracting [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %0 = par.multiply %d, %a : tensor<8x8xf32>
    par.store %0 to @z : tensor<8x8xf32>
  }

  // A store may come before, to the buffer that it reads.
  // CHECK-LABEL: par.block @stored
  // CHECK: %[[T:.*]] = par.launch @tanh.0(
  // CHECK: par.launch @multiply.{{[0-9]+}}(%{{.*}}, %[[T]])
  par.block @stored {
    %x = par.load @x : tensor<8x8xf32>
    %m = par.load @m : tensor<8x8xf32>
    %n = par.load @n : tensor<8x8xf32>
    %t = par.tanh %x : tensor<8x8xf32>
    par.store %m to @x : tensor<8x8xf32>
    %c = par.dot %m, %n contracting [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %d = par.dot %c, %n contracting [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %0 = par.multiply %d, %t : tensor<8x8xf32>
    par.store %0 to @y : tensor<8x8xf32>
  }

  // A group that reads it late, in other loops, gave the reader's operand early: none of the three could be first.
  // CHECK-LABEL: par.block @ring
  // CHECK: %[[T:.*]] = par.launch @tanh.0(
  // CHECK: %[[E:.*]]:2 = par.launch @{{.*}}%[[T]]{{.*}} -> (tensor<8x8xf32>, tensor<8x8x4xf32>)
  // CHECK-NEXT: %[[D:.*]] = par.launch @dot.{{[0-9]+}}(%[[E]]#0
  // CHECK-NEXT: par.launch @multiply.{{[0-9]+}}(%[[D]], %[[T]])
  par.block @ring {
    %x = par.load @x : tensor<8x8xf32>
    %m = par.load @m : tensor<8x8xf32>
    %n = par.load @n : tensor<8x8xf32>
    %t = par.tanh %x : tensor<8x8xf32>
    %c = par.dot %m, %n contracting [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %d0 = par.dot %c, %n contracting [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %e = par.exp %d0 : tensor<8x8xf32>
    %d1 = par.dot %e, %n contracting [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %0 = par.multiply %d1, %t : tensor<8x8xf32>
    %e3 = par.broadcast_in_dim %e dims [0, 1] : tensor<8x8xf32> to tensor<8x8x4xf32>
    %t3 = par.broadcast_in_dim %t dims [0, 1] : tensor<8x8xf32> to tensor<8x8x4xf32>
    %1 = par.multiply %e3, %t3 : tensor<8x8x4xf32>
    par.store %0 to @y : tensor<8x8xf32>
    par.store %1 to @w : tensor<8x8x4xf32>
  }
}
