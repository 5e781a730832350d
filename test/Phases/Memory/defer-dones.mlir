// The end of a reduction that only the update reads goes right before it; its operand is kept up to there.
// RUN: par-opt %s --par-defer-dones | FileCheck %s
// RUN: par-opt %s --par-defer-dones --par-assign-buffers --par-pack-memory --par-verify-memory \
// RUN:   | FileCheck %s --check-prefix=MEMORY

par.stage @s0 <"dp"=2> ranks [0, 1]
par.kernel @neg(%a: tensor<4xf32>) -> tensor<4xf32> attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.kernel @view(%a: tensor<2xf32>) -> tensor<1x2xf32> attributes {implementation = "generated"} {
  %0 = par.reshape %a : tensor<2xf32> to tensor<1x2xf32>
  par.return %0 : tensor<1x2xf32>
}
par.kernel @half(%a: tensor<2xf32>) -> tensor<2xf32> attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<2xf32>
  par.return %0 : tensor<2xf32>
}
par.program @p on @s0 ranks [0, 1] {
  par.buffer @x temp : tensor<4xf32>
  par.buffer @seen temp : tensor<1x2xf32>
  par.buffer @made temp : tensor<4xf32>
  par.buffer @now temp : tensor<2xf32>
  par.buffer @soon temp : tensor<2xf32>
  par.block @first {
    %w = par.load @x : tensor<4xf32>
    %x = par.launch @neg(%w) : (tensor<4xf32>) -> tensor<4xf32>
    par.store %x to @x : tensor<4xf32>
  }
  // A later microbatch runs before the update: the operand would live through all of it.
  // CHECK-LABEL: par.block @early
  // CHECK: queue = "reduce_scatter"
  // CHECK: par.done
  // CHECK-NOT: par.block @early.ends
  par.block @early {
    %x = par.load @x : tensor<4xf32>
    %r = par.reduce_scatter sum %x dims [0] over ["dp"] {queue = "reduce_scatter"} : (tensor<4xf32>) -> tensor<2xf32>
    %d = par.done %r of %x : (tensor<2xf32>, tensor<4xf32>) -> tensor<2xf32>
    par.store %d to @soon : tensor<2xf32>
  }
  // A result that is only seen under another shape is stored where it is; one that is gathered next moves along.
  // CHECK-LABEL: par.block @last {
  // CHECK: %[[G:.*]] = par.launch @neg
  // CHECK: par.store %[[G]] to @last.kept0
  // CHECK: %[[K:.*]] = par.load @last.kept0
  // CHECK: %[[R:.*]] = par.reduce_scatter sum %[[K]] dims [0] over ["dp"] {queue = "deferred"}
  // CHECK: %[[S:.*]] = par.reduce_scatter sum %[[K]] dims [0] over ["dp"] {queue = "deferred"}
  // CHECK: par.store %[[S]] to @last.kept1
  // CHECK: %[[V:.*]] = par.launch @view(%[[R]])
  // CHECK: par.store %[[V]] to @seen
  // CHECK-NOT: par.done
  // CHECK-NOT: par.all_gather
  // CHECK-LABEL: par.block @last.ends
  // CHECK: %[[E:.*]] = par.load @seen : tensor<1x2xf32>
  // CHECK: %[[O:.*]] = par.load @last.kept0
  // CHECK: par.done %[[E]] of %[[O]]
  // CHECK: %[[F:.*]] = par.load @last.kept1
  // CHECK: %[[P:.*]] = par.load @last.kept0
  // CHECK: %[[D:.*]] = par.done %[[F]] of %[[P]]
  // CHECK: %[[H:.*]] = par.all_gather %[[D]]
  // CHECK: par.store %[[H]] to @made
  // MEMORY-LABEL: par.block @last {
  // MEMORY: par.reduce_scatter
  // MEMORY-NEXT: par.store %{{.*}} to @seen : tensor<2xf32>
  // MEMORY-LABEL: par.block @last.ends
  // MEMORY: par.done
  // MEMORY-NEXT: par.store %{{.*}} to @seen
  par.block @last {
    %x = par.load @x : tensor<4xf32>
    %g = par.launch @neg(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %r = par.reduce_scatter sum %g dims [0] over ["dp"] {queue = "reduce_scatter"} : (tensor<4xf32>) -> tensor<2xf32>
    %d = par.done %r of %g : (tensor<2xf32>, tensor<4xf32>) -> tensor<2xf32>
    %s = par.reduce_scatter sum %g dims [0] over ["dp"] {queue = "reduce_scatter"} : (tensor<4xf32>) -> tensor<2xf32>
    %v = par.launch @view(%d) : (tensor<2xf32>) -> tensor<1x2xf32>
    par.store %v to @seen : tensor<1x2xf32>
    %e = par.done %s of %g : (tensor<2xf32>, tensor<4xf32>) -> tensor<2xf32>
    %h = par.all_gather %e dims [0] over ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
    par.store %h to @made : tensor<4xf32>
  }
  // The block computes with the results.
  // CHECK-LABEL: par.block @used
  // CHECK: queue = "reduce_scatter"
  // CHECK: par.done
  // CHECK-NOT: par.block @used.ends
  par.block @used {
    %x = par.load @x : tensor<4xf32>
    %r = par.reduce_scatter sum %x dims [0] over ["dp"] {queue = "reduce_scatter"} : (tensor<4xf32>) -> tensor<2xf32>
    %d = par.done %r of %x : (tensor<2xf32>, tensor<4xf32>) -> tensor<2xf32>
    %h = par.launch @half(%d) : (tensor<2xf32>) -> tensor<2xf32>
    par.store %h to @now : tensor<2xf32>
  }
  par.block @other {
    %x = par.load @x : tensor<4xf32>
    par.fetch %x as "x" : tensor<4xf32>
  }
  par.block @update {
    %s = par.load @seen : tensor<1x2xf32>
    par.fetch %s as "s" : tensor<1x2xf32>
    %m = par.load @made : tensor<4xf32>
    par.fetch %m as "m" : tensor<4xf32>
    %n = par.load @now : tensor<2xf32>
    par.fetch %n as "n" : tensor<2xf32>
    %t = par.load @soon : tensor<2xf32>
    par.fetch %t as "t" : tensor<2xf32>
  }
  // CHECK: runs [@first, @early, @last, @used, @other, @last.ends, @update] microbatches [0, 0, 1, 1, 1, 1, 1]
  par.entry @train runs [@first, @early, @last, @used, @other, @update] microbatches [0, 0, 1, 1, 1, 1]
}
