// A pad that only a gradient's reduction reads follows its operand; one that others read stays.
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
}
