// Kernels of real models (OPT, ConvNeXt V2, Megatron-LM's GPT) that are compiled twice: ptxas (13.0) spills some values
// of the first form, and a kernel that spills is refused. Without ptxas spills are unknown.
// RUN: par-compile-kernels %s %t
// RUN: FileCheck %s < %t/kernels.txt

// CHECK: columns par_k{{[0-9a-f]+}}
// CHECK: channels par_k{{[0-9a-f]+}}
// CHECK: dropout par_k{{[0-9a-f]+}}
// CHECK: norms par_k{{[0-9a-f]+}}

// It spills only two values, for the sake of more blocks on a processor.
par.kernel @columns(%arg0: tensor<4x2048x4096xf32>, %arg1: tensor<4x2048x4096xf32>, %arg2: tensor<4x2048xf32>, %arg3: tensor<4x2048xf32>) -> tensor<4x4096xf32> attributes {implementation = "generated"} {
  %0 = par.broadcast_in_dim %arg2 dims [0, 1] : tensor<4x2048xf32> to tensor<4x2048x4096xf32>
  %1 = par.subtract %arg1, %0 : tensor<4x2048x4096xf32>
  %2 = par.broadcast_in_dim %arg3 dims [0, 1] : tensor<4x2048xf32> to tensor<4x2048x4096xf32>
  %3 = par.multiply %1, %2 : tensor<4x2048x4096xf32>
  %4 = par.multiply %arg0, %3 : tensor<4x2048x4096xf32>
  %5 = par.reduce  sum %4 dims [1] : tensor<4x2048x4096xf32> to tensor<4x4096xf32>
  par.return %5 : tensor<4x4096xf32>
}

// LLVM unrolls the sums of eight neighbours over their channels, side by side.
par.kernel @channels(%arg0: tensor<4x32x8x8xbf16>, %arg1: tensor<32xf32>, %arg2: tensor<4x32x8x8xbf16>, %arg3: tensor<32xf32>, %arg4: tensor<32xf32>) -> tensor<4x8x8x32xbf16> attributes {implementation = "generated"} {
  %0 = par.convert %arg0 : tensor<4x32x8x8xbf16> to tensor<4x32x8x8xf32>
  %1 = par.broadcast_in_dim %arg1 dims [1] : tensor<32xf32> to tensor<4x32x8x8xf32>
  %2 = par.convert %1 : tensor<4x32x8x8xf32> to tensor<4x32x8x8xbf16>
  %3 = par.convert %2 : tensor<4x32x8x8xbf16> to tensor<4x32x8x8xf32>
  %4 = par.add %0, %3 : tensor<4x32x8x8xf32>
  %5 = par.convert %4 : tensor<4x32x8x8xf32> to tensor<4x32x8x8xbf16>
  %6 = par.convert %5 : tensor<4x32x8x8xbf16> to tensor<4x32x8x8xf32>
  %7 = par.convert %arg2 : tensor<4x32x8x8xbf16> to tensor<4x32x8x8xf32>
  %8 = par.add %6, %7 : tensor<4x32x8x8xf32>
  %9 = par.convert %8 : tensor<4x32x8x8xf32> to tensor<4x32x8x8xbf16>
  %10 = par.transpose %9 [0, 2, 3, 1] : tensor<4x32x8x8xbf16> to tensor<4x8x8x32xbf16>
  %11 = par.convert %10 : tensor<4x8x8x32xbf16> to tensor<4x8x8x32xf32>
  %result, %mean, %rstd = par.layer_norm %11, %arg3, %arg4 epsilon 9.9999999747524271E-7 : (tensor<4x8x8x32xf32>, tensor<32xf32>, tensor<32xf32>) -> (tensor<4x8x8x32xf32>, tensor<4x8x8xf32>, tensor<4x8x8xf32>)
  %12 = par.convert %result : tensor<4x8x8x32xf32> to tensor<4x8x8x32xbf16>
  par.return %12 : tensor<4x8x8x32xbf16>
}

