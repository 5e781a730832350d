// bf16 and f16 are stored and moved; all arithmetic is in f32, and its result is rounded once.
// RUN: par-opt %s --par-promote-to-f32 | FileCheck %s
// RUN: par-opt %s --par-promote-to-f32 --par-form-kernels --par-verify-kernels | FileCheck %s --check-prefix=KERNELS
// RUN: par-opt %s --par-promote-to-f32=device=cuda | FileCheck %s --check-prefix=CUDA

// CHECK-LABEL: par.block @b
// CHECK: %[[X:.*]] = par.load @x
// CHECK: %[[W:.*]] = par.load @w
// CHECK-DAG: %[[XF:.*]] = par.convert %[[X]] : tensor<2x4xbf16> to tensor<2x4xf32>
// CHECK-DAG: %[[TF:.*]] = par.transpose %[[XF]] [1, 0] : tensor<2x4xf32>
// CHECK-DAG: %[[WF:.*]] = par.convert %[[W]] : tensor<4x3xbf16> to tensor<4x3xf32>
// CHECK: %[[D:.*]] = par.dot %[[TF]], %[[WF]] contracting [0] x [0] : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
// A matmul with an f32 result is not rounded.
// CHECK-NEXT: par.store %[[D]] to @sum
// CHECK: %[[E:.*]] = par.exp %{{.*}} : tensor<2x4xf32>
// CHECK-NEXT: %[[R:.*]] = par.convert %[[E]] : tensor<2x4xf32> to tensor<2x4xbf16>
// CHECK-NEXT: par.store %[[R]] to @e
// Integers and f64 become narrow by way of f32.
// CHECK: %[[I:.*]] = par.convert %{{.*}} : tensor<2xi64> to tensor<2xf32>
// CHECK-NEXT: par.convert %[[I]] : tensor<2xf32> to tensor<2xf16>

// Every kernel that reads a bf16 value widens it for itself; a product of the library gets an f32 copy.
// KERNELS-DAG: par.kernel @dot.0(%{{.*}}: tensor<2x4xf32>, %{{.*}}: tensor<4x3xf32>) -> tensor<2x3xf32> attributes {implementation = "library:matmul"}
// KERNELS-DAG: par.kernel @convert.{{.*}}(%{{.*}}: tensor<2x4xbf16>) -> tensor<2x4xbf16> attributes {implementation = "generated"}

// If calls read 16-bit types, layout ops stay in them.
// CUDA: %[[T:.*]] = par.transpose %{{.*}} [1, 0] : tensor<2x4xbf16> to tensor<4x2xbf16>
// CUDA-NEXT: %[[TF:.*]] = par.convert %[[T]] : tensor<4x2xbf16> to tensor<4x2xf32>
// CUDA: par.dot %[[TF]]
par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @x temp : tensor<2x4xbf16>
  par.buffer @w temp : tensor<4x3xbf16>
  par.buffer @sum temp : tensor<2x3xf32>
  par.buffer @e temp : tensor<2x4xbf16>
  par.buffer @i temp : tensor<2xi64>
  par.buffer @h temp : tensor<2xf16>
  par.block @b {
    %x = par.load @x : tensor<2x4xbf16>
    %w = par.load @w : tensor<4x3xbf16>
    %t = par.transpose %x [1, 0] : tensor<2x4xbf16> to tensor<4x2xbf16>
    %d = par.dot %t, %w contracting [0] x [0] : (tensor<4x2xbf16>, tensor<4x3xbf16>) -> tensor<2x3xf32>
    par.store %d to @sum : tensor<2x3xf32>
    %e = par.exp %x : tensor<2x4xbf16>
    par.store %e to @e : tensor<2x4xbf16>
    %i = par.load @i : tensor<2xi64>
    %h = par.convert %i : tensor<2xi64> to tensor<2xf16>
    par.store %h to @h : tensor<2xf16>
  }
}
