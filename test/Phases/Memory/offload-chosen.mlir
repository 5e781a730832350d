// Residuals that Recompute has chosen have `host` before: they are copied out and in; others stay.
// RUN: par-opt %s --par-offload | FileCheck %s
par.stage @s0 <> ranks [0]
par.kernel @twice(%x: tensor<2048xf32>) -> (tensor<2048xf32>) attributes {implementation = "generated"} {
  %0 = par.add %x, %x : tensor<2048xf32>
  par.return %0 : tensor<2048xf32>
}
// CHECK: par.buffer @moved temp : tensor<2048xf32> {host, saved}
// CHECK: par.buffer @moved.dev temp : tensor<2048xf32>{{$}}
// CHECK: par.buffer @kept temp : tensor<2048xf32> {saved}
// CHECK: par.block @forward
// CHECK: par.store %{{.*}} to @moved.dev
// CHECK: par.store %{{.*}} to @moved :
// CHECK: par.store %{{.*}} to @kept :
par.program @stage0 on @s0 ranks [0] {
  par.buffer @x input of "x" : tensor<2048xf32>
  par.buffer @moved temp : tensor<2048xf32> {host, saved}
  par.buffer @kept temp : tensor<2048xf32> {saved}
  par.block @forward {
    %0 = par.load @x : tensor<2048xf32>
    %1 = par.launch @twice(%0) : (tensor<2048xf32>) -> tensor<2048xf32>
    par.store %1 to @moved : tensor<2048xf32>
    %2 = par.load @x : tensor<2048xf32>
    %3 = par.launch @twice(%2) : (tensor<2048xf32>) -> tensor<2048xf32>
    par.store %3 to @kept : tensor<2048xf32>
  }
  par.entry @train runs [@forward] microbatches [0]
}
