// Sorting, shifting, reversing, scattering and counting random numbers, by hand.
// RUN: par-opt %s --par-interpret -o /dev/null | FileCheck %s
par.step @e() -> (tensor<4xi64>, tensor<4xi64>, tensor<2x3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xi8>, tensor<3xi8>,
    tensor<2xi64>, tensor<4xf64>, tensor<2xf64>, tensor<2xi16>, tensor<2xf32>)
    attributes {outputs = ["a_rising", "b_falling", "c_reverse", "d_max", "e_product", "f_left", "g_right", "h_bits", "i_round",
                           "j_atan", "k_bits", "l_number"]} {
  %x = par.constant dense<[2.0, 1.0, 2.0, -3.0]> : tensor<4xf64>
  // CHECK: "a_rising" tensor<4xi64> 2 1 3 0
  %a = par.sorted_position %x dim 0 : tensor<4xf64> to tensor<4xi64>
  // Equal elements keep their order.
  // CHECK: "b_falling" tensor<4xi64> 0 2 1 3
  %b = par.sorted_position %x dim 0 {descending = true} : tensor<4xf64> to tensor<4xi64>
  %m = par.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf64>
  // CHECK: "c_reverse" tensor<2x3xf64> 3 2 1 6 5 4
  %c = par.reverse %m dims [1] : tensor<2x3xf64>
  %i = par.constant dense<[0, 2, 0, 2]> : tensor<4xi64>
  // CHECK: "d_max" tensor<3xf64> 2 -inf 1
  %d = par.scatter_reduce max %x, %i dim 0 size 3 : tensor<4xf64>, tensor<4xi64> to tensor<3xf64>
  // CHECK: "e_product" tensor<3xf64> 4 1 -3
  %e = par.scatter_reduce product %x, %i dim 0 size 3 : tensor<4xf64>, tensor<4xi64> to tensor<3xf64>
  %n = par.constant dense<[-1, 3, 5]> : tensor<3xi8>
  %by = par.constant dense<[1, 7, 8]> : tensor<3xi8>
  // CHECK: "f_left" tensor<3xi8> -2 -128 0
  %f = par.shift_left %n, %by : tensor<3xi8>
  // CHECK: "g_right" tensor<3xi8> 127 0 0
  %g = par.shift_right %n, %by : tensor<3xi8>
  // The known answer of Philox4x32-10 for key 0 and counter 0: words 6627e8d5 and e169c58d.
  // CHECK: "h_bits" tensor<2xi64> -2204013331526194987
  %zero = par.constant dense<0> : tensor<2xi64>
  %h = par.random_bits %zero, %zero : tensor<2xi64>
  %half = par.constant dense<[0.5, 1.5, -2.5, 2.6]> : tensor<4xf64>
  // CHECK: "i_round" tensor<4xf64> 0 2 -2 3
  %r = par.round %half : tensor<4xf64>
  %one = par.constant dense<[1.0, -1.0]> : tensor<2xf64>
  // CHECK: "j_atan" tensor<2xf64> 0.785398 -0.785398
  %t = par.atan %one : tensor<2xf64>
  // 1 is 0x3c00 in f16; 0xc0000000 is -2 in f32.
  // CHECK: "k_bits" tensor<2xi16> 15360 -17408
  %short = par.convert %one : tensor<2xf64> to tensor<2xf16>
  %k = par.bit_cast %short : tensor<2xf16> to tensor<2xi16>
  // CHECK: "l_number" tensor<2xf32> -2 0
  %word = par.constant dense<[-1073741824, 0]> : tensor<2xi32>
  %l = par.bit_cast %word : tensor<2xi32> to tensor<2xf32>
  par.return %a, %b, %c, %d, %e, %f, %g, %h, %r, %t, %k, %l : tensor<4xi64>, tensor<4xi64>, tensor<2x3xf64>, tensor<3xf64>,
      tensor<3xf64>, tensor<3xi8>, tensor<3xi8>, tensor<2xi64>, tensor<4xf64>, tensor<2xf64>, tensor<2xi16>, tensor<2xf32>
}
