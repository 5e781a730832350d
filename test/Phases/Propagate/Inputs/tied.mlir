// A table that is looked up and multiplied: its gradient has two parts. The values between are sharded over tp along
// the sequence, the looked-up ones are not.
par.stage @s0 <"dp"=2, "tp"=2> ranks [0,1,2,3]
par.variable @table parameter : tensor<10x6xf32>
par.step @eval(%ids: tensor<8x4xi64>, %labels: tensor<8x4xi64>) -> tensor<f32> attributes {inputs = ["ids", "labels"], outputs = ["loss"]} {
  %w = par.read @table : tensor<10x6xf32>
  %x = par.gather %w, %ids dim 0 {stage = 0 : i64} : tensor<10x6xf32>, tensor<8x4xi64> to tensor<8x4x6xf32>
  %x0 = par.constrain %x <[{"dp"}, {}, {}]> {stage = 0 : i64} : tensor<8x4x6xf32>
  %y = par.tanh %x0 {stage = 0 : i64} : tensor<8x4x6xf32>
  %y0 = par.constrain %y <[{"dp"}, {"tp"}, {}]> {stage = 0 : i64} : tensor<8x4x6xf32>
  %z = par.dot %y0, %w contracting [2] x [1] {stage = 0 : i64} : (tensor<8x4x6xf32>, tensor<10x6xf32>) -> tensor<8x4x10xf32>
  %t, %lse = par.cross_entropy %z, %labels ignore -100 {stage = 0 : i64} : (tensor<8x4x10xf32>, tensor<8x4xi64>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %l = par.reduce sum %t dims [0, 1] {stage = 0 : i64} : tensor<8x4xf32> to tensor<f32>
  par.return %l : tensor<f32>
}
