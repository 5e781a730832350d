// Norms, softmax and gradients of biases load and store 16 bytes at once, and a row that a warp has needs no shared memory.
// RUN: rm -rf %t
// RUN: env PAR_PTXAS= par-compile-kernels %s %t
// RUN: FileCheck %s < %t/kernels.ptx
// RUN: FileCheck %s --check-prefix=TABLE < %t/kernels.txt
// RUN: not par-compile-kernels %t/none.mlir %t 2>&1 | FileCheck %s --check-prefix=NONE

// TABLE: layer_norm par_k{{[0-9a-f]+}} 2048 256 r:25165824 r:3072 r:3072 w:25165824 w:65536
// TABLE-NEXT: softmax par_k{{[0-9a-f]+}} {{[0-9]+}} {{[0-9]+}} rw:8388608
// TABLE-NEXT: bias par_k{{[0-9a-f]+}} {{[0-9]+}} {{[0-9]+}} r:8388608 w:4096
// NONE: error: {{.*}}none.mlir

// CHECK-LABEL: .entry par_k{{[0-9a-f]+}}(
// CHECK-NOT: .shared
// CHECK-NOT: ld.global{{.*}}.b16
// CHECK: ld.global.nc.v4.b32
// CHECK: shfl.sync.bfly.b32
// CHECK: st.global.v4.b32
// CHECK: st.global.b32
// CHECK-NOT: st.global{{.*}}.b16
par.kernel @layer_norm(%x: tensor<16384x768xbf16>, %w: tensor<768xf32>, %b: tensor<768xf32>)
    -> (tensor<16384x768xbf16>, tensor<16384xf32>) attributes {implementation = "generated"} {
  %0 = par.convert %x : tensor<16384x768xbf16> to tensor<16384x768xf32>
  %1, %mean, %rstd = par.layer_norm %0, %w, %b epsilon 1.0e-5 : (tensor<16384x768xf32>, tensor<768xf32>, tensor<768xf32>) -> (tensor<16384x768xf32>, tensor<16384xf32>, tensor<16384xf32>)
  %y = par.convert %1 : tensor<16384x768xf32> to tensor<16384x768xbf16>
  par.return %y, %rstd : tensor<16384x768xbf16>, tensor<16384xf32>
}

// In place: the row is read before it is written.
// CHECK-LABEL: .entry par_k{{[0-9a-f]+}}(
// CHECK-NOT: .shared
// CHECK-NOT: {{[ls][dt]}}.global{{.*}}.b16
// CHECK: ld.global.v4.b32
// CHECK: st.global.v4.b32
par.kernel @softmax(%x: tensor<4096x1024xbf16>) -> tensor<4096x1024xbf16>
    attributes {implementation = "generated", tied = array<i64: 0>} {
  %0 = par.convert %x : tensor<4096x1024xbf16> to tensor<4096x1024xf32>
  %1 = par.softmax %0 dim 1 : tensor<4096x1024xf32>
  %y = par.convert %1 : tensor<4096x1024xf32> to tensor<4096x1024xbf16>
  par.return %y : tensor<4096x1024xbf16>
}

// CHECK-LABEL: .entry par_k{{[0-9a-f]+}}(
// CHECK-NOT: {{[ls][dt]}}.global{{.*}}.b16
// CHECK: ld.global.nc.v4.b32
// CHECK: bar.sync
// CHECK: st.global.v4.b32
par.kernel @bias(%x: tensor<4096x1024xbf16>) -> tensor<1024xf32> attributes {implementation = "generated"} {
  %0 = par.convert %x : tensor<4096x1024xbf16> to tensor<4096x1024xf32>
  %1 = par.reduce sum %0 dims [0] : tensor<4096x1024xf32> to tensor<1024xf32>
  par.return %1 : tensor<1024xf32>
}
