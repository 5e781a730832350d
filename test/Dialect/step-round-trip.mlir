// A step after Split and Propagate survives printing and parsing.
// RUN: par-opt %s | par-opt | FileCheck %s

// CHECK: par.stage @s0 <"dp"=2, "tp"=2> ranks [0, 1, 2, 3]
par.stage @s0 <"dp"=2, "tp"=2> ranks [0, 1, 2, 3]
par.stage @s1 <"dp"=2, "tp"=2> ranks [4, 5, 6, 7]
// CHECK: par.variable @w1 parameter : tensor<64x256xf32> sharding <[{}, {"tp"}]>
par.variable @w1 parameter : tensor<64x256xf32> sharding <[{}, {"tp"}]> at [!par.dist<tensor<64x256xf32>, @s0, [{}, {"tp"}]>]
// CHECK: par.variable @w1.m state of @w1
par.variable @w1.m state of @w1 : tensor<64x256xf32>
par.variable @wqkv parameter : tensor<64x3x64xf32> stored tensor<64x192xf32>

// CHECK: par.fragment @s0.forward(%{{.*}}: tensor<64x256xf32>, %{{.*}}: tensor<8x64xf32>) -> tensor<8x256xf32>
par.fragment @s0.forward(%w: tensor<64x256xf32>, %x: tensor<8x64xf32>) -> tensor<8x256xf32>
    attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  %0 = par.dot %x, %w contracting [1] x [0] : (tensor<8x64xf32>, tensor<64x256xf32>) -> tensor<8x256xf32>
  par.return %0 : tensor<8x256xf32>
}
par.fragment @s1.forward(%b: tensor<8x256xf32>) -> tensor<f32>
    attributes {stage = @s1, kind = #par.fragment_kind<forward>} {
  %0 = par.reduce sum %b dims [0, 1] : tensor<8x256xf32> to tensor<f32>
  par.return %0 : tensor<f32>
}

// CHECK: par.step @eval(
par.step @eval(%x: !par.dist<tensor<4x8x64xf32>, @s0, [{}, {"dp"}, {}]>) -> !par.dist<tensor<f32>, @s1, [], unreduced={"dp"}>
    attributes {inputs = ["x"], outputs = ["loss"]} {
  // CHECK: par.read @w1 : !par.dist<tensor<64x256xf32>, @s0, [{}, {"tp"}]>
  %w = par.read @w1 : !par.dist<tensor<64x256xf32>, @s0, [{}, {"tp"}]>
  // CHECK: par.loop 4(%{{.*}}) : (!par.dist<tensor<4x8x64xf32>, @s0, [{}, {"dp"}, {}]>)
  %l = par.loop 4 (%x) : (!par.dist<tensor<4x8x64xf32>, @s0, [{}, {"dp"}, {}]>)
      -> !par.dist<tensor<f32>, @s1, [], unreduced={"dp"}> {
  ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<8x64xf32>, @s0, [{"dp"}, {}]>):
    // CHECK: par.run @s0.forward(
    %a = par.run @s0.forward(%w, %xi) : (!par.dist<tensor<64x256xf32>, @s0, [{}, {"tp"}]>,
        !par.dist<tensor<8x64xf32>, @s0, [{"dp"}, {}]>) -> !par.dist<tensor<8x256xf32>, @s0, [{"dp"}, {"tp"}]>
    // CHECK: par.transfer
    %b = par.transfer %a : !par.dist<tensor<8x256xf32>, @s0, [{"dp"}, {"tp"}]> to !par.dist<tensor<8x256xf32>, @s1, [{"dp"}, {"tp"}]>
    %s = par.run @s1.forward(%b) : (!par.dist<tensor<8x256xf32>, @s1, [{"dp"}, {"tp"}]>) -> !par.dist<tensor<f32>, @s1, [], unreduced={"dp"}>
    // CHECK: par.yield [sum]
    par.yield [sum] %s : !par.dist<tensor<f32>, @s1, [], unreduced={"dp"}>
  }
  par.return %l : !par.dist<tensor<f32>, @s1, [], unreduced={"dp"}>
}

// CHECK: par.step @train(
par.step @train(%g: !par.dist<tensor<64x256xf32>, @s0, [{}, {"tp"}], unreduced={"dp"}>,
                %m: !par.dist<tensor<f32>, @s0, []>, %n: !par.dist<tensor<f32>, @s1, []>) {
  // CHECK: par.reshard %{{.*}} : <tensor<64x256xf32>, @s0, [{}, {"tp"}], unreduced={"dp"}> to <tensor<64x256xf32>, @s0, [{}, {"tp"}]>
  %0 = par.reshard %g : !par.dist<tensor<64x256xf32>, @s0, [{}, {"tp"}], unreduced={"dp"}> to !par.dist<tensor<64x256xf32>, @s0, [{}, {"tp"}]>
  // CHECK: par.stage_all_reduce{{ +}}sum %{{.*}}, %{{.*}} : (!par.dist<tensor<f32>, @s0, []>, !par.dist<tensor<f32>, @s1, []>)
  %1, %2 = par.stage_all_reduce sum %m, %n : (!par.dist<tensor<f32>, @s0, []>, !par.dist<tensor<f32>, @s1, []>)
      -> (!par.dist<tensor<f32>, @s0, []>, !par.dist<tensor<f32>, @s1, []>)
  // CHECK: par.write %{{.*}} to @w1 : !par.dist<tensor<64x256xf32>, @s0, [{}, {"tp"}]>
  par.write %0 to @w1 : !par.dist<tensor<64x256xf32>, @s0, [{}, {"tp"}]>
  // CHECK: par.return
  par.return
}
