// Parameters and residuals are in host memory, too, in a slot for each microbatch. A use that is far from the last one
// copies in again; names choose single variables.
// RUN: par-opt %s --par-offload="parameters saved far=1" | FileCheck %s
// RUN: par-opt %s --par-offload="parameters saved far=1" --par-pack-memory --par-verify-memory | FileCheck %s --check-prefix=PACKED
// RUN: par-opt %s --par-offload="parameters-of=u states-of=w" | FileCheck %s --check-prefix=NAMES

par.stage @s0 <> ranks [0]
par.variable @w parameter : tensor<2048xf32>
par.variable @m state of @w : tensor<2048xf32>
par.variable @u parameter : tensor<2048xf32>
par.variable @n state of @u : tensor<2048xf32>
par.kernel @twice(%x: tensor<2048xf32>, %w: tensor<2048xf32>) -> (tensor<2048xf32>) attributes {implementation = "generated"} {
  %0 = par.multiply %x, %w : tensor<2048xf32>
  par.return %0 : tensor<2048xf32>
}
// NAMES: par.buffer @w state of "w" : tensor<2048xf32>{{$}}
// NAMES: par.buffer @m state of "m" : tensor<2048xf32> {host}
// NAMES: par.buffer @u state of "u" : tensor<2048xf32> {host}
// NAMES: par.buffer @n state of "n" : tensor<2048xf32>{{$}}
// NAMES: par.buffer @kept temp by microbatch depth 2 : tensor<2048xf32> {saved}
par.program @stage0 on @s0 ranks [0] {
  // PACKED: par.buffer @w state of "w" : tensor<2048xf32> at [0] {host}
  // PACKED: par.buffer @kept temp by microbatch depth 2 : tensor<2048xf32> at [16384, 24576] {host, saved}
  par.buffer @w state of "w" : tensor<2048xf32>
  par.buffer @m state of "m" : tensor<2048xf32>
  par.buffer @u state of "u" : tensor<2048xf32>
  par.buffer @n state of "n" : tensor<2048xf32>
  par.buffer @x input of "x" sliced : tensor<2048xf32>
  // CHECK: par.buffer @kept temp by microbatch depth 2 : tensor<2048xf32> {host, saved}
  // CHECK: par.buffer @kept.dev temp : tensor<2048xf32>{{$}}
  par.buffer @kept temp by microbatch depth 2 : tensor<2048xf32> {saved}
  // CHECK: par.buffer @small temp : tensor<2xf32> {saved}
  par.buffer @small temp : tensor<2xf32> {saved}
  par.buffer @t temp : tensor<2048xf32>
  par.buffer @o temp : tensor<2048xf32>

  // A computed value is copied out; it is not copied in before.
  // CHECK: par.block @forward
  // CHECK-NEXT: par.load @x
  // CHECK-NEXT: %[[W:.*]] = par.load @w :
  // CHECK-NEXT: par.store %[[W]] to @w.dev
  // CHECK-NEXT: %[[WD:.*]] = par.load @w.dev
  // CHECK-NEXT: %[[K:.*]] = par.launch @twice(%{{.*}}, %[[WD]])
  // CHECK-NEXT: par.store %[[K]] to @kept.dev
  // CHECK-NEXT: %[[KD:.*]] = par.load @kept.dev
  // CHECK-NEXT: par.store %[[KD]] to @kept :
  // CHECK-NEXT: }
  par.block @forward {
    %x = par.load @x : tensor<2048xf32>
    %w = par.load @w : tensor<2048xf32>
    %k = par.launch @twice(%x, %w) : (tensor<2048xf32>, tensor<2048xf32>) -> tensor<2048xf32>
    par.store %k to @kept : tensor<2048xf32>
  }
  // @w is used, then not, then again: it comes twice, the second time beside the op before.
  // CHECK: par.block @backward
  // CHECK: to @kept.dev
  // CHECK: par.load @w :
  // CHECK: to @w.dev
  // CHECK: par.load @u :
  // CHECK: to @u.dev
  // CHECK: par.launch
  // CHECK: par.load @w :
  // CHECK: to @w.dev
  // CHECK: par.launch
  // CHECK: par.launch
  // CHECK: par.launch
  // CHECK-NOT: to @u :
  // CHECK-NOT: to @w :
  par.block @backward {
    %k = par.load @kept : tensor<2048xf32>
    %w = par.load @w : tensor<2048xf32>
    %u = par.load @u : tensor<2048xf32>
    %a = par.launch @twice(%k, %w) : (tensor<2048xf32>, tensor<2048xf32>) -> tensor<2048xf32>
    par.store %a to @t : tensor<2048xf32>
    %t = par.load @t : tensor<2048xf32>
    %b = par.launch @twice(%t, %u) : (tensor<2048xf32>, tensor<2048xf32>) -> tensor<2048xf32>
    par.store %b to @o : tensor<2048xf32>
    %o = par.load @o : tensor<2048xf32>
    %c = par.launch @twice(%o, %u) : (tensor<2048xf32>, tensor<2048xf32>) -> tensor<2048xf32>
    par.store %c to @t : tensor<2048xf32>
    %t2 = par.load @t : tensor<2048xf32>
    %d = par.launch @twice(%t2, %w) : (tensor<2048xf32>, tensor<2048xf32>) -> tensor<2048xf32>
    par.store %d to @o : tensor<2048xf32>
  }
  par.entry @train runs [@forward, @forward, @backward, @backward] microbatches [0, 1, 0, 1]
}
