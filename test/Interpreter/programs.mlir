// Two roles of two ranks and two microbatches: feeding, slots, rendezvous, sums in buffers, a reduction over the world,
// state written back. Rows of x lie over "dp"; stage 0 doubles them, stage 1 adds them up.
// RUN: par-opt %s --par-interpret -o /dev/null | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=cse' -o /dev/null

// x = [[1, 2], [3, 4]]: microbatch 0 gives rank 0 the 1 and rank 1 the 2.
// CHECK: train output "norm" tensor<f32> 2
// CHECK: train output "sent" tensor<2x1xf32> {{[-0-9]}}
// CHECK: train variable "w" tensor<2xf32> 12 16
par.stage @s0 <"dp"=2> ranks [0, 1]
par.stage @s1 <"dp"=2> ranks [2, 3]
par.variable @x frozen : tensor<2x2xf32> value dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
par.variable @w parameter : tensor<2xf32> value dense<[4.0, 4.0]> : tensor<2xf32>
par.kernel @double(%a: tensor<1xf32>) -> tensor<1xf32> attributes {implementation = "generated"} {
  %0 = par.add %a, %a : tensor<1xf32>
  par.return %0 : tensor<1xf32>
}
par.program @p0 on @s0 ranks [0, 1] {
  par.buffer @x state of "x" : tensor<2x1xf32> as !par.dist<tensor<2x2xf32>, @s0, [{}, {"dp"}]>
  par.buffer @row temp by microbatch depth 2 : tensor<1xf32>
  par.buffer @in input of "in" sliced by microbatch depth 2 : tensor<1xf32> as !par.dist<tensor<1xf32>, @s0, [{}]>
  par.block @first {
    %x = par.load @x : tensor<2x1xf32>
    %r = par.slice %x [0, 0] to [1, 1] by [1, 1] : tensor<2x1xf32> to tensor<1x1xf32>
    %v = par.reshape %r : tensor<1x1xf32> to tensor<1xf32>
    par.store %v to @row : tensor<1xf32>
  }
  par.block @second {
    %x = par.load @x : tensor<2x1xf32>
    %r = par.slice %x [1, 0] to [2, 1] by [1, 1] : tensor<2x1xf32> to tensor<1x1xf32>
    %v = par.reshape %r : tensor<1x1xf32> to tensor<1xf32>
    par.store %v to @row : tensor<1xf32>
  }
  par.block @send {
    %v = par.load @row : tensor<1xf32>
    %d = par.launch @double(%v) : (tensor<1xf32>) -> tensor<1xf32>
    par.send %d to [2, 3] tag 1 : tensor<1xf32>
    %i = par.load @in : tensor<1xf32>
    par.fetch %i as "sent" : tensor<1xf32>
  }
  par.block @norm {
    %one = par.constant dense<1.0> : tensor<f32>
    %n = par.world_all_reduce sum %one groups [array<i64: 0, 2>, array<i64: 1, 3>] tag 2 : (tensor<f32>) -> tensor<f32>
    par.fetch %n as "norm" : tensor<f32>
  }
  par.entry @train runs [@first, @send, @second, @send, @norm] microbatches [0, 0, 1, 1, 0]
}
par.program @p1 on @s1 ranks [2, 3] {
  par.buffer @w state of "w" : tensor<1xf32> as !par.dist<tensor<2xf32>, @s1, [{"dp"}]>
  par.buffer @sum temp : tensor<1xf32>
  par.block @recv.first {
    %v = par.recv from [0, 1] tag 1 : tensor<1xf32>
    par.store %v to @sum : tensor<1xf32>
  }
  par.block @recv {
    %v = par.recv from [0, 1] tag 1 : tensor<1xf32>
    %s = par.load @sum : tensor<1xf32>
    %t = par.add %s, %v : tensor<1xf32>
    par.store %t to @sum : tensor<1xf32>
  }
  par.block @update {
    %one = par.constant dense<1.0> : tensor<f32>
    %n = par.world_all_reduce sum %one groups [array<i64: 0, 2>, array<i64: 1, 3>] tag 2 : (tensor<f32>) -> tensor<f32>
    %s = par.load @sum : tensor<1xf32>
    %w = par.load @w : tensor<1xf32>
    %t = par.add %s, %w : tensor<1xf32>
    par.store %t to @w : tensor<1xf32>
  }
  par.entry @train runs [@recv.first, @recv, @update] microbatches [0, 1, 0]
}
