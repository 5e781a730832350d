// Parameters that are spread over the axes of states are their masters, and lie where the states do; one that the plan
// itself lays over these axes is none.
// RUN: par-opt %s --par-offload="states master-axes=dp" | FileCheck %s
// RUN: par-opt %s --par-offload="states-of=w master-axes=dp" | FileCheck %s
// RUN: par-opt %s --par-offload="states" | FileCheck %s --check-prefix=STATES
// RUN: par-opt %s --par-offload="states-of=u master-axes=dp" | FileCheck %s --check-prefix=OTHER

par.stage @s0 <"dp"=2> ranks [0, 1]
par.variable @w parameter : tensor<8xf32> at [!par.dist<tensor<8xf32>, @s0, [{"dp"}]>]
par.variable @m state of @w : tensor<8xf32> at [!par.dist<tensor<8xf32>, @s0, [{"dp"}]>]
par.variable @u parameter : tensor<8xf32> at [!par.dist<tensor<8xf32>, @s0, [{}]>]
par.variable @laid parameter : tensor<8xf32> sharding <[{"dp"}]> at [!par.dist<tensor<8xf32>, @s0, [{"dp"}]>]
// CHECK: par.program
// CHECK-DAG: par.buffer @w state of "w" : tensor<4xf32> {host}
// CHECK-DAG: par.buffer @m state of "m" : tensor<4xf32> {host}
// CHECK-DAG: par.buffer @u state of "u" : tensor<8xf32>{{$}}
// CHECK-DAG: par.buffer @laid state of "laid" : tensor<4xf32>{{$}}
// STATES: par.buffer @w state of "w" : tensor<4xf32>{{$}}
// STATES: par.buffer @m state of "m" : tensor<4xf32> {host}
// OTHER-NOT: {host}
par.program @stage0 on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<4xf32>
  par.buffer @m state of "m" : tensor<4xf32>
  par.buffer @u state of "u" : tensor<8xf32>
  par.buffer @laid state of "laid" : tensor<4xf32>
}
