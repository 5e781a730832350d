// An empty value is a constant, and so is a value that depends only on such constants; no other op reads one.
// RUN: par-opt --par-fold-empty-values %s | FileCheck %s

par.variable @w parameter : tensor<0x8xf32>
// CHECK-LABEL: par.step @predict(
// CHECK-SAME: %[[x:.*]]: tensor<4x8xf32>, %{{.*}}: tensor<4x0xf32>, %[[i:.*]]: tensor<i64>)
par.step @predict(%x: tensor<4x8xf32>, %z: tensor<4x0xf32>, %i: tensor<i64>)
    -> (tensor<8x8xf32>, tensor<4x8xf32>, tensor<8xi32>, tensor<4x4xf32>, tensor<6xi1>, tensor<0x8xf32>, tensor<4x8xf32>)
    attributes {inputs = ["x", "z", "i"], outputs = ["two", "one", "least", "zeros", "all", "none", "updated"]} {
  %w = par.read @w : tensor<0x8xf32>
  %e = par.slice %x [0, 0] to [0, 8] by [1, 1] : tensor<4x8xf32> to tensor<0x8xf32>
  %t = par.tanh %e : tensor<0x8xf32>
  %sum = par.add %t, %w : tensor<0x8xf32>
  // CHECK-DAG: %[[two:.*]] = par.concat %[[x]], %[[x]] dim 0
  %two = par.concat %x, %t, %x dim 0 : (tensor<4x8xf32>, tensor<0x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %one = par.concat %z, %x dim 1 : (tensor<4x0xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK-DAG: %[[least:.*]] = par.constant dense<-2147483648> : tensor<8xi32>
  %c = par.convert %sum : tensor<0x8xf32> to tensor<0x8xi32>
  %least = par.reduce max %c dims [0] : tensor<0x8xi32> to tensor<8xi32>
  // CHECK-DAG: %[[zeros:.*]] = par.constant dense<0.000000e+00> : tensor<4x4xf32>
  %zeros = par.dot %z, %z contracting [1] x [1] : (tensor<4x0xf32>, tensor<4x0xf32>) -> tensor<4x4xf32>
  // CHECK-DAG: %[[all:.*]] = par.constant dense<true> : tensor<6xi1>
  %b = par.slice %x [0, 0] to [0, 6] by [1, 1] : tensor<4x8xf32> to tensor<0x6xf32>
  %equal = par.compare eq %b, %b : tensor<0x6xf32>
  %all = par.reduce and %equal dims [0] : tensor<0x6xi1> to tensor<6xi1>
  %updated = par.update_slice %x, %sum at %i dim 0 : tensor<4x8xf32>, tensor<0x8xf32>, tensor<i64>
  // CHECK-DAG: %[[none:.*]] = par.constant dense<> : tensor<0x8xf32>
  // CHECK-NOT: par.slice
  // CHECK: par.return %[[two]], %[[x]], %[[least]], %[[zeros]], %[[all]], %[[none]], %[[x]]
  par.return %two, %one, %least, %zeros, %all, %sum, %updated
      : tensor<8x8xf32>, tensor<4x8xf32>, tensor<8xi32>, tensor<4x4xf32>, tensor<6xi1>, tensor<0x8xf32>, tensor<4x8xf32>
}
