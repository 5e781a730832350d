// Rows that a select writes into a loaded buffer are one call, in place; where the index is not the number within the
// condition, or the bound is not the rows', it is none. On a GPU it is generated.
// RUN: par-opt %s --par-form-kernels --par-verify-kernels | FileCheck %s
// RUN: par-opt %s --par-form-kernels --par-assign-buffers | FileCheck %s --check-prefix=BUFFERS
// RUN: par-opt %s --par-form-kernels=device=cuda | FileCheck %s --check-prefix=CUDA

// CHECK: par.kernel @[[PLACE:.*]](%{{.*}}) -> tensor<2x2x4x3xf32>
// CHECK-SAME: implementation = "builtin:place_rows", tied = array<i64: {{[0-9]}}>
// CHECK-NOT: builtin:place_rows
// CHECK: par.block @placed
// CHECK: par.launch @[[PLACE]](
// CHECK: par.block @shifted
// CHECK-NOT: @[[PLACE]](
// CUDA-NOT: builtin:place_rows

// BUFFERS: par.block @placed
// BUFFERS-NOT: par.store %{{.*}} : tensor<2x2x4x3xf32>
// BUFFERS: par.store %{{.*}} to @past : tensor<2x2x4x3xf32>
// BUFFERS-NOT: par.store %{{.*}} : tensor<2x2x4x3xf32>
// BUFFERS: par.block @shifted
par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @past state of "past" : tensor<2x2x4x3xf32>
  par.buffer @new temp : tensor<2x2x2x3xf32>
  par.buffer @number temp : tensor<2x4xi64>
  par.block @placed {
    %past = par.load @past : tensor<2x2x4x3xf32>
    %new = par.load @new : tensor<2x2x2x3xf32>
    %number = par.load @number : tensor<2x4xi64>
    %zero = par.constant dense<0> : tensor<2x4xi64>
    %one = par.constant dense<1> : tensor<2x4xi64>
    %two = par.constant dense<2> : tensor<2x4xi64>
    %from = par.compare ge %number, %zero : tensor<2x4xi64>
    %below = par.compare lt %number, %two : tensor<2x4xi64>
    %inside = par.and %from, %below : tensor<2x4xi1>
    %low = par.compare lt %number, %zero : tensor<2x4xi64>
    %clamped = par.select %low, %zero, %number : tensor<2x4xi1>, tensor<2x4xi64>
    %high = par.compare gt %clamped, %one : tensor<2x4xi64>
    %row = par.select %high, %one, %clamped : tensor<2x4xi1>, tensor<2x4xi64>
    %row4 = par.reshape %row : tensor<2x4xi64> to tensor<2x1x4x1xi64>
    %index = par.broadcast_in_dim %row4 dims [0, 1, 2, 3] : tensor<2x1x4x1xi64> to tensor<2x2x4x3xi64>
    %taken = par.take %new, %index dim 2 : tensor<2x2x2x3xf32>, tensor<2x2x4x3xi64> to tensor<2x2x4x3xf32>
    %inside4 = par.reshape %inside : tensor<2x4xi1> to tensor<2x1x4x1xi1>
    %where = par.broadcast_in_dim %inside4 dims [0, 1, 2, 3] : tensor<2x1x4x1xi1> to tensor<2x2x4x3xi1>
    %written = par.select %where, %taken, %past : tensor<2x2x4x3xi1>, tensor<2x2x4x3xf32>
    par.store %written to @past : tensor<2x2x4x3xf32>
  }
  par.block @shifted {
    %past = par.load @past : tensor<2x2x4x3xf32>
    %new = par.load @new : tensor<2x2x2x3xf32>
    %number = par.load @number : tensor<2x4xi64>
    %zero = par.constant dense<0> : tensor<2x4xi64>
    %two = par.constant dense<2> : tensor<2x4xi64>
    %from = par.compare ge %number, %zero : tensor<2x4xi64>
    %below = par.compare lt %number, %two : tensor<2x4xi64>
    %inside = par.and %from, %below : tensor<2x4xi1>
    %row4 = par.reshape %zero : tensor<2x4xi64> to tensor<2x1x4x1xi64>
    %index = par.broadcast_in_dim %row4 dims [0, 1, 2, 3] : tensor<2x1x4x1xi64> to tensor<2x2x4x3xi64>
    %taken = par.take %new, %index dim 2 : tensor<2x2x2x3xf32>, tensor<2x2x4x3xi64> to tensor<2x2x4x3xf32>
    %inside4 = par.reshape %inside : tensor<2x4xi1> to tensor<2x1x4x1xi1>
    %where = par.broadcast_in_dim %inside4 dims [0, 1, 2, 3] : tensor<2x1x4x1xi1> to tensor<2x2x4x3xi1>
    %written = par.select %where, %taken, %past : tensor<2x2x4x3xi1>, tensor<2x2x4x3xf32>
    par.store %written to @past : tensor<2x2x4x3xf32>
  }
}
