// On a CPU elementwise values are delayed until another kernel that reads the same operands: large operands are read
// once.
// RUN: par-opt %s --par-form-kernels --par-verify-kernels | FileCheck %s
// RUN: par-opt %s --par-form-kernels=device=cuda --par-verify-kernels | FileCheck %s --check-prefix=CUDA

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @x temp : tensor<512x512xf32>
  par.buffer @y temp : tensor<512x512xf32>
  par.buffer @z temp : tensor<512x512xf32>
  par.buffer @s temp : tensor<8x8xf32>
  par.buffer @other temp : tensor<8x8xf32>

  // A recomputed activation that a matmul of backward reads, and its gradient.
  // CHECK-LABEL: par.block @activation
  // CHECK: %[[D:.*]] = par.launch @dot.{{[0-9]+}}(
  // CHECK-NEXT: %[[B:.*]]:2 = par.launch @{{.*}}(%{{.*}}, %[[D]]) : (tensor<512x512xf32>, tensor<512x512xf32>) -> (tensor<512x512xf32>, tensor<512x512xf32>)
  // CHECK-NEXT: par.launch @dot.{{[0-9]+}}(%[[B]]#
  // CUDA-LABEL: par.block @activation
  // CUDA-NOT: :2 = par.launch
  // CUDA-LABEL: par.block @needed_before
  par.block @activation {
    %x = par.load @x : tensor<512x512xf32>
    %y = par.load @y : tensor<512x512xf32>
    %d = par.dot %y, %y contracting [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    %t = par.gelu %x : tensor<512x512xf32>
    %w = par.dot %t, %y contracting [0] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    %0 = par.gelu_grad %d, %x : tensor<512x512xf32>
    par.store %0 to @y : tensor<512x512xf32>
    par.store %w to @z : tensor<512x512xf32>
  }

  // The gradient waits for a product of the activation.
  // CHECK-LABEL: par.block @needed_before
  // CHECK: %[[T:.*]] = par.launch @gelu.{{[0-9]+}}(
  // CHECK-NEXT: %[[D:.*]] = par.launch @dot.{{[0-9]+}}(
  // CHECK-NEXT: par.launch @gelu_grad.{{[0-9]+}}(
  par.block @needed_before {
    %x = par.load @x : tensor<512x512xf32>
    %y = par.load @y : tensor<512x512xf32>
    %t = par.gelu %x : tensor<512x512xf32>
    %d = par.dot %y, %t contracting [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    %0 = par.gelu_grad %d, %x : tensor<512x512xf32>
    par.store %0 to @y : tensor<512x512xf32>
  }

  // Small operands stay in a core's own cache.
  // CHECK-LABEL: par.block @in_cache
  // CHECK-NOT: :2 = par.launch
  par.block @in_cache {
    %x = par.load @s : tensor<8x8xf32>
    %y = par.load @other : tensor<8x8xf32>
    %d = par.dot %y, %y contracting [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %t = par.gelu %x : tensor<8x8xf32>
    %w = par.dot %t, %y contracting [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %0 = par.gelu_grad %d, %x : tensor<8x8xf32>
    par.store %0 to @other : tensor<8x8xf32>
    par.store %w to @s : tensor<8x8xf32>
  }
}
