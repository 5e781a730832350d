// Every unary and binary op survives printing and parsing.
// RUN: par-opt %s | par-opt | FileCheck %s

// CHECK-LABEL: par.step @unary
par.step @unary(%x: tensor<4xf32>) {
  // CHECK: par.abs %arg0 : tensor<4xf32>
  %0 = par.abs %x : tensor<4xf32>
  // CHECK: par.sign %arg0 : tensor<4xf32>
  %1 = par.sign %x : tensor<4xf32>
  // CHECK: par.exp %arg0 : tensor<4xf32>
  %2 = par.exp %x : tensor<4xf32>
  // CHECK: par.log %arg0 : tensor<4xf32>
  %3 = par.log %x : tensor<4xf32>
  // CHECK: par.sqrt %arg0 : tensor<4xf32>
  %4 = par.sqrt %x : tensor<4xf32>
  // CHECK: par.rsqrt %arg0 : tensor<4xf32>
  %5 = par.rsqrt %x : tensor<4xf32>
  // CHECK: par.reciprocal %arg0 : tensor<4xf32>
  %6 = par.reciprocal %x : tensor<4xf32>
  // CHECK: par.tanh %arg0 : tensor<4xf32>
  %7 = par.tanh %x : tensor<4xf32>
  // CHECK: par.erf %arg0 : tensor<4xf32>
  %8 = par.erf %x : tensor<4xf32>
  // CHECK: par.sigmoid %arg0 : tensor<4xf32>
  %9 = par.sigmoid %x : tensor<4xf32>
  // CHECK: par.sin %arg0 : tensor<4xf32>
  %10 = par.sin %x : tensor<4xf32>
  // CHECK: par.cos %arg0 : tensor<4xf32>
  %11 = par.cos %x : tensor<4xf32>
  // CHECK: par.floor %arg0 : tensor<4xf32>
  %12 = par.floor %x : tensor<4xf32>
  // CHECK: par.atan %arg0 : tensor<4xf32>
  %21 = par.atan %x : tensor<4xf32>
  // CHECK: par.round %arg0 : tensor<4xf32>
  %22 = par.round %x : tensor<4xf32>
  // CHECK: par.ceil %arg0 : tensor<4xf32>
  %13 = par.ceil %x : tensor<4xf32>
  // CHECK: par.is_nan %arg0 : tensor<4xf32>
  %14 = par.is_nan %x : tensor<4xf32>
  par.return
}

// CHECK-LABEL: par.step @binary
par.step @binary(%x: tensor<4xf32>, %y: tensor<4xf32>, %i: tensor<4xi64>, %b: tensor<4xi1>) {
  // CHECK: par.subtract %arg0, %arg1 : tensor<4xf32>
  %0 = par.subtract %x, %y : tensor<4xf32>
  // CHECK: par.multiply %arg0, %arg1 : tensor<4xf32>
  %1 = par.multiply %x, %y : tensor<4xf32>
  // CHECK: par.divide %arg0, %arg1 : tensor<4xf32>
  %2 = par.divide %x, %y : tensor<4xf32>
  // CHECK: par.remainder %arg0, %arg1 : tensor<4xf32>
  %3 = par.remainder %x, %y : tensor<4xf32>
  // CHECK: par.maximum %arg0, %arg1 : tensor<4xf32>
  %4 = par.maximum %x, %y : tensor<4xf32>
  // CHECK: par.minimum %arg0, %arg1 : tensor<4xf32>
  %5 = par.minimum %x, %y : tensor<4xf32>
  // CHECK: par.power %arg0, %arg1 : tensor<4xf32>
  %6 = par.power %x, %y : tensor<4xf32>
  // CHECK: par.and %arg2, %arg2 : tensor<4xi64>
  %10 = par.and %i, %i : tensor<4xi64>
  // CHECK: par.or %arg2, %arg2 : tensor<4xi64>
  %11 = par.or %i, %i : tensor<4xi64>
  // CHECK: par.xor %arg2, %arg2 : tensor<4xi64>
  %12 = par.xor %i, %i : tensor<4xi64>
  // CHECK: par.shift_left %arg2, %arg2 : tensor<4xi64>
  %13 = par.shift_left %i, %i : tensor<4xi64>
  // CHECK: par.shift_right %arg2, %arg2 : tensor<4xi64>
  %14 = par.shift_right %i, %i : tensor<4xi64>
  // CHECK: par.not %arg3 : tensor<4xi1>
  %20 = par.not %b : tensor<4xi1>
  par.return
}
