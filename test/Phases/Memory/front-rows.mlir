// A slice of the first rows is no copy, and zeros are appended in place: a table of 5 rows that two ranks update in
// shares of 3 is summed, updated and gathered in buffers of 6.
// RUN: par-opt %s --par-assign-buffers --par-pack-memory --par-verify-memory | FileCheck %s
// RUN: par-opt %s --par-assign-buffers=grow-state=false --par-pack-memory --par-verify-memory | FileCheck %s --check-prefix=ALONE

par.stage @s0 <"dp"=2> ranks [0, 1]
par.variable @w parameter : tensor<5x4xf32>
// CHECK-NOT: par.kernel @front
par.kernel @front(%a: tensor<6x4xf32>) -> tensor<5x4xf32> attributes {implementation = "generated"} {
  %0 = par.slice %a [0, 0] to [5, 4] by [1, 1] : tensor<6x4xf32> to tensor<5x4xf32>
  par.return %0 : tensor<5x4xf32>
}
par.kernel @fill(%a: tensor<5x4xf32>) -> tensor<6x4xf32> attributes {implementation = "fill", tied = array<i64: 0>} {
  %0 = par.pad %a low [0, 0] high [1, 0] value 0.0 : f32 : tensor<5x4xf32> to tensor<6x4xf32>
  par.return %0 : tensor<6x4xf32>
}
par.kernel @neg(%a: tensor<5x4xf32>) -> tensor<5x4xf32> attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<5x4xf32>
  par.return %0 : tensor<5x4xf32>
}
par.kernel @share(%a: tensor<6x4xf32>, %b: tensor<3x4xf32>) -> tensor<3x4xf32> attributes {implementation = "generated"} {
  %0 = par.slice %a [0, 0] to [3, 4] by [1, 1] : tensor<6x4xf32> to tensor<3x4xf32>
  %1 = par.add %0, %b : tensor<3x4xf32>
  par.return %1 : tensor<3x4xf32>
}
// CHECK: par.buffer @w state of "w" : tensor<6x4xf32> as !par.dist<tensor<5x4xf32>, @s0, [{}, {}]>
// ALONE: par.buffer @w state of "w" : tensor<5x4xf32> as
par.program @stage0 on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<5x4xf32> as !par.dist<tensor<5x4xf32>, @s0, [{}, {}]>
  par.buffer @x input of "x" : tensor<6x4xf32> as !par.dist<tensor<6x4xf32>, @s0, [{}, {}]>
  par.buffer @y temp : tensor<5x4xf32>
  // Front rows are loaded from where all lie.
  // CHECK: par.block @look
  // CHECK-NEXT: %[[FRONT:.*]] = par.load @x : tensor<5x4xf32>
  // CHECK-NEXT: par.launch @neg(%[[FRONT]])
  par.block @look {
    %x = par.load @x : tensor<6x4xf32>
    %f = par.launch @front(%x) : (tensor<6x4xf32>) -> tensor<5x4xf32>
    %n = par.launch @neg(%f) : (tensor<5x4xf32>) -> tensor<5x4xf32>
    par.store %n to @y : tensor<5x4xf32>
  }
  // The gradient is made where it is filled up; the state has room for the zeros, and is gathered in place.
  // CHECK: par.buffer @update.t0 temp : tensor<6x4xf32>
  // CHECK: par.block @update
  // CHECK: %[[Y:.*]] = par.load @y
  // CHECK: %[[G:.*]] = par.launch @neg(%[[Y]])
  // CHECK-NEXT: par.store %[[G]] to @update.t0 : tensor<5x4xf32>
  // CHECK-NEXT: %[[ROWS:.*]] = par.load @update.t0 : tensor<5x4xf32>
  // CHECK-NEXT: %[[ALL:.*]] = par.launch @fill(%[[ROWS]])
  // CHECK-NEXT: par.store %[[ALL]] to @update.t0 : tensor<6x4xf32>
  // CHECK: par.reduce_scatter
  // CHECK: %[[W:.*]] = par.load @w : tensor<5x4xf32>
  // CHECK-NEXT: %[[WHOLE:.*]] = par.launch @fill(%[[W]])
  // CHECK-NEXT: par.store %[[WHOLE]] to @w : tensor<6x4xf32>
  // CHECK: par.launch @share
  // CHECK: %[[NEW:.*]] = par.all_gather
  // CHECK-NEXT: par.store %[[NEW]] to @w : tensor<6x4xf32>
  // CHECK-NOT: par.store
  // CHECK: par.entry
  // ALONE: par.block @update
  // ALONE: %[[W:.*]] = par.load @w : tensor<5x4xf32>
  // ALONE: par.store %[[W]] to @update.[[COPY:.*]] : tensor<5x4xf32>
  // ALONE: %[[NEW:.*]] = par.all_gather
  // ALONE-NEXT: par.store %[[NEW]] to @update.[[OWN:.*]] : tensor<6x4xf32>
  // ALONE-NEXT: %[[ROWS:.*]] = par.load @update.[[OWN]] : tensor<5x4xf32>
  // ALONE-NEXT: par.store %[[ROWS]] to @w : tensor<5x4xf32>
  par.block @update {
    %y = par.load @y : tensor<5x4xf32>
    %g = par.launch @neg(%y) : (tensor<5x4xf32>) -> tensor<5x4xf32>
    %gp = par.launch @fill(%g) : (tensor<5x4xf32>) -> tensor<6x4xf32>
    %gs = par.reduce_scatter sum %gp dims [0] over ["dp"] : (tensor<6x4xf32>) -> tensor<3x4xf32>
    %w = par.load @w : tensor<5x4xf32>
    %wp = par.launch @fill(%w) : (tensor<5x4xf32>) -> tensor<6x4xf32>
    %n = par.launch @share(%wp, %gs) : (tensor<6x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %a = par.all_gather %n dims [0] over ["dp"] : (tensor<3x4xf32>) -> tensor<6x4xf32>
    %f = par.launch @front(%a) : (tensor<6x4xf32>) -> tensor<5x4xf32>
    par.store %f to @w : tensor<5x4xf32>
  }
  par.entry @train runs [@look, @update] microbatches [0, 0]
}
