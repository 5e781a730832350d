// Kernels that Par generates for norms, softmax, rotary positions, dropout, the loss scale and gradients of biases, on
// sizes of GPT-2 124M (width 768) and of a Llama (4096) that a GPU's cache does not hold: what gpu-check measures beside a
// copy. Each is fused with its neighbours as par-compile does it.
module {
  par.kernel @layer_norm_of_a_sum(%a: tensor<65536x768xbf16>, %r: tensor<65536x768xbf16>, %w: tensor<768xf32>, %b: tensor<768xf32>)
      -> (tensor<65536x768xbf16>, tensor<65536x768xbf16>, tensor<65536xf32>, tensor<65536xf32>) attributes {implementation = "generated"} {
    %s = par.add %a, %r : tensor<65536x768xbf16>
    %x = par.convert %s : tensor<65536x768xbf16> to tensor<65536x768xf32>
    %n, %mean, %rstd = par.layer_norm %x, %w, %b epsilon 1.0e-5 : (tensor<65536x768xf32>, tensor<768xf32>, tensor<768xf32>) -> (tensor<65536x768xf32>, tensor<65536xf32>, tensor<65536xf32>)
    %y = par.convert %n : tensor<65536x768xf32> to tensor<65536x768xbf16>
    par.return %s, %y, %mean, %rstd : tensor<65536x768xbf16>, tensor<65536x768xbf16>, tensor<65536xf32>, tensor<65536xf32>
  }
  par.kernel @layer_norm_grad(%d: tensor<65536x768xbf16>, %s: tensor<65536x768xbf16>, %w: tensor<768xf32>, %mean: tensor<65536xf32>, %rstd: tensor<65536xf32>, %e: tensor<65536x768xbf16>)
      -> (tensor<65536x768xbf16>) attributes {implementation = "generated"} {
    %0 = par.convert %d : tensor<65536x768xbf16> to tensor<65536x768xf32>
    %1 = par.convert %s : tensor<65536x768xbf16> to tensor<65536x768xf32>
    %2 = par.layer_norm_grad %0, %1, %w, %mean, %rstd : (tensor<65536x768xf32>, tensor<65536x768xf32>, tensor<768xf32>, tensor<65536xf32>, tensor<65536xf32>) -> tensor<65536x768xf32>
    %3 = par.convert %2 : tensor<65536x768xf32> to tensor<65536x768xbf16>
    %g = par.add %e, %3 : tensor<65536x768xbf16>
    par.return %g : tensor<65536x768xbf16>
  }
  par.kernel @layer_norm_weight_grad(%d: tensor<64x1024x768xbf16>, %s: tensor<64x1024x768xbf16>, %mean: tensor<64x1024xf32>, %rstd: tensor<64x1024xf32>)
      -> (tensor<64x768xf32>) attributes {implementation = "generated"} {
    %0 = par.convert %d : tensor<64x1024x768xbf16> to tensor<64x1024x768xf32>
    %1 = par.convert %s : tensor<64x1024x768xbf16> to tensor<64x1024x768xf32>
    %2 = par.broadcast_in_dim %mean dims [0, 1] : tensor<64x1024xf32> to tensor<64x1024x768xf32>
    %3 = par.subtract %1, %2 : tensor<64x1024x768xf32>
    %4 = par.broadcast_in_dim %rstd dims [0, 1] : tensor<64x1024xf32> to tensor<64x1024x768xf32>
    %5 = par.multiply %3, %4 : tensor<64x1024x768xf32>
    %6 = par.multiply %0, %5 : tensor<64x1024x768xf32>
    %g = par.reduce sum %6 dims [1] : tensor<64x1024x768xf32> to tensor<64x768xf32>
    par.return %g : tensor<64x768xf32>
  }
  par.kernel @bias_grad(%d: tensor<64x1024x768xbf16>)
      -> (tensor<64x768xf32>) attributes {implementation = "generated"} {
    %0 = par.convert %d : tensor<64x1024x768xbf16> to tensor<64x1024x768xf32>
    %g = par.reduce sum %0 dims [1] : tensor<64x1024x768xf32> to tensor<64x768xf32>
    par.return %g : tensor<64x768xf32>
  }
  par.kernel @rms_norm_of_a_sum(%a: tensor<16384x4096xbf16>, %r: tensor<16384x4096xbf16>, %w: tensor<4096xf32>)
      -> (tensor<16384x4096xbf16>, tensor<16384x4096xbf16>, tensor<16384xf32>) attributes {implementation = "generated"} {
    %s = par.add %a, %r : tensor<16384x4096xbf16>
    %x = par.convert %s : tensor<16384x4096xbf16> to tensor<16384x4096xf32>
    %0 = par.multiply %x, %x : tensor<16384x4096xf32>
    %1 = par.reduce sum %0 dims [1] : tensor<16384x4096xf32> to tensor<16384xf32>
    %2 = par.constant dense<2.44140625e-4> : tensor<16384xf32>
    %3 = par.multiply %1, %2 : tensor<16384xf32>
    %4 = par.constant dense<1.0e-5> : tensor<16384xf32>
    %5 = par.add %3, %4 : tensor<16384xf32>
    %rstd = par.rsqrt %5 : tensor<16384xf32>
    %6 = par.broadcast_in_dim %rstd dims [0] : tensor<16384xf32> to tensor<16384x4096xf32>
    %7 = par.multiply %x, %6 : tensor<16384x4096xf32>
    %8 = par.broadcast_in_dim %w dims [1] : tensor<4096xf32> to tensor<16384x4096xf32>
    %9 = par.multiply %7, %8 : tensor<16384x4096xf32>
    %y = par.convert %9 : tensor<16384x4096xf32> to tensor<16384x4096xbf16>
    par.return %s, %y, %rstd : tensor<16384x4096xbf16>, tensor<16384x4096xbf16>, tensor<16384xf32>
  }
  par.kernel @rms_norm_grad(%d: tensor<16384x4096xbf16>, %s: tensor<16384x4096xbf16>, %w: tensor<4096xf32>, %rstd: tensor<16384xf32>, %e: tensor<16384x4096xbf16>)
      -> (tensor<16384x4096xbf16>) attributes {implementation = "generated"} {
    %0 = par.convert %d : tensor<16384x4096xbf16> to tensor<16384x4096xf32>
    %x = par.convert %s : tensor<16384x4096xbf16> to tensor<16384x4096xf32>
    %1 = par.broadcast_in_dim %w dims [1] : tensor<4096xf32> to tensor<16384x4096xf32>
    %2 = par.multiply %0, %1 : tensor<16384x4096xf32>
    %3 = par.multiply %2, %x : tensor<16384x4096xf32>
    %4 = par.reduce sum %3 dims [1] : tensor<16384x4096xf32> to tensor<16384xf32>
    %5 = par.multiply %rstd, %rstd : tensor<16384xf32>
    %6 = par.multiply %4, %5 : tensor<16384xf32>
    %7 = par.constant dense<2.44140625e-4> : tensor<16384xf32>
    %8 = par.multiply %6, %7 : tensor<16384xf32>
    %9 = par.broadcast_in_dim %8 dims [0] : tensor<16384xf32> to tensor<16384x4096xf32>
    %10 = par.multiply %x, %9 : tensor<16384x4096xf32>
    %11 = par.subtract %2, %10 : tensor<16384x4096xf32>
    %12 = par.broadcast_in_dim %rstd dims [0] : tensor<16384xf32> to tensor<16384x4096xf32>
    %13 = par.multiply %11, %12 : tensor<16384x4096xf32>
    %14 = par.convert %13 : tensor<16384x4096xf32> to tensor<16384x4096xbf16>
    %g = par.add %e, %14 : tensor<16384x4096xbf16>
    par.return %g : tensor<16384x4096xbf16>
  }
  par.kernel @softmax(%a: tensor<131072x1024xbf16>)
      -> (tensor<131072x1024xbf16>) attributes {implementation = "generated"} {
    %0 = par.convert %a : tensor<131072x1024xbf16> to tensor<131072x1024xf32>
    %1 = par.softmax %0 dim 1 : tensor<131072x1024xf32>
    %y = par.convert %1 : tensor<131072x1024xf32> to tensor<131072x1024xbf16>
    par.return %y : tensor<131072x1024xbf16>
  }
  par.kernel @softmax_grad(%d: tensor<131072x1024xbf16>, %y: tensor<131072x1024xbf16>)
      -> (tensor<131072x1024xbf16>) attributes {implementation = "generated"} {
    %0 = par.convert %d : tensor<131072x1024xbf16> to tensor<131072x1024xf32>
    %1 = par.convert %y : tensor<131072x1024xbf16> to tensor<131072x1024xf32>
    %2 = par.softmax_grad %0, %1 dim 1 : tensor<131072x1024xf32>
    %g = par.convert %2 : tensor<131072x1024xf32> to tensor<131072x1024xbf16>
    par.return %g : tensor<131072x1024xbf16>
  }
  par.kernel @rope(%x: tensor<4x4096x32x128xbf16>, %cos: tensor<4096x128xf32>, %sin: tensor<4096x128xf32>)
      -> (tensor<4x4096x32x128xbf16>) attributes {implementation = "generated"} {
    %0 = par.convert %x : tensor<4x4096x32x128xbf16> to tensor<4x4096x32x128xf32>
    %1 = par.slice %0 [0, 0, 0, 0] to [4, 4096, 32, 64] by [1, 1, 1, 1] : tensor<4x4096x32x128xf32> to tensor<4x4096x32x64xf32>
    %2 = par.slice %0 [0, 0, 0, 64] to [4, 4096, 32, 128] by [1, 1, 1, 1] : tensor<4x4096x32x128xf32> to tensor<4x4096x32x64xf32>
    %3 = par.negate %2 : tensor<4x4096x32x64xf32>
    %4 = par.concat %3, %1 dim 3 : (tensor<4x4096x32x64xf32>, tensor<4x4096x32x64xf32>) -> tensor<4x4096x32x128xf32>
    %5 = par.broadcast_in_dim %cos dims [1, 3] : tensor<4096x128xf32> to tensor<4x4096x32x128xf32>
    %6 = par.broadcast_in_dim %sin dims [1, 3] : tensor<4096x128xf32> to tensor<4x4096x32x128xf32>
    %7 = par.multiply %0, %5 : tensor<4x4096x32x128xf32>
    %8 = par.multiply %4, %6 : tensor<4x4096x32x128xf32>
    %9 = par.add %7, %8 : tensor<4x4096x32x128xf32>
    %y = par.convert %9 : tensor<4x4096x32x128xf32> to tensor<4x4096x32x128xbf16>
    par.return %y : tensor<4x4096x32x128xbf16>
  }
  par.kernel @dropout(%a: tensor<65536x768xbf16>, %seed: tensor<i64>)
      -> (tensor<65536x768xbf16>) attributes {implementation = "generated"} {
    %0 = par.iota dim 0 : tensor<65536x768xi64>
    %1 = par.iota dim 1 : tensor<65536x768xi64>
    %2 = par.constant dense<768> : tensor<65536x768xi64>
    %3 = par.multiply %0, %2 : tensor<65536x768xi64>
    %4 = par.add %3, %1 : tensor<65536x768xi64>
    %5 = par.broadcast_in_dim %seed dims [] : tensor<i64> to tensor<65536x768xi64>
    %6 = par.random_bits %5, %4 : tensor<65536x768xi64>
    %7 = par.constant dense<40> : tensor<65536x768xi64>
    %8 = par.shift_right %6, %7 : tensor<65536x768xi64>
    %9 = par.convert %8 : tensor<65536x768xi64> to tensor<65536x768xf32>
    %10 = par.constant dense<1677721.5> : tensor<65536x768xf32>
    %11 = par.compare ge %9, %10 : tensor<65536x768xf32>
    %12 = par.convert %a : tensor<65536x768xbf16> to tensor<65536x768xf32>
    %13 = par.constant dense<1.111111> : tensor<65536x768xf32>
    %14 = par.multiply %12, %13 : tensor<65536x768xf32>
    %15 = par.constant dense<0.0> : tensor<65536x768xf32>
    %16 = par.select %11, %14, %15 : tensor<65536x768xi1>, tensor<65536x768xf32>
    %y = par.convert %16 : tensor<65536x768xf32> to tensor<65536x768xbf16>
    par.return %y : tensor<65536x768xbf16>
  }
  par.kernel @loss_scale(%g: tensor<67108864xf32>, %scale: tensor<f32>)
      -> (tensor<67108864xf32>) attributes {implementation = "generated"} {
    %0 = par.reciprocal %scale : tensor<f32>
    %1 = par.broadcast_in_dim %0 dims [] : tensor<f32> to tensor<67108864xf32>
    %y = par.multiply %g, %1 : tensor<67108864xf32>
    par.return %y : tensor<67108864xf32>
  }
}
