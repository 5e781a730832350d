// A sum that goes back to where the old one stands is added in place, also if it is reduced over ranks on the way.
// RUN: par-opt %s --par-form-kernels --par-verify-kernels | FileCheck %s

// CHECK: par.kernel @[[K:.*]](%{{.*}}: tensor<4xf32>, %{{.*}}: tensor<4xf32>) -> tensor<4xf32> attributes {implementation = "generated", tied = array<i64: 0>}
// CHECK: par.block @plain
// CHECK: par.launch @[[K]]
// CHECK: par.block @reduced
// CHECK: par.launch @[[K]]
// CHECK-NEXT: par.all_reduce
par.stage @s0 <"dp"=2> ranks [0, 1]
par.program @p on @s0 ranks [0, 1] {
  par.buffer @sum temp : tensor<4xf32>
  par.buffer @g temp : tensor<4xf32>
  par.block @plain {
    %s = par.load @sum : tensor<4xf32>
    %g = par.load @g : tensor<4xf32>
    %0 = par.add %s, %g : tensor<4xf32>
    par.store %0 to @sum : tensor<4xf32>
  }
  par.block @reduced {
    %s = par.load @sum : tensor<4xf32>
    %g = par.load @g : tensor<4xf32>
    %0 = par.add %s, %g : tensor<4xf32>
    %1 = par.all_reduce sum %0 over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    par.store %1 to @sum : tensor<4xf32>
  }
}
