// Collectives over ranks that are two on each of two hosts become some within hosts and some between them, on the same queue.
// RUN: par-opt %s --par-level-collectives=hardware=%S/Inputs/two-a-host.yaml | FileCheck %s
// RUN: par-opt %s --par-level-collectives='always hardware=%S/Inputs/two-a-host.yaml' | FileCheck %s --check-prefixes=CHECK,ALWAYS
// RUN: par-opt %s --par-level-collectives=hardware=%S/Inputs/two-a-host.yaml --par-verify-collectives=overlap=false -o /dev/null
// With one link between all ranks, all collectives stay.
// RUN: par-opt %s --par-level-collectives | FileCheck %s --check-prefix=FLAT
// FLAT-NOT: over ["dp.1"]
// RUN: not par-opt %s --par-level-collectives='always said=plan.yaml:3:16' 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: plan.yaml:3:16: error: collectives.algorithm is hierarchical, but no collective of this plan joins ranks that are several on each of several hosts; say auto

par.stage @s0 <"dp.0"=2, "dp.1"=2> ranks [0, 1, 2, 3]
par.kernel @neg(%a: tensor<8x1000xf32>) -> tensor<8x1000xf32> attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<8x1000xf32>
  par.return %0 : tensor<8x1000xf32>
}
par.kernel @odd(%a: tensor<3xf32>) -> tensor<3xf32> attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<3xf32>
  par.return %0 : tensor<3xf32>
}
par.program @p on @s0 ranks [0, 1, 2, 3] {
  par.buffer @w state of "w" : tensor<8x1000xf32>
  par.buffer @v state of "v" : tensor<2x1000xf32>
  par.buffer @b state of "b" : tensor<3xf32>
  // A sum: the ranks of a host divide its elements (not three), and each rank sums its part between hosts.
  // CHECK-LABEL: par.block @sum
  par.block @sum {
    // CHECK: %[[X:.*]] = par.launch @neg
    // CHECK: %[[SEEN:.*]] = par.launch {{.*}}(%[[X]]) : (tensor<8x1000xf32>) -> tensor<2x4000xf32>
    // CHECK-NEXT: %[[PART:.*]] = par.reduce_scatter sum %[[SEEN]] dims [0] over ["dp.1"] {level} : (tensor<2x4000xf32>) -> tensor<1x4000xf32>
    // CHECK-NEXT: %[[SUM:.*]] = par.all_reduce sum %[[PART]] over ["dp.0"] {level} : (tensor<1x4000xf32>) -> tensor<1x4000xf32>
    // CHECK-NEXT: %[[ALL:.*]] = par.all_gather %[[SUM]] dims [0] over ["dp.1"] {level} : (tensor<1x4000xf32>) -> tensor<2x4000xf32>
    // CHECK-NEXT: %[[W:.*]] = par.launch {{.*}}(%[[ALL]]) : (tensor<2x4000xf32>) -> tensor<8x1000xf32>
    // CHECK-NEXT: %[[B:.*]] = par.all_reduce sum %{{.*}} over ["dp.0", "dp.1"] : (tensor<3xf32>) -> tensor<3xf32>
    // CHECK-NEXT: par.store %[[W]] to @w
    // CHECK-NEXT: par.store %[[B]] to @b
    %w = par.load @w : tensor<8x1000xf32>
    %b = par.load @b : tensor<3xf32>
    %x = par.launch @neg(%w) : (tensor<8x1000xf32>) -> tensor<8x1000xf32>
    %y = par.launch @odd(%b) : (tensor<3xf32>) -> tensor<3xf32>
    %s:2 = par.all_reduce sum %x, %y over ["dp.0", "dp.1"] : (tensor<8x1000xf32>, tensor<3xf32>) -> (tensor<8x1000xf32>, tensor<3xf32>)
    par.store %s#0 to @w : tensor<8x1000xf32>
    par.store %s#1 to @b : tensor<3xf32>
  }
  // Shards go between hosts first. Within one, a gather for each host's block leaves all in the ranks' order; no element moves.
  // CHECK-LABEL: par.block @gather
  par.block @gather {
    // CHECK: %[[V:.*]] = par.launch {{.*}} : (tensor<2x1000xf32>) -> tensor<1x2x1000xf32>
    // CHECK-NEXT: %[[OUT:.*]] = par.all_gather %[[V]] dims [0] over ["dp.0"] {queue = "all_gather"} : (tensor<1x2x1000xf32>) -> tensor<2x2x1000xf32>
    // CHECK-NEXT: %[[IN:.*]] = par.all_gather %[[OUT]] dims [1] over ["dp.1"] {by_blocks, queue = "all_gather"} : (tensor<2x2x1000xf32>) -> tensor<2x4x1000xf32>
    // CHECK-NEXT: %[[N:.*]] = par.launch @neg
    // CHECK-NEXT: %[[DONE:.*]] = par.done %[[IN]] of %[[V]], %[[OUT]]
    // CHECK-NEXT: %[[ALL:.*]] = par.launch {{.*}}(%[[DONE]]) : (tensor<2x4x1000xf32>) -> tensor<8x1000xf32>
    // CHECK: par.launch @neg(%[[ALL]])
    %v = par.load @v : tensor<2x1000xf32>
    %w = par.load @w : tensor<8x1000xf32>
    %g = par.all_gather %v dims [0] over ["dp.0", "dp.1"] {queue = "all_gather"} : (tensor<2x1000xf32>) -> tensor<8x1000xf32>
    %n = par.launch @neg(%w) : (tensor<8x1000xf32>) -> tensor<8x1000xf32>
    %d = par.done %g of %v : (tensor<8x1000xf32>, tensor<2x1000xf32>) -> tensor<8x1000xf32>
    par.store %n to @w : tensor<8x1000xf32>
    %m = par.launch @neg(%d) : (tensor<8x1000xf32>) -> tensor<8x1000xf32>
    par.store %m to @w : tensor<8x1000xf32>
  }
  // CHECK-LABEL: par.block @scatter
  par.block @scatter {
    // CHECK: %[[W:.*]] = par.launch {{.*}} : (tensor<8x1000xf32>) -> tensor<2x4x1000xf32>
    // CHECK-NEXT: %[[IN:.*]] = par.reduce_scatter sum %[[W]] dims [1] over ["dp.1"] {by_blocks, level} : (tensor<2x4x1000xf32>) -> tensor<2x2x1000xf32>
    // CHECK-NEXT: par.reduce_scatter sum %[[IN]] dims [0] over ["dp.0"] {level} : (tensor<2x2x1000xf32>) -> tensor<1x2x1000xf32>
    %w = par.load @w : tensor<8x1000xf32>
    %s = par.reduce_scatter sum %w dims [0] over ["dp.0", "dp.1"] : (tensor<8x1000xf32>) -> tensor<2x1000xf32>
    par.store %s to @v : tensor<2x1000xf32>
  }
  // Beside the last backward: the first chain ends before the second one starts, and its result is stored then. A
  // collective stays if more latencies and launches cost more than the chain saves, unless all are requested.
  // CHECK-LABEL: par.block @beside
  par.block @beside {
    // CHECK: par.reduce_scatter {{.*}} {queue = "data"} : (tensor<2x4000xf32>)
    // CHECK-NEXT: %[[SUM:.*]] = par.all_reduce {{.*}} {queue = "data"}
    // CHECK-NEXT: %[[ALL:.*]] = par.all_gather %[[SUM]] {{.*}} {queue = "data"}
    // CHECK: par.launch @neg
    // ALWAYS: %[[DONE:.*]] = par.done %[[ALL]] of {{.*}}, %[[SUM]]
    // ALWAYS-NEXT: %[[W:.*]] = par.launch {{.*}}(%[[DONE]])
    // ALWAYS-NEXT: par.store %[[W]] to @w
    // ALWAYS: par.reduce_scatter {{.*}} {queue = "data"}
    // ALWAYS: par.done
    // ALWAYS: par.store
    %w = par.load @w : tensor<8x1000xf32>
    %v = par.load @v : tensor<2x1000xf32>
    %x = par.launch @neg(%w) : (tensor<8x1000xf32>) -> tensor<8x1000xf32>
    %s = par.all_reduce sum %x over ["dp.0", "dp.1"] {queue = "data"} : (tensor<8x1000xf32>) -> tensor<8x1000xf32>
    par.store %s to @w : tensor<8x1000xf32>
    %y = par.launch @neg(%x) : (tensor<8x1000xf32>) -> tensor<8x1000xf32>
    %t = par.all_reduce sum %v over ["dp.0", "dp.1"] {queue = "data"} : (tensor<2x1000xf32>) -> tensor<2x1000xf32>
    par.store %t to @v : tensor<2x1000xf32>
  }
  par.entry @train runs [@sum, @gather, @scatter, @beside] microbatches [0, 0, 0, 0]
}