// A row with two tables, a bias and random numbers is too much to be held in registers.
par.kernel @dropout(%arg0: tensor<16x2048x4096xbf16>, %arg1: tensor<4096xf32>, %arg2: tensor<f32>, %arg3: tensor<16xi64>, %arg4: tensor<32768x4096xf32>, %arg5: tensor<4096xf32>, %arg6: tensor<4096xf32>) -> tensor<16x2048x4096xbf16> attributes {implementation = "generated"} {
  %0 = par.convert %arg0 : tensor<16x2048x4096xbf16> to tensor<16x2048x4096xf32>
  %1 = par.convert %arg1 : tensor<4096xf32> to tensor<4096xbf16>
  %2 = par.broadcast_in_dim %1 dims [2] : tensor<4096xbf16> to tensor<16x2048x4096xbf16>
  %3 = par.convert %2 : tensor<16x2048x4096xbf16> to tensor<16x2048x4096xf32>
  %4 = par.add %0, %3 : tensor<16x2048x4096xf32>
  %5 = par.convert %4 : tensor<16x2048x4096xf32> to tensor<16x2048x4096xbf16>
  %6 = par.convert %5 : tensor<16x2048x4096xbf16> to tensor<16x2048x4096xf32>
  %7 = par.constant dense<1.000000e+00> : tensor<f32>
  %8 = par.constant dense<0.000000e+00> : tensor<f32>
  %9 = par.compare  gt %8, %8 : tensor<f32>
  %10 = par.convert %9 : tensor<i1> to tensor<f32>
  %11 = par.constant dense<1.000000e-01> : tensor<f32>
  %12 = par.multiply %10, %11 : tensor<f32>
  %13 = par.subtract %7, %12 : tensor<f32>
  %14 = par.divide %7, %13 : tensor<f32>
  %15 = par.broadcast_in_dim %14 dims [] : tensor<f32> to tensor<16x2048x4096xf32>
  %16 = par.multiply %6, %15 : tensor<16x2048x4096xf32>
  %17 = par.convert %arg2 : tensor<f32> to tensor<i64>
  %18 = par.constant dense<40> : tensor<i64>
  %19 = par.shift_left %17, %18 : tensor<i64>
  %20 = par.convert %8 : tensor<f32> to tensor<i64>
  %21 = par.add %19, %20 : tensor<i64>
  %22 = par.constant dense<-1536579437777813388> : tensor<i64>
  %23 = par.xor %21, %22 : tensor<i64>
  %24 = par.broadcast_in_dim %23 dims [] : tensor<i64> to tensor<16x2048x4096xi64>
  %25 = par.iota dim 0 : tensor<4096xi64>
  %26 = par.constant dense<1> : tensor<4096xi64>
  %27 = par.multiply %25, %26 : tensor<4096xi64>
  %28 = par.broadcast_in_dim %27 dims [2] : tensor<4096xi64> to tensor<16x2048x4096xi64>
  %29 = par.constant dense<0> : tensor<16x2048x4096xi64>
  %30 = par.add %28, %29 : tensor<16x2048x4096xi64>
  %31 = par.iota dim 0 : tensor<2048xi64>
  %32 = par.constant dense<4096> : tensor<2048xi64>
  %33 = par.multiply %31, %32 : tensor<2048xi64>
  %34 = par.broadcast_in_dim %33 dims [1] : tensor<2048xi64> to tensor<16x2048x4096xi64>
  %35 = par.add %30, %34 : tensor<16x2048x4096xi64>
  %36 = par.broadcast_in_dim %arg3 dims [0] : tensor<16xi64> to tensor<16x2048x4096xi64>
  %37 = par.add %35, %36 : tensor<16x2048x4096xi64>
  %38 = par.random_bits %24, %37 : tensor<16x2048x4096xi64>
  %39 = par.constant dense<40> : tensor<16x2048x4096xi64>
  %40 = par.shift_right %38, %39 : tensor<16x2048x4096xi64>
  %41 = par.convert %40 : tensor<16x2048x4096xi64> to tensor<16x2048x4096xf32>
  %42 = par.constant dense<5.96046448E-8> : tensor<16x2048x4096xf32>
  %43 = par.multiply %41, %42 : tensor<16x2048x4096xf32>
  %44 = par.broadcast_in_dim %12 dims [] : tensor<f32> to tensor<16x2048x4096xf32>
  %45 = par.compare  ge %43, %44 : tensor<16x2048x4096xf32>
  %46 = par.constant dense<0.000000e+00> : tensor<16x2048x4096xf32>
  %47 = par.select %45, %16, %46 : tensor<16x2048x4096xi1>, tensor<16x2048x4096xf32>
  %48 = par.reshape %arg4 : tensor<32768x4096xf32> to tensor<16x2048x4096xf32>
  %49 = par.add %48, %47 : tensor<16x2048x4096xf32>
  %result, %mean, %rstd = par.layer_norm %49, %arg5, %arg6 epsilon 9.9999997473787516E-6
    : (tensor<16x2048x4096xf32>, tensor<4096xf32>, tensor<4096xf32>)
      -> (tensor<16x2048x4096xf32>, tensor<16x2048xf32>, tensor<16x2048xf32>)
  %50 = par.convert %result : tensor<16x2048x4096xf32> to tensor<16x2048x4096xbf16>
  par.return %50 : tensor<16x2048x4096xbf16>
}

