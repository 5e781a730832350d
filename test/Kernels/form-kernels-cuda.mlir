// Kernels for a GPU save memory traffic by computing anew, which those of a CPU do not, and have no more operands
// than registers hold. What they compute is the same.
// RUN: par-opt %s --par-form-kernels=device=cuda --par-verify-kernels | FileCheck %s
// RUN: par-opt %s --par-form-kernels | FileCheck %s --check-prefix=CPU
// RUN: par-opt %s --par-check-phases='passes=par-form-kernels{device=cuda}'

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @x temp : tensor<4x8xf32>
  par.buffer @y temp : tensor<4x8xf32>
  par.buffer @z temp : tensor<4x8xf32>
  par.buffer @w temp : tensor<8x8xf32>
  par.buffer @b temp : tensor<4x8xbf16>
  par.buffer @c temp : tensor<4x8xbf16>

  // Two values of x are read by the product and by what follows it: the latter computes both from x.
  // CHECK-LABEL: par.block @again
  // CHECK: %[[X:.*]] = par.load @x
  // CHECK: %[[E:.*]] = par.launch @{{.*}}(%[[X]]) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: %[[D:.*]] = par.launch @dot.{{[0-9]+}}(%[[E]],
  // CHECK: par.launch @{{.*}}(%[[D]], %[[X]]) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CPU-LABEL: par.block @again
  // CPU: par.launch @{{.*}}(%{{.*}}) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  par.block @again {
    %x = par.load @x : tensor<4x8xf32>
    %w = par.load @w : tensor<8x8xf32>
    %e = par.exp %x : tensor<4x8xf32>
    %t = par.tanh %e : tensor<4x8xf32>
    %d = par.dot %e, %w contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %0 = par.multiply %d, %e : tensor<4x8xf32>
    %1 = par.add %0, %t : tensor<4x8xf32>
    par.store %1 to @y : tensor<4x8xf32>
  }

  // Not where the buffer that it would be computed from is written before it is read again.
  // CHECK-LABEL: par.block @stored
  // CHECK: par.launch @{{.*}}(%{{.*}}) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  par.block @stored {
    %x = par.load @x : tensor<4x8xf32>
    %w = par.load @w : tensor<8x8xf32>
    %e = par.exp %x : tensor<4x8xf32>
    %t = par.tanh %e : tensor<4x8xf32>
    %d = par.dot %e, %w contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    par.store %d to @x : tensor<4x8xf32>
    %0 = par.multiply %d, %e : tensor<4x8xf32>
    %1 = par.add %0, %t : tensor<4x8xf32>
    par.store %1 to @y : tensor<4x8xf32>
  }

  // A narrow constant is none that two chains share a kernel for.
  // CHECK-LABEL: par.block @constant
  // CHECK-COUNT-2: par.launch @{{.*}} : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  // CPU-LABEL: par.block @constant
  // CPU: par.launch @{{.*}} : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  par.block @constant {
    %b = par.load @b : tensor<4x8xbf16>
    %c = par.load @c : tensor<4x8xbf16>
    %half = par.constant dense<0.3> : tensor<4x8xf32>
    %narrow = par.convert %half : tensor<4x8xf32> to tensor<4x8xbf16>
    %h = par.convert %narrow : tensor<4x8xbf16> to tensor<4x8xf32>
    %bw = par.convert %b : tensor<4x8xbf16> to tensor<4x8xf32>
    %cw = par.convert %c : tensor<4x8xbf16> to tensor<4x8xf32>
    %0 = par.multiply %bw, %h : tensor<4x8xf32>
    %1 = par.add %cw, %h : tensor<4x8xf32>
    par.store %0 to @y : tensor<4x8xf32>
    par.store %1 to @z : tensor<4x8xf32>
  }
}
