// A result's transpose that would split a matmul into many of two columns is a kernel of its own if the sums are long;
// if they are short, the call writes the transposed result.
// RUN: par-opt %s --par-form-kernels --par-verify-kernels | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-form-kernels'
// CHECK-DAG: par.kernel @[[LONG:dot.*]]({{.*}}) -> tensor<2x32x24x2xf32> attributes {implementation = "library:matmul"}
// CHECK-DAG: par.kernel @[[MOVE:transpose.*]](%{{.*}}: tensor<2x32x24x2xf32>) -> tensor<2x24x32x2xf32> attributes {implementation = "generated"}
// CHECK-DAG: par.kernel @[[SHORT:dot.*]]({{.*}}tensor<2x8x32xf32>{{.*}}) -> tensor<2x24x32x2xf32> attributes {implementation = "library:matmul"}
// CHECK: %[[PLAIN:.*]] = par.launch @[[LONG]](
// CHECK: par.launch @[[SHORT]](
par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @a input of "a" : tensor<2x128x32xf32> as !par.dist<tensor<2x128x32xf32>, @s0, [{}, {}, {}]>
  par.buffer @b input of "b" : tensor<2x8x32xf32> as !par.dist<tensor<2x8x32xf32>, @s0, [{}, {}, {}]>
  par.buffer @v input of "v" : tensor<128x24x2xf32> as !par.dist<tensor<128x24x2xf32>, @s0, [{}, {}, {}]>
  par.buffer @w input of "w" : tensor<8x24x2xf32> as !par.dist<tensor<8x24x2xf32>, @s0, [{}, {}, {}]>
  par.block @spectra {
    %a = par.load @a : tensor<2x128x32xf32>
    %b = par.load @b : tensor<2x8x32xf32>
    %v = par.load @v : tensor<128x24x2xf32>
    %w = par.load @w : tensor<8x24x2xf32>
    %x = par.dot %a, %v contracting [1] x [0] : (tensor<2x128x32xf32>, tensor<128x24x2xf32>) -> tensor<2x32x24x2xf32>
    %xt = par.transpose %x [0, 2, 1, 3] : tensor<2x32x24x2xf32> to tensor<2x24x32x2xf32>
    %y = par.dot %b, %w contracting [1] x [0] : (tensor<2x8x32xf32>, tensor<8x24x2xf32>) -> tensor<2x32x24x2xf32>
    %yt = par.transpose %y [0, 2, 1, 3] : tensor<2x32x24x2xf32> to tensor<2x24x32x2xf32>
    par.fetch %xt as "x" : tensor<2x24x32x2xf32>
    par.fetch %yt as "y" : tensor<2x24x32x2xf32>
  }
  par.entry @eval runs [@spectra] microbatches [0]
}
