// Elementwise ops on constants, by hand.
// RUN: par-opt %s --par-interpret -o /dev/null | FileCheck %s
par.step @e() -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi1>,
    tensor<3xi1>, tensor<3xf64>, tensor<3xi64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xi8>, tensor<3xi1>,
    tensor<3xf64>)
    attributes {outputs = ["a_negate", "b_abs", "c_sign", "d_floor", "e_divide", "f_remainder", "g_less", "h_not", "i_select",
                           "j_convert", "k_gelu", "l_tanh_gelu", "m_gelu_grad", "n_wrap", "o_finite", "p_power"]} {
  %x = par.constant dense<[-1.5, 0.0, 2.0]> : tensor<3xf64>
  %y = par.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf64>
  %i = par.constant dense<[-7, 7, 9]> : tensor<3xi64>
  %j = par.constant dense<[2, 2, 4]> : tensor<3xi64>
  // CHECK: "a_negate" tensor<3xf64> 1.5 -0 -2
  %a = par.negate %x : tensor<3xf64>
  // CHECK: "b_abs" tensor<3xf64> 1.5 0 2
  %b = par.abs %x : tensor<3xf64>
  // CHECK: "c_sign" tensor<3xf64> -1 0 1
  %c = par.sign %x : tensor<3xf64>
  // CHECK: "d_floor" tensor<3xf64> -2 0 2
  %d = par.floor %x : tensor<3xf64>
  // CHECK: "e_divide" tensor<3xi64> -3 3 2
  %e = par.divide %i, %j : tensor<3xi64>
  // CHECK: "f_remainder" tensor<3xi64> -1 1 1
  %f = par.remainder %i, %j : tensor<3xi64>
  // CHECK: "g_less" tensor<3xi1> 1 1 1
  %g = par.compare lt %x, %y : tensor<3xf64>
  // CHECK: "h_not" tensor<3xi1> 0 0 0
  %h = par.not %g : tensor<3xi1>
  // CHECK: "i_select" tensor<3xf64> 1 2 3
  %s = par.select %h, %x, %y : tensor<3xi1>, tensor<3xf64>
  // CHECK: "j_convert" tensor<3xi64> -1 0 2
  %k = par.convert %x : tensor<3xf64> to tensor<3xi64>
  // x Phi(x): Phi(-1.5) = 0.0668072, Phi(2) = 0.97725.
  // CHECK: "k_gelu" tensor<3xf64> -0.100211 0 1.9545
  %l = par.gelu %x : tensor<3xf64>
  // CHECK: "l_tanh_gelu" tensor<3xf64> -0.100428 0 1.9546
  %m = par.gelu %x {tanh = true} : tensor<3xf64>
  // Phi(x) + x phi(x): 0.0668072 - 1.5 * 0.129518, 1/2, 0.97725 + 2 * 0.053991; times 1, 2, 3.
  // CHECK: "m_gelu_grad" tensor<3xf64> -0.127469 1 3.2557
  %n = par.gelu_grad %y, %x : tensor<3xf64>
  // CHECK: "n_wrap" tensor<3xi8> 44 -56 -100
  %big = par.constant dense<[100, 100, 78]> : tensor<3xi8>
  %more = par.constant dense<[3, 2, 2]> : tensor<3xi8>
  %o = par.multiply %big, %more : tensor<3xi8>
  // CHECK: "o_finite" tensor<3xi1> 0 0 1
  %z = par.divide %y, %c : tensor<3xf64>
  %w = par.sqrt %x : tensor<3xf64>
  %v = par.multiply %z, %w : tensor<3xf64>
  %p = par.is_finite %v : tensor<3xf64>
  // CHECK: "p_power" tensor<3xf64> 1 4 27
  %q = par.power %y, %y : tensor<3xf64>
  par.return %a, %b, %c, %d, %e, %f, %g, %h, %s, %k, %l, %m, %n, %o, %p, %q
      : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi1>, tensor<3xi1>,
        tensor<3xf64>, tensor<3xi64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xi8>, tensor<3xi1>, tensor<3xf64>
}
