// A pad that only a gradient's reduction reads follows its operand; one that others read stays. An addition
// to a sum of earlier microbatches follows with its load, up to the last store to the sum.
// RUN: par-opt %s --par-advance-operands | FileCheck %s
// RUN: par-opt %s --par-advance-operands --par-split-collectives='window=1' | FileCheck %s --check-prefix=STARTS

par.stage @s0 <"dp"=2> ranks [0, 1]
par.kernel @neg(%a: tensor<3xf32>) -> tensor<3xf32> attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<3xf32>
  par.return %0 : tensor<3xf32>
}
par.kernel @pad(%a: tensor<3xf32>) -> tensor<4xf32> attributes {implementation = "generated"} {
  %0 = par.pad %a low [0] high [1] value 0.0 : f32 : tensor<3xf32> to tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.kernel @fill(%a: tensor<3xf32>) -> tensor<4xf32> attributes {implementation = "fill", tied = array<i64: 0>} {
  %0 = par.pad %a low [0] high [1] value 0.0 : f32 : tensor<3xf32> to tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.kernel @add(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {implementation = "generated"} {
  %0 = par.add %a, %b : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.program @p on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<3xf32>
  par.buffer @a temp : tensor<2xf32>
  par.buffer @b temp : tensor<2xf32>
  par.buffer @c temp : tensor<4xf32>
  // CHECK-LABEL: par.block @last
  // STARTS-LABEL: par.block @last
  par.block @last {
    // CHECK: %[[G:.*]] = par.launch @neg
    // CHECK-NEXT: %[[P:.*]] = par.launch @pad(%[[G]])
    // CHECK-NEXT: %[[H:.*]] = par.launch @neg(%[[G]])
    // CHECK-NEXT: par.launch @neg(%[[H]])
    // CHECK-NEXT: %[[F:.*]] = par.launch @fill(%[[H]])
    // CHECK-NEXT: par.launch @neg
    // CHECK: par.reduce_scatter sum %[[P]]
    // CHECK: par.reduce_scatter sum %[[F]]
    // CHECK: par.launch @pad
    // CHECK-NEXT: par.store
    // STARTS: par.launch @pad
    // STARTS-NEXT: par.reduce_scatter
    %w = par.load @w : tensor<3xf32>
    %g = par.launch @neg(%w) : (tensor<3xf32>) -> tensor<3xf32>
    %h = par.launch @neg(%g) : (tensor<3xf32>) -> tensor<3xf32>
    %i = par.launch @neg(%h) : (tensor<3xf32>) -> tensor<3xf32>
    %j = par.launch @neg(%i) : (tensor<3xf32>) -> tensor<3xf32>
    par.fetch %j as "j" : tensor<3xf32>
    %pg = par.launch @pad(%g) : (tensor<3xf32>) -> tensor<4xf32>
    %rg = par.reduce_scatter sum %pg dims [0] over ["dp"] : (tensor<4xf32>) -> tensor<2xf32>
    par.store %rg to @a : tensor<2xf32>
    %ph = par.launch @fill(%h) : (tensor<3xf32>) -> tensor<4xf32>
    %rh = par.reduce_scatter sum %ph dims [0] over ["dp"] : (tensor<4xf32>) -> tensor<2xf32>
    par.store %rh to @b : tensor<2xf32>
    %pi = par.launch @pad(%i) : (tensor<3xf32>) -> tensor<4xf32>
    par.store %pi to @c : tensor<4xf32>
  }
  par.entry @train runs [@last] microbatches [0]

  par.buffer @g0 temp : tensor<4xf32>
  par.buffer @g1 temp : tensor<4xf32>
  par.buffer @sum temp : tensor<4xf32>
  par.buffer @other temp : tensor<4xf32>
  // CHECK-LABEL: par.block @sums
  par.block @sums {
    // CHECK: %[[G:.*]] = par.load @g0
    // CHECK: %[[A:.*]] = par.launch @add(%[[G]], %[[G]])
    // CHECK-NEXT: %[[S:.*]] = par.load @sum
    // CHECK-NEXT: %[[B:.*]] = par.launch @add(%[[S]], %[[A]])
    // CHECK-NEXT: %[[C:.*]] = par.launch @add(%[[A]], %[[A]])
    // CHECK-NEXT: par.store %[[C]] to @other
    // CHECK-NEXT: %[[T:.*]] = par.load @other
    // CHECK-NEXT: par.launch @add(%[[T]], %[[A]])
    // CHECK-NEXT: par.launch @add(%[[C]], %[[C]])
    %g = par.load @g0 : tensor<4xf32>
    %a = par.launch @add(%g, %g) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %c = par.launch @add(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    par.store %c to @other : tensor<4xf32>
    %d = par.launch @add(%c, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    par.store %d to @g1 : tensor<4xf32>
    %s = par.load @sum : tensor<4xf32>
    %sa = par.launch @add(%s, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %rs = par.reduce_scatter sum %sa dims [0] over ["dp"] : (tensor<4xf32>) -> tensor<2xf32>
    par.store %rs to @a : tensor<2xf32>
    %t = par.load @other : tensor<4xf32>
    %ta = par.launch @add(%t, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %rt = par.reduce_scatter sum %ta dims [0] over ["dp"] : (tensor<4xf32>) -> tensor<2xf32>
    par.store %rt to @b : tensor<2xf32>
  }
  par.entry @sum_up runs [@sums] microbatches [0]
}
