// Microbatches of two replicas are added one after the other: each is exchanged, the parts are added to the sum so far,
// and the sum is gathered after the last one. Without replicas a value is stored before it is added.
// RUN: par-opt %s --split-input-file --par-order-microbatches=over=dp | FileCheck %s

par.stage @s0 <"dp"=2> ranks [0, 1]
par.program @p on @s0 ranks [0, 1] {
  par.buffer @x temp : tensor<3xf32>
  par.buffer @sum temp of "w" : tensor<3xf32>
  par.buffer @count temp : tensor<i64>
  // CHECK: par.buffer @sum.part temp of "w" : tensor<2xf32>
  // CHECK-LABEL: par.block @first
  // CHECK: %[[X:.*]] = par.exp
  // CHECK: %[[PAD:.*]] = par.pad %{{.*}} low [0] high [1]
  // CHECK: %[[ROWS:.*]] = par.reshape %[[PAD]]
  // CHECK: %[[PARTS:.*]] = par.all_to_all %[[ROWS]] split [0] concat [0] over ["dp"]
  // CHECK: %[[A:.*]] = par.slice %[[PARTS]] [0, 0] to [1, 2]
  // CHECK: %[[B:.*]] = par.slice %[[PARTS]] [1, 0] to [2, 2]
  // CHECK: par.add
  // CHECK-NEXT: par.store %{{.*}} to @sum.part : tensor<2xf32>
  par.block @first {
    %0 = par.load @x : tensor<3xf32>
    %1 = par.exp %0 : tensor<3xf32>
    par.store %1 to @sum : tensor<3xf32>
  }
  // CHECK-LABEL: par.block @last
  // CHECK: %[[S:.*]] = par.load @sum.part : tensor<2xf32>
  // CHECK: %[[FIRST:.*]] = par.add %[[S]], %{{.*}}
  // CHECK: %[[SECOND:.*]] = par.add %[[FIRST]], %{{.*}}
  // CHECK: %[[ALL:.*]] = par.all_gather %[[SECOND]] dims [0] over ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
  // CHECK: par.slice %[[ALL]] [0] to [3]
  // CHECK: par.store %{{.*}} to @sum : tensor<3xf32>
  // CHECK-NOT: all_reduce
  par.block @last {
    %0 = par.load @x : tensor<3xf32>
    %1 = par.exp %0 : tensor<3xf32>
    %2 = par.load @sum : tensor<3xf32>
    %3 = par.add %2, %1 : tensor<3xf32>
    %4 = par.all_reduce sum %3 over ["dp"] : (tensor<3xf32>) -> tensor<3xf32>
    par.store %4 to @sum : tensor<3xf32>
  }
  par.entry @train runs [@first, @last] microbatches [0, 1]
}

// -----

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @x temp : tensor<3xf32>
  par.buffer @sum temp : tensor<3xf32>
  // CHECK: par.buffer @sum.leaf temp : tensor<3xf32>
  // CHECK-LABEL: par.block @more
  // CHECK: %[[X:.*]] = par.exp
  // CHECK-NEXT: par.store %[[X]] to @sum.leaf
  // CHECK-NEXT: %[[LEAF:.*]] = par.load @sum.leaf
  // CHECK-NEXT: %[[S:.*]] = par.load @sum :
  // CHECK-NEXT: %[[T:.*]] = par.add %[[S]], %[[LEAF]]
  // CHECK-NEXT: par.store %[[T]] to @sum
  par.block @more {
    %0 = par.load @x : tensor<3xf32>
    %1 = par.exp %0 : tensor<3xf32>
    %2 = par.load @sum : tensor<3xf32>
    %3 = par.add %2, %1 : tensor<3xf32>
    par.store %3 to @sum : tensor<3xf32>
  }
  par.entry @train runs [@more] microbatches [0]
}

// -----

// Parts of a sum over another axis are added, and then summed over it.
par.stage @s0 <"tp"=2> ranks [0, 1]
par.program @p on @s0 ranks [0, 1] {
  par.buffer @x temp : tensor<3xf32>
  par.buffer @sum temp : tensor<3xf32>
  // CHECK-LABEL: par.block @last
  // CHECK: par.store %{{.*}} to @sum.leaf
  // CHECK: %[[T:.*]] = par.add
  // CHECK-NEXT: %[[WHOLE:.*]] = par.all_reduce sum %[[T]] over ["tp"]
  // CHECK-NEXT: par.store %[[WHOLE]] to @sum
  par.block @last {
    %0 = par.load @x : tensor<3xf32>
    %1 = par.exp %0 : tensor<3xf32>
    %2 = par.load @sum : tensor<3xf32>
    %3 = par.add %2, %1 : tensor<3xf32>
    %4 = par.all_reduce sum %3 over ["tp"] : (tensor<3xf32>) -> tensor<3xf32>
    par.store %4 to @sum : tensor<3xf32>
  }
  par.entry @train runs [@last] microbatches [0]
}
