// States are in host memory. Each is copied in before the launch that uses the state before it, so the copy can run
// beside that launch, and copied back after its last use. Parameters and counters stay on the device.
// RUN: par-opt %s --par-offload=states | FileCheck %s
// RUN: par-opt %s --par-offload=states --par-pack-memory --par-verify-memory | FileCheck %s --check-prefix=PACKED

par.stage @s0 <> ranks [0]
par.variable @w parameter : tensor<100xf32>
par.variable @m state of @w : tensor<100xf32>
par.variable @v state of @w : tensor<100xf32>
par.variable @step counter : tensor<f32>
par.kernel @update(%w: tensor<100xf32>, %m: tensor<100xf32>) -> (tensor<100xf32>, tensor<100xf32>)
    attributes {implementation = "generated", tied = array<i64: 0, 1>} {
  %0 = par.add %w, %m : tensor<100xf32>
  %1 = par.multiply %w, %m : tensor<100xf32>
  par.return %0, %1 : tensor<100xf32>, tensor<100xf32>
}
// CHECK: par.program
par.program @stage0 on @s0 ranks [0] {
  // CHECK: par.buffer @w state of "w" : tensor<100xf32>{{$}}
  par.buffer @w state of "w" : tensor<100xf32>
  // CHECK: par.buffer @m state of "m" : tensor<100xf32> {host}
  // CHECK: par.buffer @m.dev temp : tensor<100xf32>{{$}}
  par.buffer @m state of "m" : tensor<100xf32>
  // CHECK: par.buffer @v state of "v" : tensor<100xf32> {host}
  par.buffer @v state of "v" : tensor<100xf32>
  // CHECK: par.buffer @step state of "step" : tensor<f32>{{$}}
  par.buffer @step state of "step" : tensor<f32>
  // PACKED-DAG: par.buffer @w state of "w" : tensor<100xf32> at [0]
  // PACKED-DAG: par.buffer @step state of "step" : tensor<f32> at [512]
  // PACKED-DAG: par.buffer @m state of "m" : tensor<100xf32> at [0] {host}
  // PACKED-DAG: par.buffer @v state of "v" : tensor<100xf32> at [512] {host}
  // PACKED-DAG: par.buffer @m.dev temp : tensor<100xf32> at [{{768|1280}}]
  // PACKED-DAG: par.buffer @v.dev temp : tensor<100xf32> at [{{768|1280}}]

  // CHECK: par.block @update
  // CHECK: %[[M:.*]] = par.load @m :
  // CHECK-NEXT: par.store %[[M]] to @m.dev
  // CHECK-NEXT: %[[MD:.*]] = par.load @m.dev
  // CHECK-NEXT: %[[V:.*]] = par.load @v :
  // CHECK-NEXT: par.store %[[V]] to @v.dev
  // CHECK-NEXT: %[[A:.*]]:2 = par.launch @update(%{{.*}}, %[[MD]])
  // CHECK: par.store %[[A]]#1 to @m.dev
  // CHECK-NEXT: %[[MO:.*]] = par.load @m.dev
  // CHECK-NEXT: par.store %[[MO]] to @m :
  // CHECK: par.launch @update(
  // CHECK: to @v.dev
  // CHECK: to @v :
  par.block @update {
    %w = par.load @w : tensor<100xf32>
    %m = par.load @m : tensor<100xf32>
    %v = par.load @v : tensor<100xf32>
    %a:2 = par.launch @update(%w, %m) : (tensor<100xf32>, tensor<100xf32>) -> (tensor<100xf32>, tensor<100xf32>)
    par.store %a#0 to @w : tensor<100xf32>
    par.store %a#1 to @m : tensor<100xf32>
    %again = par.load @w : tensor<100xf32>
    %b:2 = par.launch @update(%again, %v) : (tensor<100xf32>, tensor<100xf32>) -> (tensor<100xf32>, tensor<100xf32>)
    par.store %b#0 to @w : tensor<100xf32>
    par.store %b#1 to @v : tensor<100xf32>
  }
  // A block that only reads copies nothing back.
  // CHECK: par.block @look
  // CHECK-NEXT: %[[S:.*]] = par.load @m :
  // CHECK-NEXT: par.store %[[S]] to @m.dev
  // CHECK-NEXT: %[[SD:.*]] = par.load @m.dev
  // CHECK-NEXT: par.fetch %[[SD]]
  // CHECK-NEXT: }
  par.block @look {
    %m = par.load @m : tensor<100xf32>
    par.fetch %m as "m" : tensor<100xf32>
  }
  par.entry @train runs [@update, @look] microbatches [0, 0]
}
