par.step @eval(%x: tensor<4xf32>) -> tensor<4xf32> attributes {inputs = ["x"]} {
  %0 = par.negate %x : tensor<4xf32>
  %1 = par.negate %0 : tensor<4xf32>
  par.return %1 : tensor<4xf32>
}
