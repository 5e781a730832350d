// Layout ops, reductions, indexing, norms, the loss and optimizers on constants, by hand.
// RUN: par-opt %s --par-interpret -o /dev/null | FileCheck %s

// CHECK: move output "broadcast" tensor<2x3xf32> 1 2 3 1 2 3
// CHECK: move output "concat" tensor<4xf32> 3 1 2 3
// CHECK: move output "iota" tensor<2x3xi64> 0 0 0 1 1 1
// CHECK: move output "pad" tensor<5xf32> 9 1 2 3 9
// CHECK: move output "slice" tensor<2xf32> 1 3
// CHECK: move output "transpose" tensor<3x2xf32> 1 1 2 2 3 3
// CHECK: move output "update" tensor<3xf32> 1 7 8
par.step @move() -> (tensor<2x3xf32>, tensor<4xf32>, tensor<2x3xi64>, tensor<5xf32>, tensor<2xf32>, tensor<3x2xf32>, tensor<3xf32>)
    attributes {outputs = ["broadcast", "concat", "iota", "pad", "slice", "transpose", "update"]} {
  %x = par.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %b = par.broadcast_in_dim %x dims [1] : tensor<3xf32> to tensor<2x3xf32>
  %one = par.constant dense<1> : tensor<i64>
  %two = par.constant dense<2> : tensor<i64>
  %last = par.dynamic_slice %x at %two dim 0 size 1 : tensor<3xf32>, tensor<i64> to tensor<1xf32>
  %c = par.concat %last, %x dim 0 : (tensor<1xf32>, tensor<3xf32>) -> tensor<4xf32>
  %i = par.iota dim 0 : tensor<2x3xi64>
  %p = par.pad %x low [1] high [1] value 9.0 : f32 : tensor<3xf32> to tensor<5xf32>
  %s = par.slice %x [0] to [3] by [2] : tensor<3xf32> to tensor<2xf32>
  %t = par.transpose %b [1, 0] : tensor<2x3xf32> to tensor<3x2xf32>
  %new = par.constant dense<[7.0, 8.0]> : tensor<2xf32>
  %u = par.update_slice %x, %new at %one dim 0 : tensor<3xf32>, tensor<2xf32>, tensor<i64>
  par.return %b, %c, %i, %p, %s, %t, %u
      : tensor<2x3xf32>, tensor<4xf32>, tensor<2x3xi64>, tensor<5xf32>, tensor<2xf32>, tensor<3x2xf32>, tensor<3xf32>
}

// CHECK: reduce output "argmax" tensor<2xi64> 1 0
// CHECK: reduce output "batched" tensor<2x1x1xf32> 13 25
// CHECK: reduce output "below" tensor<2x2xf32> 0 2 0 4
// CHECK: reduce output "max" tensor<2xf32> 3 4
// CHECK: reduce output "product" tensor<f32> 36
// CHECK: reduce output "put" tensor<2x3xf32> 0 2 3 4 3 0
// CHECK: reduce output "running" tensor<2x2xf32> 2 5 4 7
// CHECK: reduce output "take" tensor<2x1xf32> 3 4
par.step @reduce() -> (tensor<2xi64>, tensor<2x1x1xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<f32>, tensor<2x3xf32>,
    tensor<2x2xf32>, tensor<2x1xf32>)
    attributes {outputs = ["argmax", "batched", "below", "max", "product", "put", "running", "take"]} {
  %x = par.constant dense<[[2.0, 3.0], [4.0, 3.0]]> : tensor<2x2xf32>
  %a = par.arg_reduce max %x dim 1 : tensor<2x2xf32> to tensor<2xi64>
  %l = par.reshape %x : tensor<2x2xf32> to tensor<2x1x2xf32>
  %d = par.dot %l, %l contracting [2] x [2] batching [0] x [0] : (tensor<2x1x2xf32>, tensor<2x1x2xf32>) -> tensor<2x1x1xf32>
  %e = par.cumulative sum %x dim 1 {exclusive = true} : tensor<2x2xf32>
  %m = par.reduce max %x dims [1] : tensor<2x2xf32> to tensor<2xf32>
  %p = par.reduce product %x dims [0, 1] : tensor<2x2xf32> to tensor<f32>
  %half = par.constant dense<0.5> : tensor<f32>
  %h = par.multiply %p, %half : tensor<f32>
  %i = par.constant dense<[[1, 2], [0, 1]]> : tensor<2x2xi64>
  %q = par.scatter_add %x, %i dim 1 size 3 : tensor<2x2xf32>, tensor<2x2xi64> to tensor<2x3xf32>
  %r = par.cumulative sum %x dim 1 : tensor<2x2xf32>
  %j = par.constant dense<[[1], [0]]> : tensor<2x1xi64>
  %t = par.take %x, %j dim 1 : tensor<2x2xf32>, tensor<2x1xi64> to tensor<2x1xf32>
  par.return %a, %d, %e, %m, %h, %q, %r, %t : tensor<2xi64>, tensor<2x1x1xf32>, tensor<2x2xf32>, tensor<2xf32>,
      tensor<f32>, tensor<2x3xf32>, tensor<2x2xf32>, tensor<2x1xf32>
}

