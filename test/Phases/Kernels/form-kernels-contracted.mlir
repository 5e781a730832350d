// A matmul that contracts two dims which are not adjacent in an operand is one call after a transpose of that operand.
// If each element has few multiplications, the matmul is generated instead.
// RUN: par-opt %s --par-form-kernels --par-verify-kernels | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-form-kernels'
// CHECK: par.kernel @[[MOVE:transpose.*]](%{{.*}}: tensor<4x16x8xf32>) -> tensor<4x8x16xf32> attributes {implementation = "generated"}
// CHECK: par.kernel @[[CALL:dot.*]]({{.*}}) -> tensor<64x16xf32> attributes {implementation = "library:matmul"}
// CHECK: par.kernel @[[FEW:dot.*]]({{.*}}) -> tensor<2x16xf32> attributes {implementation = "generated"}
// CHECK: %[[MOVED:.*]] = par.launch @[[MOVE]](
// CHECK: par.launch @[[CALL]]({{.*}}%[[MOVED]]
// CHECK: par.launch @[[FEW]](
par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @a input of "a" : tensor<64x4x8xf32> as !par.dist<tensor<64x4x8xf32>, @s0, [{}, {}, {}]>
  par.buffer @b input of "b" : tensor<2x4x8xf32> as !par.dist<tensor<2x4x8xf32>, @s0, [{}, {}, {}]>
  par.buffer @w input of "w" : tensor<4x16x8xf32> as !par.dist<tensor<4x16x8xf32>, @s0, [{}, {}, {}]>
  par.block @experts {
    %a = par.load @a : tensor<64x4x8xf32>
    %b = par.load @b : tensor<2x4x8xf32>
    %w = par.load @w : tensor<4x16x8xf32>
    %y = par.dot %a, %w contracting [1, 2] x [0, 2] : (tensor<64x4x8xf32>, tensor<4x16x8xf32>) -> tensor<64x16xf32>
    %z = par.dot %b, %w contracting [1, 2] x [0, 2] : (tensor<2x4x8xf32>, tensor<4x16x8xf32>) -> tensor<2x16xf32>
    par.fetch %y as "y" : tensor<64x16xf32>
    par.fetch %z as "z" : tensor<2x16xf32>
  }
  par.entry @eval runs [@experts] microbatches [0]
}
