par.stage @s0 <"dp"=2, "tp"=2> ranks [0,1,2,3]
par.stage @s1 <"dp"=2, "tp"=2> ranks [4,5,6,7]
par.variable @w1 parameter : tensor<4x8xf32> sharding <[{}, {"tp"}]>
par.variable @w2 parameter : tensor<8x2xf32> sharding <[{"tp"}, {}]>
par.variable @lr hyperparameter : tensor<f32>
par.variable @step counter : tensor<f32>
par.step @train(%x: tensor<16x4xf32>, %y: tensor<16xi64>) -> tensor<f32> attributes {inputs = ["x", "y"], outputs = ["loss"]} {
  %w1 = par.read @w1 : tensor<4x8xf32>
  %w2 = par.read @w2 : tensor<8x2xf32>
  %lr = par.read @lr : tensor<f32>
  %st = par.read @step : tensor<f32>
  %h = par.dot %x, %w1 contracting [1] x [0] {stage = 0 : i64} : (tensor<16x4xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
  %a = par.tanh %h {stage = 0 : i64} : tensor<16x8xf32>
  %z = par.dot %a, %w2 contracting [1] x [0] {stage = 1 : i64} : (tensor<16x8xf32>, tensor<8x2xf32>) -> tensor<16x2xf32>
  %t, %lse = par.cross_entropy %z, %y ignore -100 {stage = 1 : i64} : (tensor<16x2xf32>, tensor<16xi64>) -> (tensor<16xf32>, tensor<16xf32>)
  %s = par.reduce sum %t dims [0] {stage = 1 : i64} : tensor<16xf32> to tensor<f32>
  %m100 = par.constant dense<-100> : tensor<16xi64>
  %m = par.compare ne %y, %m100 : tensor<16xi64>
  %mf = par.convert %m : tensor<16xi1> to tensor<16xf32>
  %n = par.reduce sum %mf dims [0] : tensor<16xf32> to tensor<f32>
  %loss = par.divide %s, %n {stage = 1 : i64} : tensor<f32>
  %one = par.constant dense<1.0> : tensor<f32>
  %ct = par.cotangent %loss, %one {stage = 1 : i64} : tensor<f32>
  %cs = par.divide %ct, %n {stage = 1 : i64} : tensor<f32>
  %ctt = par.broadcast_in_dim %cs dims [] {stage = 1 : i64} : tensor<f32> to tensor<16xf32>
  %dz = par.cross_entropy_grad %ctt, %z, %y, %lse ignore -100 {stage = 1 : i64} : (tensor<16xf32>, tensor<16x2xf32>, tensor<16xi64>, tensor<16xf32>) -> tensor<16x2xf32>
  %dw2 = par.dot %a, %dz contracting [0] x [0] {stage = 1 : i64} : (tensor<16x8xf32>, tensor<16x2xf32>) -> tensor<8x2xf32>
  %da = par.dot %dz, %w2 contracting [1] x [1] {stage = 1 : i64} : (tensor<16x2xf32>, tensor<8x2xf32>) -> tensor<16x8xf32>
  %aa = par.multiply %a, %a {stage = 0 : i64} : tensor<16x8xf32>
  %o = par.constant dense<1.0> : tensor<16x8xf32>
  %oma = par.subtract %o, %aa {stage = 0 : i64} : tensor<16x8xf32>
  %dh = par.multiply %da, %oma {stage = 0 : i64} : tensor<16x8xf32>
  %dw1 = par.dot %x, %dh contracting [0] x [0] {stage = 0 : i64} : (tensor<16x4xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %g1 = par.gradient %dw1 of @w1 : tensor<4x8xf32>
  %g2 = par.gradient %dw2 of @w2 : tensor<8x2xf32>
  %q1 = par.multiply %g1, %g1 : tensor<4x8xf32>
  %q2 = par.multiply %g2, %g2 : tensor<8x2xf32>
  %n1 = par.reduce sum %q1 dims [0, 1] : tensor<4x8xf32> to tensor<f32>
  %n2 = par.reduce sum %q2 dims [0, 1] : tensor<8x2xf32> to tensor<f32>
  %t1, %t2 = par.stage_all_reduce sum %n1, %n2 : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %r1 = par.rsqrt %t1 : tensor<f32>
  %r2 = par.rsqrt %t2 : tensor<f32>
  %b1 = par.broadcast_in_dim %r1 dims [] : tensor<f32> to tensor<4x8xf32>
  %b2 = par.broadcast_in_dim %r2 dims [] : tensor<f32> to tensor<8x2xf32>
  %k1 = par.multiply %g1, %b1 : tensor<4x8xf32>
  %k2 = par.multiply %g2, %b2 : tensor<8x2xf32>
  %one2 = par.constant dense<1.0> : tensor<f32>
  %st1 = par.add %st, %one2 : tensor<f32>
  %lrs = par.multiply %lr, %st1 : tensor<f32>
  %u1 = par.sgd %w1, %k1, %lrs decay 0.0 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>
  %u2 = par.sgd %w2, %k2, %lrs decay 0.0 : tensor<8x2xf32>, tensor<8x2xf32>, tensor<f32>
  par.write %u1 to @w1 : tensor<4x8xf32>
  par.write %u2 to @w2 : tensor<8x2xf32>
  par.write %st1 to @step : tensor<f32>
  par.return %loss : tensor<f32>
}