// Logits 0, ln 3: e^z sums to 4; the second label is ignored. A row 1, 3 has mean 2 and variance 1.
// CHECK: norms output "grad" tensor<2x2xf32> -0.75 0.75 0 0
// CHECK: norms output "loss" tensor<2xf32> 1.38629 0
// CHECK: norms output "lse" tensor<2xf32> 1.38629 1.38629
// CHECK: norms output "mean" tensor<1xf32> 2
// CHECK: norms output "normed" tensor<1x2xf32> -9.9995 20.999
// CHECK: norms output "normgrad" tensor<1x2xf32> 0.000499925 -0.000499925
// CHECK: norms output "softmax" tensor<2x2xf32> 0.25 0.75 0.25 0.75
// CHECK: norms output "softmaxgrad" tensor<2x2xf32> -0.1875 0.1875 -0.1875 0.1875
par.step @norms() -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1xf32>, tensor<1x2xf32>, tensor<1x2xf32>,
    tensor<2x2xf32>, tensor<2x2xf32>)
    attributes {outputs = ["grad", "loss", "lse", "mean", "normed", "normgrad", "softmax", "softmaxgrad"]} {
  %row = par.constant dense<[0.0, 3.0]> : tensor<2xf64>
  %three = par.constant dense<[1.0, 3.0]> : tensor<2xf64>
  %log = par.log %three : tensor<2xf64>
  %wide = par.broadcast_in_dim %log dims [1] : tensor<2xf64> to tensor<2x2xf64>
  %z = par.convert %wide : tensor<2x2xf64> to tensor<2x2xf32>
  %y = par.constant dense<[0, -100]> : tensor<2xi64>
  %t, %lse = par.cross_entropy %z, %y ignore -100 : (tensor<2x2xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>)
  %ct = par.constant dense<1.0> : tensor<2xf32>
  %g = par.cross_entropy_grad %ct, %z, %y, %lse ignore -100
      : (tensor<2xf32>, tensor<2x2xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<2x2xf32>
  %x = par.constant dense<[[1.0, 3.0]]> : tensor<1x2xf32>
  %scale = par.constant dense<[10.0, 20.0]> : tensor<2xf32>
  %bias = par.constant dense<[0.0, 1.0]> : tensor<2xf32>
  %n, %mean, %rstd = par.layer_norm %x, %scale, %bias epsilon 1.0e-4
      : (tensor<1x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2xf32>, tensor<1xf32>, tensor<1xf32>)
  // g = (10, 0): g - mean(g) - n mean(g n) = (5, -5) - (-1, 1) rstd * -5 rstd: 5 (1 - rstd^2) rstd, 5e-4 times rstd^3.
  %one = par.constant dense<[[1.0, 0.0]]> : tensor<1x2xf32>
  %ng = par.layer_norm_grad %one, %x, %scale, %mean, %rstd
      : (tensor<1x2xf32>, tensor<1x2xf32>, tensor<2xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x2xf32>
  %s = par.softmax %z dim 1 : tensor<2x2xf32>
  // y (ct - sum(ct y)) with ct = (0, 1): 0.25 (0 - 0.75), 0.75 (1 - 0.75).
  %cts = par.constant dense<[[0.0, 1.0], [0.0, 1.0]]> : tensor<2x2xf32>
  %sg = par.softmax_grad %cts, %s dim 1 : tensor<2x2xf32>
  par.return %g, %t, %lse, %mean, %n, %ng, %s, %sg : tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1xf32>,
      tensor<1x2xf32>, tensor<1x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}

// w = 2, g = 3, lr = 0.1, decay 0.5. sgd: 2 - 0.1 (3 + 1) = 1.6. momentum, step 2, v = 1: v = 0.9 + 4 = 4.9, w = 1.51.
// adamw, step 1, no state: w (1 - 0.05) - 0.1 sign(g) = 1.8; m = 0.3, v = 0.009.
// CHECK: update output "adamw" tensor<1xf32> 1.8
// CHECK: update output "m" tensor<1xf32> 0.3
// CHECK: update output "momentum" tensor<1xf32> 1.51
// CHECK: update output "sgd" tensor<1xf32> 1.6
// CHECK: update output "v" tensor<1xf32> 0.009
// CHECK: update output "velocity" tensor<1xf32> 4.9
par.step @update() -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>)
    attributes {outputs = ["adamw", "m", "momentum", "sgd", "v", "velocity"]} {
  %w = par.constant dense<2.0> : tensor<1xf32>
  %g = par.constant dense<3.0> : tensor<1xf32>
  %one = par.constant dense<1.0> : tensor<1xf32>
  %zero = par.constant dense<0.0> : tensor<1xf32>
  %lr = par.constant dense<0.1> : tensor<f32>
  %first = par.constant dense<1.0> : tensor<f32>
  %second = par.constant dense<2.0> : tensor<f32>
  %s = par.sgd %w, %g, %lr decay 0.5 : tensor<1xf32>, tensor<1xf32>, tensor<f32>
  %n, %v = par.momentum %w, %g, %one, %second, %lr momentum 0.9 decay 0.5
      : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<f32>, tensor<f32>
  %a, %m2, %v2 = par.adamw %w, %g, %zero, %zero, %first, %lr betas 0.9, 0.999 epsilon 1.0e-8 decay 0.5
      : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<f32>, tensor<f32>
  par.return %a, %m2, %n, %s, %v2, %v : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>
}
