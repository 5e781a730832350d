// Gathers of stored values start where the one before them is needed and end where they are; scatters start where they can and
// end before the next one starts, with the sums that they are added to.
// RUN: par-opt %s --par-split-collectives | FileCheck %s
// RUN: par-opt %s --par-split-collectives=window=2 | FileCheck %s --check-prefix=TWO
// RUN: par-opt %s --par-split-collectives=window=0 | FileCheck %s --check-prefix=NONE
// RUN: par-opt %s --par-split-collectives --par-verify-collectives -o /dev/null

// NONE-NOT: queue
// NONE-NOT: par.done

par.stage @s0 <"rep"=2, "dp"=2> ranks [0, 1, 2, 3]
par.kernel @cast(%a: tensor<4xf32>) -> tensor<4xbf16> attributes {implementation = "generated"} {
  %0 = par.convert %a : tensor<4xf32> to tensor<4xbf16>
  par.return %0 : tensor<4xbf16>
}
par.kernel @use(%a: tensor<8xbf16>, %b: tensor<8xf32>) -> tensor<8xf32> attributes {implementation = "generated"} {
  %0 = par.convert %a : tensor<8xbf16> to tensor<8xf32>
  %1 = par.add %0, %b : tensor<8xf32>
  par.return %1 : tensor<8xf32>
}
par.kernel @two(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<8xf32>
  %1 = par.exp %a : tensor<8xf32>
  par.return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
par.kernel @neg(%a: tensor<8xf32>) -> tensor<8xf32> attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<8xf32>
  par.return %0 : tensor<8xf32>
}
par.kernel @add(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32>
    attributes {implementation = "generated", tied = array<i64: 0>} {
  %0 = par.add %a, %b : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.program @p on @s0 ranks [0, 1, 2, 3] {
  par.buffer @v state of "v" : tensor<4xf32>
  par.buffer @w state of "w" : tensor<4xf32>
  par.buffer @x temp : tensor<8xf32>
  par.buffer @sum.v temp : tensor<4xf32>
  par.buffer @sum.w temp : tensor<4xf32>
  // CHECK-LABEL: par.block @forward
  // TWO-LABEL: par.block @forward
  par.block @forward {
    // The second one starts before the first one is awaited.
    // CHECK: %[[V:.*]] = par.launch @cast
    // CHECK-NEXT: %[[GV:.*]] = par.all_gather %[[V]] dims [0] over ["dp"] {queue = "all_gather"}
    // CHECK-NEXT: par.launch @neg
    // CHECK-NEXT: par.load @w
    // CHECK-NEXT: %[[W:.*]] = par.launch @cast
    // CHECK-NEXT: %[[GW:.*]] = par.all_gather %[[W]] dims [0] over ["dp"] {queue = "all_gather"}
    // CHECK-NEXT: %[[DV:.*]] = par.done %[[GV]] of %[[V]] : (tensor<8xbf16>, tensor<4xbf16>) -> tensor<8xbf16>
    // CHECK-NEXT: par.launch @use(%[[DV]]
    // CHECK-NEXT: %[[DW:.*]] = par.done %[[GW]] of %[[W]]
    // CHECK-NEXT: par.launch @use(%[[DW]]
    // TWO: par.all_gather
    // TWO: par.all_gather
    // TWO: par.launch @neg
    %v = par.load @v : tensor<4xf32>
    %x = par.load @x : tensor<8xf32>
    %n = par.launch @neg(%x) : (tensor<8xf32>) -> tensor<8xf32>
    %vb = par.launch @cast(%v) : (tensor<4xf32>) -> tensor<4xbf16>
    %gv = par.all_gather %vb dims [0] over ["dp"] : (tensor<4xbf16>) -> tensor<8xbf16>
    %y = par.launch @use(%gv, %n) : (tensor<8xbf16>, tensor<8xf32>) -> tensor<8xf32>
    %w = par.load @w : tensor<4xf32>
    %wb = par.launch @cast(%w) : (tensor<4xf32>) -> tensor<4xbf16>
    %gw = par.all_gather %wb dims [0] over ["dp"] : (tensor<4xbf16>) -> tensor<8xbf16>
    %z = par.launch @use(%gw, %y) : (tensor<8xbf16>, tensor<8xf32>) -> tensor<8xf32>
    par.store %z to @x : tensor<8xf32>
  }
  // CHECK-LABEL: par.block @backward
  par.block @backward {
    // CHECK: %[[G:.*]] = par.launch @neg
    // CHECK-NEXT: %[[RG:.*]] = par.reduce_scatter sum %[[G]] dims [0] over ["dp"] {queue = "reduce_scatter"}
    // CHECK-NEXT: %[[H:.*]] = par.launch @neg
    // CHECK-NEXT: %[[DG:.*]] = par.done %[[RG]] of %[[G]]
    // CHECK-NEXT: %[[SV:.*]] = par.launch @add(%{{.*}}, %[[DG]])
    // CHECK-NEXT: %[[RH:.*]] = par.reduce_scatter sum %[[H]] dims [0] over ["dp"] {queue = "reduce_scatter"}
    // CHECK-NEXT: par.launch @neg
    // CHECK-NEXT: par.store %[[SV]] to @sum.v
    // CHECK-NEXT: par.store %{{.*}} to @x
    // CHECK-NEXT: %[[DH:.*]] = par.done %[[RH]] of %[[H]]
    // CHECK-NEXT: %[[SW:.*]] = par.launch @add(%{{.*}}, %[[DH]])
    // CHECK-NEXT: par.store %[[SW]] to @sum.w
    %sv = par.load @sum.v : tensor<4xf32>
    %sw = par.load @sum.w : tensor<4xf32>
    %x = par.load @x : tensor<8xf32>
    %g = par.launch @neg(%x) : (tensor<8xf32>) -> tensor<8xf32>
    %rg = par.reduce_scatter sum %g dims [0] over ["dp"] : (tensor<8xf32>) -> tensor<4xf32>
    %nv = par.launch @add(%sv, %rg) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %h = par.launch @neg(%g) : (tensor<8xf32>) -> tensor<8xf32>
    %rh = par.reduce_scatter sum %h dims [0] over ["dp"] : (tensor<8xf32>) -> tensor<4xf32>
    %nw = par.launch @add(%sw, %rh) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %i = par.launch @neg(%h) : (tensor<8xf32>) -> tensor<8xf32>
    par.store %nv to @sum.v : tensor<4xf32>
    par.store %nw to @sum.w : tensor<4xf32>
    par.store %i to @x : tensor<8xf32>
  }
  // CHECK-LABEL: par.block @between
  par.block @between {
    // A collective without a launch before its first use stays synchronous; one with a launch between becomes
    // asynchronous.
    // CHECK: par.reduce_scatter sum %{{.*}} dims [0] over ["dp"] :
    // CHECK: %[[N:.*]] = par.launch @add
    // CHECK-NEXT: %[[R:.*]] = par.all_gather %[[N]] dims [0] over ["dp"] {queue = "all_gather"}
    // CHECK-NEXT: par.launch @neg
    // CHECK-NEXT: %[[D:.*]] = par.done %[[R]] of %[[N]]
    // CHECK-NEXT: par.launch @neg(%[[D]])
    %x = par.load @x : tensor<8xf32>
    %w = par.load @w : tensor<4xf32>
    %y = par.launch @neg(%x) : (tensor<8xf32>) -> tensor<8xf32>
    %a = par.launch @neg(%y) : (tensor<8xf32>) -> tensor<8xf32>
    %r = par.all_reduce sum %a over ["dp"] : (tensor<8xf32>) -> tensor<8xf32>
    %e = par.launch @neg(%r) : (tensor<8xf32>) -> tensor<8xf32>
    %s = par.reduce_scatter sum %e dims [0] over ["dp"] : (tensor<8xf32>) -> tensor<4xf32>
    %b = par.launch @add(%w, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %c = par.launch @neg(%x) : (tensor<8xf32>) -> tensor<8xf32>
    %g = par.all_gather %b dims [0] over ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
    %d = par.launch @neg(%g) : (tensor<8xf32>) -> tensor<8xf32>
    par.fetch %d as "d" : tensor<8xf32>
    par.store %c to @x : tensor<8xf32>
  }
  // CHECK-LABEL: par.block @same
  par.block @same {
    // Scatters of one op's results start one after the other.
    // CHECK: %[[A:.*]]:2 = par.launch @two
    // CHECK-NEXT: %[[RA:.*]] = par.reduce_scatter sum %[[A]]#0
    // CHECK-NEXT: %[[DA:.*]] = par.done %[[RA]]
    // CHECK-NEXT: %[[RB:.*]] = par.reduce_scatter sum %[[A]]#1
    // CHECK-NEXT: par.launch @neg
    // CHECK-NEXT: par.store %[[DA]] to @sum.v
    // CHECK: %[[DB:.*]] = par.done %[[RB]]
    // CHECK-NEXT: par.store %[[DB]] to @sum.w
    %x = par.load @x : tensor<8xf32>
    %a:2 = par.launch @two(%x) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    %ra = par.reduce_scatter sum %a#0 dims [0] over ["dp"] : (tensor<8xf32>) -> tensor<4xf32>
    %rb = par.reduce_scatter sum %a#1 dims [0] over ["dp"] : (tensor<8xf32>) -> tensor<4xf32>
    %n = par.launch @neg(%x) : (tensor<8xf32>) -> tensor<8xf32>
    par.store %ra to @sum.v : tensor<4xf32>
    par.store %rb to @sum.w : tensor<4xf32>
    par.store %n to @x : tensor<8xf32>
  }
  // CHECK-LABEL: par.block @chain
  par.block @chain {
    // The all-reduce over copies follows its scatter's end, in the order of available operands: after the later
    // scatter.
    // CHECK: %[[RA:.*]] = par.reduce_scatter sum
    // CHECK-NEXT: %[[B:.*]] = par.launch @neg
    // CHECK-NEXT: %[[RB:.*]] = par.reduce_scatter sum %[[B]]
    // CHECK-NEXT: par.launch @neg
    // CHECK-NEXT: %[[DA:.*]] = par.done %[[RA]]
    // CHECK-NEXT: %[[DB:.*]] = par.done %[[RB]]
    // CHECK: %[[SA:.*]] = par.all_reduce sum %[[DA]] over ["rep"] {queue = "all_reduce"}
    // CHECK: %[[EA:.*]] = par.done %[[SA]] :
    // CHECK-NEXT: par.launch @add(%{{.*}}, %[[EA]])
    %old = par.load @x : tensor<8xf32>
    %new = par.launch @neg(%old) : (tensor<8xf32>) -> tensor<8xf32>
    par.store %new to @x : tensor<8xf32>
    %x = par.load @x : tensor<8xf32>
    %sv = par.load @sum.v : tensor<4xf32>
    %a = par.launch @neg(%x) : (tensor<8xf32>) -> tensor<8xf32>
    %ra = par.reduce_scatter sum %a dims [0] over ["dp"] : (tensor<8xf32>) -> tensor<4xf32>
    %b = par.launch @neg(%a) : (tensor<8xf32>) -> tensor<8xf32>
    %rb = par.reduce_scatter sum %b dims [0] over ["dp"] : (tensor<8xf32>) -> tensor<4xf32>
    %n = par.launch @neg(%b) : (tensor<8xf32>) -> tensor<8xf32>
    %sa = par.all_reduce sum %ra over ["rep"] : (tensor<4xf32>) -> tensor<4xf32>
    %nv = par.launch @add(%sv, %sa) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    par.store %nv to @sum.v : tensor<4xf32>
    par.store %rb to @sum.w : tensor<4xf32>
    par.store %n to @x : tensor<8xf32>
  }
  par.entry @train runs [@forward, @backward, @between, @same, @chain] microbatches [0, 0, 0, 0, 0]
  // CHECK-LABEL: par.block @chunks
  par.block @chunks {
    // Two gathers under way together are both asynchronous, even without a launch between; so are scatters.
    // CHECK: %[[C1:.*]] = par.launch @cast
    // CHECK-NEXT: %[[G1:.*]] = par.all_gather %[[C1]] dims [0] over ["dp"] {queue = "all_gather"}
    // CHECK-NEXT: %[[C0:.*]] = par.launch @cast
    // CHECK-NEXT: %[[G0:.*]] = par.all_gather %[[C0]] dims [0] over ["dp"] {queue = "all_gather"}
    // CHECK-NEXT: %[[E0:.*]] = par.done %[[G0]]
    // CHECK-NEXT: %[[U0:.*]] = par.launch @use(%[[E0]]
    // CHECK-NEXT: %[[R0:.*]] = par.reduce_scatter sum %[[U0]] dims [0] over ["dp"] {queue = "reduce_scatter"}
    // CHECK-NEXT: %[[E1:.*]] = par.done %[[G1]]
    // CHECK-NEXT: %[[U1:.*]] = par.launch @use(%[[E1]]
    // CHECK-NEXT: %[[R1:.*]] = par.reduce_scatter sum %[[U1]] dims [0] over ["dp"] {queue = "reduce_scatter"}
    // CHECK-NEXT: par.done %[[R0]]
    // CHECK-NEXT: par.done %[[R1]]
    // CHECK-NEXT: par.launch @add
    %x = par.load @x : tensor<8xf32>
    %s = par.reduce_scatter sum %x dims [0] over ["dp"] : (tensor<8xf32>) -> tensor<4xf32>
    %b = par.launch @add(%s, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %c1 = par.launch @cast(%b) : (tensor<4xf32>) -> tensor<4xbf16>
    %c0 = par.launch @cast(%s) : (tensor<4xf32>) -> tensor<4xbf16>
    %g0 = par.all_gather %c0 dims [0] over ["dp"] : (tensor<4xbf16>) -> tensor<8xbf16>
    %g1 = par.all_gather %c1 dims [0] over ["dp"] : (tensor<4xbf16>) -> tensor<8xbf16>
    %u0 = par.launch @use(%g0, %x) : (tensor<8xbf16>, tensor<8xf32>) -> tensor<8xf32>
    %r0 = par.reduce_scatter sum %u0 dims [0] over ["dp"] : (tensor<8xf32>) -> tensor<4xf32>
    %u1 = par.launch @use(%g1, %x) : (tensor<8xbf16>, tensor<8xf32>) -> tensor<8xf32>
    %r1 = par.reduce_scatter sum %u1 dims [0] over ["dp"] : (tensor<8xf32>) -> tensor<4xf32>
    %e = par.launch @add(%r0, %r1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %f = par.launch @add(%e, %e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    par.fetch %f as "f" : tensor<4xf32>
  }
}