// Norms of many gradients: LLVM would add up the parts of all sums where the sums are stored, and a thread would hold
// the parts of each until then.
par.kernel @norms(%arg0: tensor<171x2048xf32>, %arg1: tensor<171x2048xf32>, %arg2: tensor<171x2048xf32>, %arg3: tensor<171x2048xf32>, %arg4: tensor<171x2048xf32>, %arg5: tensor<171x2048xf32>, %arg6: tensor<171x2048xf32>, %arg7: tensor<171x2048xf32>, %arg8: tensor<171x2048xf32>, %arg9: tensor<171x2048xf32>, %arg10: tensor<171x2048xf32>, %arg11: tensor<171x2048xf32>, %arg12: tensor<171x2048xf32>) -> (tensor<171xf32>, tensor<171xf32>, tensor<171xf32>, tensor<171xf32>, tensor<171xf32>, tensor<171xf32>, tensor<171xf32>, tensor<171xf32>, tensor<171xf32>, tensor<171xf32>, tensor<171xf32>, tensor<171xf32>, tensor<171xf32>) attributes {implementation = "generated"} {
  %0 = par.multiply %arg0, %arg0 : tensor<171x2048xf32>
  %1 = par.reduce  sum %0 dims [1] : tensor<171x2048xf32> to tensor<171xf32>
  %2 = par.multiply %arg1, %arg1 : tensor<171x2048xf32>
  %3 = par.reduce  sum %2 dims [1] : tensor<171x2048xf32> to tensor<171xf32>
  %4 = par.multiply %arg2, %arg2 : tensor<171x2048xf32>
  %5 = par.reduce  sum %4 dims [1] : tensor<171x2048xf32> to tensor<171xf32>
  %6 = par.multiply %arg3, %arg3 : tensor<171x2048xf32>
  %7 = par.reduce  sum %6 dims [1] : tensor<171x2048xf32> to tensor<171xf32>
  %8 = par.multiply %arg4, %arg4 : tensor<171x2048xf32>
  %9 = par.reduce  sum %8 dims [1] : tensor<171x2048xf32> to tensor<171xf32>
  %10 = par.multiply %arg5, %arg5 : tensor<171x2048xf32>
  %11 = par.reduce  sum %10 dims [1] : tensor<171x2048xf32> to tensor<171xf32>
  %12 = par.multiply %arg6, %arg6 : tensor<171x2048xf32>
  %13 = par.reduce  sum %12 dims [1] : tensor<171x2048xf32> to tensor<171xf32>
  %14 = par.multiply %arg7, %arg7 : tensor<171x2048xf32>
  %15 = par.reduce  sum %14 dims [1] : tensor<171x2048xf32> to tensor<171xf32>
  %16 = par.multiply %arg8, %arg8 : tensor<171x2048xf32>
  %17 = par.reduce  sum %16 dims [1] : tensor<171x2048xf32> to tensor<171xf32>
  %18 = par.multiply %arg9, %arg9 : tensor<171x2048xf32>
  %19 = par.reduce  sum %18 dims [1] : tensor<171x2048xf32> to tensor<171xf32>
  %20 = par.multiply %arg10, %arg10 : tensor<171x2048xf32>
  %21 = par.reduce  sum %20 dims [1] : tensor<171x2048xf32> to tensor<171xf32>
  %22 = par.multiply %arg11, %arg11 : tensor<171x2048xf32>
  %23 = par.reduce  sum %22 dims [1] : tensor<171x2048xf32> to tensor<171xf32>
  %24 = par.multiply %arg12, %arg12 : tensor<171x2048xf32>
  %25 = par.reduce  sum %24 dims [1] : tensor<171x2048xf32> to tensor<171xf32>
  par.return %1, %3, %5, %7, %9, %11, %13, %15, %17, %19, %21, %23, %25
    : tensor<171xf32>, tensor<171xf32>, tensor<171xf32>, tensor<171xf32>, tensor<171xf32>, tensor<171xf32>,
      tensor<171xf32>, tensor<171xf32>, tensor<171xf32>, tensor<171xf32>, tensor<171xf32>, tensor<171xf32>,
      tensor<171xf32>
}
