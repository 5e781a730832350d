// Matmuls are added one by one to the sum's buffer, each after it is computed, so each accumulates in place; the first
// sum comes right after the first matmul. A summand with other users, or a sum stored elsewhere, stays.
// RUN: par-opt %s --par-accumulate-in-place | FileCheck %s
// RUN: par-opt %s --par-accumulate-in-place --par-form-kernels --par-verify-kernels \
// RUN:   | FileCheck %s --check-prefix=KERNELS
// RUN: par-opt %s --par-accumulate-in-place --par-form-kernels --par-assign-buffers \
// RUN:   | FileCheck %s --check-prefix=BUFFERS

// CHECK-LABEL: par.block @more
// CHECK-NEXT: %[[OLD:.*]] = par.load @sum
// CHECK: %[[DOT:.*]] = par.dot
// CHECK-NEXT: %[[ONE:.*]] = par.add %[[OLD]], %[[DOT]]
// CHECK: %[[SCATTERED:.*]] = par.index_add
// CHECK-NEXT: %[[TWO:.*]] = par.add %[[ONE]], %[[SCATTERED]]
// CHECK: %[[THREE:.*]] = par.add %[[TWO]], %{{.*}}
// CHECK-NEXT: %[[ALL:.*]] = par.all_reduce sum %[[THREE]]
// CHECK-NEXT: par.store %[[ALL]] to @sum

// KERNELS-DAG: par.kernel @[[DOT:.*]](%{{.*}}, %{{.*}}) -> tensor<4x4xf32> attributes {implementation = "library:matmul"}
// KERNELS-DAG: par.kernel @[[SCATTER:.*]](%{{.*}}: tensor<2x4xf32>, %{{.*}}: tensor<2xi64>, %{{.*}}: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {implementation = "builtin:scatter_add_rows", tied = array<i64: 2>}
// KERNELS-DAG: par.kernel @[[MORE:.*]](%{{.*}}, %{{.*}}, %{{.*}}) -> tensor<4x4xf32> attributes {implementation = "library:matmul", tied = array<i64: 2>}
// KERNELS: par.block @first
// KERNELS: %[[P:.*]] = par.launch @[[DOT]](
// KERNELS: %[[S:.*]] = par.launch @[[SCATTER]](%{{.*}}, %{{.*}}, %[[P]])
// KERNELS-NEXT: par.store %[[S]] to @sum
// KERNELS: par.block @more
// KERNELS: %[[P:.*]] = par.launch @[[MORE]](
// KERNELS: par.launch @[[SCATTER]](%{{.*}}, %{{.*}}, %[[P]])
// KERNELS: par.block @read
// KERNELS: %[[P:.*]] = par.launch @[[DOT]](
// KERNELS: par.launch @{{(add|index_add).*}}

// No buffer except the sum has the table's size.
// BUFFERS-NOT: par.buffer @first.t{{.*}} : tensor<4x4xf32>
// BUFFERS: par.block @first
par.stage @s0 <"dp"=2> ranks [0, 1]
par.program @p on @s0 ranks [0, 1] {
  par.buffer @sum temp : tensor<4x4xf32>
  par.buffer @z temp : tensor<2x4xf32>
  par.buffer @dx temp : tensor<2x4xf32>
  par.buffer @b temp : tensor<4x4xf32>
  par.buffer @ids temp : tensor<2xi64>
  par.block @first {
    %z = par.load @z : tensor<2x4xf32>
    %dx = par.load @dx : tensor<2x4xf32>
    %ids = par.load @ids : tensor<2xi64>
    %0 = par.dot %z, %dx contracting [0] x [0] : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %1 = par.index_add %dx, %ids dim 0 size 4 : tensor<2x4xf32>, tensor<2xi64> to tensor<4x4xf32>
    %2 = par.add %0, %1 : tensor<4x4xf32>
    par.store %2 to @sum : tensor<4x4xf32>
  }
  par.block @more {
    %z = par.load @z : tensor<2x4xf32>
    %dx = par.load @dx : tensor<2x4xf32>
    %ids = par.load @ids : tensor<2xi64>
    %b = par.load @b : tensor<4x4xf32>
    %0 = par.dot %z, %dx contracting [0] x [0] : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %t = par.tanh %b : tensor<4x4xf32>
    %1 = par.index_add %dx, %ids dim 0 size 4 : tensor<2x4xf32>, tensor<2xi64> to tensor<4x4xf32>
    %2 = par.add %0, %t : tensor<4x4xf32>
    %3 = par.add %2, %1 : tensor<4x4xf32>
    %s = par.load @sum : tensor<4x4xf32>
    %4 = par.add %s, %3 : tensor<4x4xf32>
    %5 = par.all_reduce sum %4 over ["dp"] : (tensor<4x4xf32>) -> tensor<4x4xf32>
    par.store %5 to @sum : tensor<4x4xf32>
  }
  par.block @read {
    %z = par.load @z : tensor<2x4xf32>
    %dx = par.load @dx : tensor<2x4xf32>
    %s = par.load @sum : tensor<4x4xf32>
    %0 = par.dot %z, %dx contracting [0] x [0] : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %1 = par.add %s, %0 : tensor<4x4xf32>
    par.store %1 to @sum : tensor<4x4xf32>
    par.store %0 to @b : tensor<4x4xf32>
  }
}
