// A program with buffers, blocks, communication and a kernel survives printing and parsing.
// RUN: par-opt %s | par-opt | FileCheck %s

par.stage @s0 <"dp"=2> ranks [0, 1]
par.fragment @f(%a: tensor<4xf32>) -> tensor<f32>
    attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.reduce sum %a dims [0] : tensor<4xf32> to tensor<f32>
  par.return %0 : tensor<f32>
}
// CHECK: par.kernel @k0(
par.kernel @k0(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32>
    attributes {implementation = "generated", tied = array<i64: 0>} {
  %0 = par.add %a, %b : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
// CHECK: par.program @stage0 on @s0 ranks [0, 1]
par.program @stage0 on @s0 ranks [0, 1] {
  // CHECK: par.buffer @act temp by microbatch depth 2 : tensor<4xf32> at [0, 256]
  par.buffer @act temp by microbatch depth 2 : tensor<4xf32> at [0, 256]
  par.buffer @w state of "w" : tensor<4xf32>
  // CHECK: par.block @forward
  par.block @forward {
    // CHECK: par.load @w : tensor<4xf32>
    %w = par.load @w : tensor<4xf32>
    %a = par.load @act : tensor<4xf32>
    // CHECK: par.launch @k0
    %c = par.launch @k0(%a, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // CHECK: par.all_reduce sum
    %d = par.all_reduce sum %c over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK: par.store %{{.*}} to @act : tensor<4xf32>
    par.store %d to @act : tensor<4xf32>
    // CHECK: par.send %{{.*}} to [2, 3] tag 7 : tensor<4xf32>
    par.send %d to [2, 3] tag 7 : tensor<4xf32>
    // CHECK: par.recv from [2, 3] tag 8 : tensor<4xf32>
    %e = par.recv from [2, 3] tag 8 : tensor<4xf32>
    // CHECK: par.exec @f(%{{.*}}) : (tensor<4xf32>) -> tensor<f32>
    %f = par.exec @f(%e) : (tensor<4xf32>) -> tensor<f32>
    // CHECK: par.world_all_reduce{{ +}}sum %{{.*}} groups [array<i64: 0, 2>, array<i64: 1, 3>] tag 9 : (tensor<f32>) -> tensor<f32>
    %g = par.world_all_reduce sum %f groups [array<i64: 0, 2>, array<i64: 1, 3>] tag 9 : (tensor<f32>) -> tensor<f32>
    // CHECK: par.fetch %{{.*}} as "loss" : tensor<4xf32>
    par.fetch %e as "loss" : tensor<4xf32>
    // CHECK: par.fetch %{{.*}} as "part" sliced : tensor<4xf32> of !par.dist<tensor<8xf32>, @s0, [{"dp"}]>
    par.fetch %e as "part" sliced : tensor<4xf32> of !par.dist<tensor<8xf32>, @s0, [{"dp"}]>
  }
  // CHECK: par.entry @train runs [@forward, @forward] microbatches [0, 1]
  par.entry @train runs [@forward, @forward] microbatches [0, 1]
}
