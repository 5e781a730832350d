// Gradients are joined up to the bucket's bytes, scalars always; a bucket stands where its last operand is made.
// RUN: par-opt %s --par-bucket-collectives=bytes=32 | FileCheck %s
// RUN: par-opt %s --par-bucket-collectives=bytes=0 | FileCheck %s --check-prefix=NONE

// NONE-NOT: par.all_reduce{{.*}}%{{.*}}, %

par.stage @s0 <"dp"=2, "tp"=2> ranks [0, 1, 2, 3]
par.kernel @neg(%a: tensor<4xf32>) -> tensor<4xf32> attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.kernel @norm(%a: tensor<4xf32>) -> tensor<f32> attributes {implementation = "generated"} {
  %0 = par.reduce sum %a dims [0] : tensor<4xf32> to tensor<f32>
  par.return %0 : tensor<f32>
}
par.kernel @add(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> attributes {implementation = "generated"} {
  %0 = par.add %a, %b : tensor<f32>
  par.return %0 : tensor<f32>
}
par.kernel @sum(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {implementation = "generated"} {
  %0 = par.add %a, %b : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.program @p on @s0 ranks [0, 1, 2, 3] {
  par.buffer @w state of "w" : tensor<4xf32>
  par.buffer @u state of "u" : tensor<2xf32>
  par.buffer @v state of "v" : tensor<2xf32>
  par.buffer @s temp : tensor<f32>
  par.buffer @a temp : tensor<4xf32>
  par.buffer @b temp : tensor<4xf32>
  par.buffer @c temp : tensor<4xf32>
  // CHECK-LABEL: par.block @gradients
  par.block @gradients {
    // The first two fill a bucket; its store has moved after it.
    // CHECK: %[[W:.*]] = par.load @w
    // CHECK-NEXT: %[[G:.*]] = par.launch @neg(%[[W]])
    // CHECK-NEXT: %[[H:.*]] = par.launch @neg(%[[G]])
    // CHECK-NEXT: %[[R:.*]]:2 = par.all_reduce  sum %[[G]], %[[H]] over ["dp"]
    // CHECK-NEXT: par.store %[[R]]#0 to @a
    // CHECK-NEXT: %[[I:.*]] = par.launch @neg(%[[H]])
    // CHECK: par.store %[[R]]#1 to @b
    // CHECK: par.all_reduce  sum %[[I]] over ["dp"]
    %w = par.load @w : tensor<4xf32>
    %g = par.launch @neg(%w) : (tensor<4xf32>) -> tensor<4xf32>
    %rg = par.all_reduce sum %g over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    par.store %rg to @a : tensor<4xf32>
    %h = par.launch @neg(%g) : (tensor<4xf32>) -> tensor<4xf32>
    %i = par.launch @neg(%h) : (tensor<4xf32>) -> tensor<4xf32>
    %rh = par.all_reduce sum %h over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    par.store %rh to @b : tensor<4xf32>
    %ri = par.all_reduce sum %i over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    par.store %ri to @c : tensor<4xf32>
  }
  // CHECK-LABEL: par.block @norm
  par.block @norm {
    // All scalars without a user before the last one join.
    // CHECK: par.all_reduce  sum %{{.*}}, %{{.*}} over ["tp"] : (tensor<f32>, tensor<f32>)
    // CHECK: par.launch @add
    // CHECK: par.all_reduce  sum %{{.*}} over ["tp"] : (tensor<f32>)
    %a = par.load @a : tensor<4xf32>
    %b = par.load @b : tensor<4xf32>
    %na = par.launch @norm(%a) : (tensor<4xf32>) -> tensor<f32>
    %ra = par.all_reduce sum %na over ["tp"] : (tensor<f32>) -> tensor<f32>
    %nb = par.launch @norm(%b) : (tensor<4xf32>) -> tensor<f32>
    %rb = par.all_reduce sum %nb over ["tp"] : (tensor<f32>) -> tensor<f32>
    %s = par.launch @add(%ra, %rb) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %rs = par.all_reduce sum %s over ["tp"] : (tensor<f32>) -> tensor<f32>
    par.fetch %rs as "norm" : tensor<f32>
  }
  // CHECK-LABEL: par.block @needed
  par.block @needed {
    // A result that is loaded again in between is not moved past the load.
    // CHECK: par.all_reduce  sum %{{.*}} over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK: par.load @a
    // CHECK: par.all_reduce  sum %{{.*}} over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    %w = par.load @w : tensor<4xf32>
    %g = par.launch @neg(%w) : (tensor<4xf32>) -> tensor<4xf32>
    %rg = par.all_reduce sum %g over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    par.store %rg to @a : tensor<4xf32>
    %a = par.load @a : tensor<4xf32>
    %h = par.launch @neg(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %rh = par.all_reduce sum %h over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    par.store %rh to @b : tensor<4xf32>
  }
  // CHECK-LABEL: par.block @gathers
  par.block @gathers {
    // Gathers of stored values move to the first use, with their operands; 32 bytes fill a bucket.
    // CHECK: par.launch @neg
    // CHECK-NEXT: par.load @v
    // CHECK-NEXT: %[[G:.*]]:2 = par.all_gather %{{.*}}, %{{.*}} dims [0, 0] over ["dp"] : (tensor<2xf32>, tensor<2xf32>)
    // CHECK-NEXT: par.launch @sum(%{{.*}}, %[[G]]#0)
    // CHECK-NEXT: par.launch @sum(%{{.*}}, %[[G]]#1)
    // CHECK: par.all_gather %{{.*}} dims [0] over ["dp"]
    %w = par.load @w : tensor<4xf32>
    %u = par.load @u : tensor<2xf32>
    %n = par.launch @neg(%w) : (tensor<4xf32>) -> tensor<4xf32>
    %gu = par.all_gather %u dims [0] over ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
    %a = par.launch @sum(%n, %gu) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %v = par.load @v : tensor<2xf32>
    %gv = par.all_gather %v dims [0] over ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
    %b = par.launch @sum(%a, %gv) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %gt = par.all_gather %u dims [0] over ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
    %c = par.launch @sum(%b, %gt) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    par.store %c to @c : tensor<4xf32>
  }
  // CHECK-LABEL: par.block @chain
  par.block @chain {
    // Reductions of the results of joined gathers are joined, too, after them.
    // CHECK: %[[G:.*]]:2 = par.all_gather
    // CHECK-NEXT: %[[R:.*]]:2 = par.all_reduce sum %[[G]]#0, %[[G]]#1
    // CHECK: par.store %[[R]]#0 to @a
    // CHECK: par.store %[[R]]#1 to @b
    %u = par.load @u : tensor<2xf32>
    %v = par.load @v : tensor<2xf32>
    %gu = par.all_gather %u dims [0] over ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
    %gv = par.all_gather %v dims [0] over ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
    %ru = par.all_reduce sum %gu over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    %rv = par.all_reduce sum %gv over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    par.store %ru to @a : tensor<4xf32>
    par.store %rv to @b : tensor<4xf32>
  }
  // CHECK-LABEL: par.block @kept
  par.block @kept {
    // A store of a gathered value follows the bucket, which precedes the first use.
    // CHECK: %[[G:.*]]:2 = par.all_gather
    // CHECK-NEXT: par.store %[[G]]#1 to @c
    // CHECK-NEXT: par.launch @neg(%[[G]]#0)
    // CHECK: par.launch @neg(%[[G]]#1)
    %u = par.load @u : tensor<2xf32>
    %v = par.load @v : tensor<2xf32>
    %gu = par.all_gather %u dims [0] over ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
    par.store %gu to @c : tensor<4xf32>
    %gv = par.all_gather %v dims [0] over ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
    %n = par.launch @neg(%gv) : (tensor<4xf32>) -> tensor<4xf32>
    %m = par.launch @neg(%gu) : (tensor<4xf32>) -> tensor<4xf32>
    par.fetch %n as "n" : tensor<4xf32>
    par.fetch %m as "m" : tensor<4xf32>
  }
  // CHECK-LABEL: par.block @twice
  par.block @twice {
    // A sum of another member's result is no member of the same bucket.
    // CHECK: %[[N:.*]] = par.all_reduce sum %{{.*}} over ["dp"] : (tensor<f32>) -> tensor<f32>
    // CHECK-NEXT: par.all_reduce sum %[[N]] over ["dp"] : (tensor<f32>) -> tensor<f32>
    %s = par.load @s : tensor<f32>
    %n = par.all_reduce sum %s over ["dp"] : (tensor<f32>) -> tensor<f32>
    %t = par.all_reduce sum %n over ["dp"] : (tensor<f32>) -> tensor<f32>
    par.store %t to @s : tensor<f32>
  }
  par.entry @train runs [@gradients, @norm, @needed, @gathers, @chain, @kept, @twice] microbatches [0, 0, 0, 0, 0, 0, 0]
}
