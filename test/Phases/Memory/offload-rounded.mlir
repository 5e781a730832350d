// A parameter that leaves for host memory takes along the value that one block makes of it for others, rounded and
// gathered; each block that reads it copies it in. Small values stay, and so do values made of others too, and those of
// a parameter that stays.
// RUN: par-opt %s --par-assign-buffers --par-offload=parameters | FileCheck %s
// RUN: par-opt %s --par-assign-buffers --par-offload="parameters-of=w" | FileCheck %s --check-prefix=NAMES
// RUN: par-opt %s --par-assign-buffers --par-offload="states master-axes=dp" | FileCheck %s --check-prefix=STATES
// RUN: par-opt %s --par-assign-buffers --par-offload=parameters --par-pack-memory --par-verify-memory \
// RUN:   | FileCheck %s --check-prefix=PACKED

par.stage @s0 <"dp"=2> ranks [0, 1]
par.variable @w parameter : tensor<4096xf32> at [!par.dist<tensor<4096xf32>, @s0, [{"dp"}]>]
par.variable @u parameter : tensor<4096xf32> at [!par.dist<tensor<4096xf32>, @s0, [{"dp"}]>]
par.variable @s parameter : tensor<512xf32> at [!par.dist<tensor<512xf32>, @s0, [{}]>]
par.kernel @round(%x: tensor<2048xf32>) -> (tensor<2048xbf16>) attributes {implementation = "generated"} {
  %0 = par.convert %x : tensor<2048xf32> to tensor<2048xbf16>
  par.return %0 : tensor<2048xbf16>
}
par.kernel @few(%x: tensor<512xf32>) -> (tensor<512xbf16>) attributes {implementation = "generated"} {
  %0 = par.convert %x : tensor<512xf32> to tensor<512xbf16>
  par.return %0 : tensor<512xbf16>
}
par.kernel @add(%x: tensor<4096xbf16>, %w: tensor<4096xbf16>) -> (tensor<4096xbf16>)
    attributes {implementation = "generated"} {
  %0 = par.add %x, %w : tensor<4096xbf16>
  par.return %0 : tensor<4096xbf16>
}
// CHECK: par.program
// CHECK-DAG: par.buffer @w state of "w" : tensor<2048xf32> {host}
// CHECK-DAG: par.buffer @train.w temp : tensor<4096xbf16> {host}
// CHECK-DAG: par.buffer @train.w.dev temp : tensor<4096xbf16>{{$}}
// CHECK-DAG: par.buffer @train.u temp : tensor<4096xbf16> {host}
// CHECK-DAG: par.buffer @train.s temp : tensor<512xbf16>{{$}}
// CHECK-DAG: par.buffer @train.x temp : tensor<4096xbf16>{{$}}
// CHECK-DAG: par.buffer @eval.w temp : tensor<4096xbf16> {host}
// CHECK-DAG: par.buffer @before.t0 temp : tensor<2048xbf16>{{$}}
// NAMES-DAG: par.buffer @train.w temp : tensor<4096xbf16> {host}
// NAMES-DAG: par.buffer @u state of "u" : tensor<2048xf32>{{$}}
// NAMES-DAG: par.buffer @train.u temp : tensor<4096xbf16>{{$}}
// STATES-DAG: par.buffer @w state of "w" : tensor<2048xf32> {host}
// STATES-DAG: par.buffer @train.w temp : tensor<4096xbf16>{{$}}
// Entries take turns, so their values share bytes of the host's memory.
// PACKED-DAG: par.buffer @w state of "w" : tensor<2048xf32> at [0] {host}
// PACKED-DAG: par.buffer @u state of "u" : tensor<2048xf32> at [8192] {host}
// PACKED-DAG: par.buffer @train.w temp : tensor<4096xbf16> at [18432] {host}
// PACKED-DAG: par.buffer @train.u temp : tensor<4096xbf16> at [26624] {host}
// PACKED-DAG: par.buffer @eval.w temp : tensor<4096xbf16> at [18432] {host}
par.program @stage0 on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<2048xf32>
  par.buffer @u state of "u" : tensor<2048xf32>
  par.buffer @s state of "s" : tensor<512xf32>
  par.buffer @x input of "x" : tensor<4096xbf16>
  par.buffer @train.w temp : tensor<4096xbf16>
  par.buffer @train.u temp : tensor<4096xbf16>
  par.buffer @train.s temp : tensor<512xbf16>
  par.buffer @train.x temp : tensor<4096xbf16>
  par.buffer @eval.w temp : tensor<4096xbf16>

  // The gather writes a buffer of the device, which is copied out when it is done.
  // CHECK: par.block @before
  // CHECK: par.all_gather
  // CHECK-NEXT: par.store %{{.*}} to @train.w.dev
  // CHECK: %[[G:.*]] = par.done
  // CHECK-NEXT: par.store %[[G]] to @train.w.dev
  // CHECK: par.launch @add
  // CHECK-NEXT: %[[O:.*]] = par.load @train.w.dev
  // CHECK-NEXT: par.store %[[O]] to @train.w :
  par.block @before {
    %w = par.load @w : tensor<2048xf32>
    %r = par.launch @round(%w) : (tensor<2048xf32>) -> tensor<2048xbf16>
    %a = par.all_gather %r dims [0] over ["dp"] {queue = "all_gather"} : (tensor<2048xbf16>) -> tensor<4096xbf16>
    %g = par.done %a of %r : (tensor<4096xbf16>, tensor<2048xbf16>) -> tensor<4096xbf16>
    par.store %g to @train.w : tensor<4096xbf16>
    %u = par.load @u : tensor<2048xf32>
    %ru = par.launch @round(%u) : (tensor<2048xf32>) -> tensor<2048xbf16>
    %gu = par.all_gather %ru dims [0] over ["dp"] : (tensor<2048xbf16>) -> tensor<4096xbf16>
    par.store %gu to @train.u : tensor<4096xbf16>
    %s = par.load @s : tensor<512xf32>
    %rs = par.launch @few(%s) : (tensor<512xf32>) -> tensor<512xbf16>
    par.store %rs to @train.s : tensor<512xbf16>
    %x = par.load @x : tensor<4096xbf16>
    %m = par.launch @add(%x, %g) : (tensor<4096xbf16>, tensor<4096xbf16>) -> tensor<4096xbf16>
    par.store %m to @train.x : tensor<4096xbf16>
  }
  // CHECK: par.block @forward
  // CHECK: %[[I:.*]] = par.load @train.w :
  // CHECK-NEXT: par.store %[[I]] to @train.w.dev
  par.block @forward {
    %x = par.load @train.x : tensor<4096xbf16>
    %w = par.load @train.w : tensor<4096xbf16>
    %u = par.load @train.u : tensor<4096xbf16>
    %s = par.load @train.s : tensor<512xbf16>
    %a = par.launch @add(%x, %w) : (tensor<4096xbf16>, tensor<4096xbf16>) -> tensor<4096xbf16>
    %b = par.launch @add(%a, %u) : (tensor<4096xbf16>, tensor<4096xbf16>) -> tensor<4096xbf16>
    par.fetch %b as "b" : tensor<4096xbf16>
    par.fetch %s as "s" : tensor<512xbf16>
  }
  par.block @gather {
    %w = par.load @w : tensor<2048xf32>
    %r = par.launch @round(%w) : (tensor<2048xf32>) -> tensor<2048xbf16>
    %g = par.all_gather %r dims [0] over ["dp"] : (tensor<2048xbf16>) -> tensor<4096xbf16>
    par.store %g to @eval.w : tensor<4096xbf16>
  }
  par.block @look {
    %w = par.load @eval.w : tensor<4096xbf16>
    par.fetch %w as "w" : tensor<4096xbf16>
  }
  par.entry @train runs [@before, @forward] microbatches [0, 0]
  par.entry @eval runs [@gather, @look] microbatches [0, 0]
}
