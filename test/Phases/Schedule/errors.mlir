// Schedule refuses steps that it does not support.
// RUN: par-opt %s --par-build-programs --split-input-file --verify-diagnostics

// expected-error @below {{has no par.stage; Annotate makes at least one}}
module {}

// -----

par.stage @s0 <> ranks [0]
// expected-error @below {{has mesh #par.mesh<"dp"=2>, @s0 #par.mesh<>: stages of different meshes with several stages on the same ranks are not supported yet by Schedule}}
par.stage @s1 <"dp"=2> ranks [1, 2]
par.stage @s2 <> ranks [0]

// -----

par.stage @s0 <> ranks [0]
// expected-error @below {{is not local; run Partition before Schedule}}
par.fragment @f() attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  par.return
}

// -----

par.stage @s0 <> ranks [0]
par.variable @w parameter : tensor<4xf32>
par.fragment @prepare(%w: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.exp %w : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.step @eval() {
  // expected-error @below {{has staleness 1, but no microbatch uses it: not supported yet by Schedule}}
  %w = par.read @w behind 1 : !par.dist<tensor<4xf32>, @s0, [{}]>
  %e = par.run @prepare(%w) : (!par.dist<tensor<4xf32>, @s0, [{}]>) -> !par.dist<tensor<4xf32>, @s0, [{}]>
  par.return
}

// -----

par.stage @s0 <> ranks [0]
// expected-error @below {{has no name for result 0}}
par.step @eval(%x: !par.dist<tensor<4xf32>, @s0, [{}]>) -> !par.dist<tensor<4xf32>, @s0, [{}]> {
  par.return %x : !par.dist<tensor<4xf32>, @s0, [{}]>
}

// -----

par.stage @s0 <> ranks [0]
par.step @eval(%x: !par.dist<tensor<4xf32>, @s0, [{}]>) {
  // expected-error @below {{may not stand in a step before Schedule}}
  %0 = par.reshard %x : <tensor<4xf32>, @s0, [{}]> to <tensor<4xf32>, @s0, [{}]>
  par.return
}

// -----

par.stage @s0 <> ranks [0]
par.variable @w parameter : tensor<2x4xf32>
par.step @eval() {
  %w = par.read @w : !par.dist<tensor<2x4xf32>, @s0, [{}, {}]>
  // expected-error @below {{slices a value that is neither an input nor carried nor stacked by a loop: not supported yet by Schedule}}
  par.loop 2 (%w) : (!par.dist<tensor<2x4xf32>, @s0, [{}, {}]>) -> () {
  ^bb0(%i: tensor<i64>, %wi: !par.dist<tensor<4xf32>, @s0, [{}]>):
    par.yield []
  }
  par.return
}

// -----

par.stage @s0 <> ranks [0]
par.step @eval() {
  par.loop 2 () : () -> () {
  ^bb0(%i: tensor<i64>):
    // expected-error @below {{stands in a loop: Schedule knows one level}}
    par.loop 2 () : () -> () {
    ^bb0(%j: tensor<i64>):
      par.yield []
    }
    par.yield []
  }
  par.return
}

// -----

par.stage @s0 <> ranks [0]
par.fragment @f(%x: tensor<2x4xf32>) attributes {stage = @s0, kind = #par.fragment_kind<update>, local} {
  par.return
}
!x = !par.dist<tensor<2x4xf32>, @s0, [{}, {}]>
par.step @eval(%x: !x) {
  %s = par.loop 2 (%x) : (!x) -> !x {
  ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<4xf32>, @s0, [{}]>):
    par.yield [stack] %xi : !par.dist<tensor<4xf32>, @s0, [{}]>
  }
  // expected-error @below {{uses a stacked result whole: not supported yet by Schedule}}
  par.run @f(%s) : (!x) -> ()
  par.return
}

// -----

// A parameter with a row for each sample: nn.Parameter(torch.zeros(batch, 4)).
par.stage @s0 <> ranks [0]
par.fragment @f(%x: tensor<2x4xf32>) attributes {stage = @s0, kind = #par.fragment_kind<update>, local} {
  par.return
}
!x = !par.dist<tensor<2x4xf32>, @s0, [{}, {}]>
par.step @train(%x: !x) {
  %s = par.loop 2 (%x) {labels = ["offset"]} : (!x) -> !x {
  ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<4xf32>, @s0, [{}]>):
    par.yield [stack] %xi : !par.dist<tensor<4xf32>, @s0, [{}]>
  }
  // expected-error @below {{the gradient of "offset" comes microbatch by microbatch, since it has a row for each sample of the batch, and is used whole: not supported yet by Schedule}}
  // expected-note @below {{give "offset" the shape of one sample, which is broadcast, or do not train it: train.freeze: [offset]}}
  par.run @f(%s) : (!x) -> ()
  par.return
}


// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
// expected-error @below {{has mesh #par.mesh<"tp"=2>, @s0 on the same ranks #par.mesh<"dp"=2>}}
par.stage @s1 <"tp"=2> ranks [0, 1]

// -----

!w0 = !par.dist<tensor<4xf32>, @s0, [{}]>
!w1 = !par.dist<tensor<4xf32>, @s1, [{"dp"}]>
par.stage @s0 <"dp"=2> ranks [0, 1]
par.stage @s1 <"dp"=2> ranks [0, 1]
// expected-error @below {{lies on @s1 in other parts than on @s0, which is on the same ranks: not supported yet by Schedule}}
par.variable @w frozen : tensor<4xf32> at [!w0, !w1]

// -----

!w0 = !par.dist<tensor<4xf32>, @s0, [{}]>
!w1 = !par.dist<tensor<4xf32>, @s1, [{"dp"}]>
par.stage @s0 <"dp"=2> ranks [0, 1]
par.stage @s1 <"dp"=2> ranks [0, 1]
par.variable @w frozen : tensor<4xf32>
par.step @eval() {
  %w0 = par.read @w : !w0
  // expected-error @below {{takes @w in other parts than another stage on the same ranks: not supported yet by Schedule}}
  %w1 = par.read @w : !w1
  par.return
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.stage @s1 <"dp"=2> ranks [0, 1]
// expected-error @below {{takes input "x" in other parts on another stage on the same ranks: not supported yet by Schedule}}
par.step @eval(%a: !par.dist<tensor<4xf32>, @s0, [{}]>, %b: !par.dist<tensor<4xf32>, @s1, [{"dp"}]>) attributes {inputs = ["x", "x"]} {
  par.return
}

// -----

par.stage @s0 <"dp"=3> ranks [0, 1, 2]
par.stage @s1 <"dp"=2> ranks [3, 4]
par.step @eval(%x: !par.dist<tensor<6xf32>, @s0, [{"dp"}]>) {
  // expected-error @below {{crosses to another mesh, and shards there are not made up of those here; -par-nest-transfers must come before}}
  %0 = par.transfer %x : <tensor<6xf32>, @s0, [{"dp"}]> to <tensor<6xf32>, @s1, [{"dp"}]>
  par.return
}

// -----

// The first of two stages begins another batch before backward has read values that forward wrote.
!s = !par.dist<tensor<f32>, @s0, []>
!t = !par.dist<tensor<f32>, @s1, []>
par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.variable @mean buffer : tensor<f32>
par.fragment @forward(%mean: tensor<f32>, %x: tensor<f32>) -> tensor<f32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.add %mean, %x : tensor<f32>
  par.return %0 : tensor<f32>
}
par.fragment @turn(%x: tensor<f32>) -> tensor<f32> attributes {stage = @s1, kind = #par.fragment_kind<backward>, local} {
  %0 = par.negate %x : tensor<f32>
  par.return %0 : tensor<f32>
}
par.fragment @backward(%mean: tensor<f32>, %d: tensor<f32>) -> tensor<f32> attributes {stage = @s0, kind = #par.fragment_kind<backward>, local} {
  %0 = par.multiply %mean, %d : tensor<f32>
  par.return %0 : tensor<f32>
}
par.step @train(%x: !par.dist<tensor<1xf32>, @s0, [{}]>) -> !s attributes {inputs = ["x"], outputs = ["y"], par.calls = 2 : i64} {
  // expected-error @below {{reads "mean" for batch 1 where the schedule's order has written it for 0: not supported yet by Schedule}}
  %mean = par.read @mean : !s
  %g:2 = par.loop 1 (%x) : (!par.dist<tensor<1xf32>, @s0, [{}]>) -> (!s, !s) {
  ^bb0(%i: tensor<i64>, %xi: !s):
    %a = par.run @forward(%mean, %xi) : (!s, !s) -> !s
    %b = par.transfer %a : !s to !t
    %c = par.run @turn(%b) : (!t) -> !t
    %d = par.transfer %c : !t to !s
    %e = par.run @backward(%mean, %d) : (!s, !s) -> !s
    par.yield [sum, sum] %a, %e : !s, !s
  }
  par.write %g#0 to @mean : !s
  par.return %g#1 : !s
}

// -----

par.stage @s0 <> ranks [0]
// expected-error @below {{has several calls between flushes and no loop: not supported yet by Schedule}}
par.step @train() attributes {par.calls = 2 : i64} {
  par.return
}

// -----

par.stage @s0 <> ranks [0]
par.variable @w parameter : tensor<4xf32>
par.variable @v parameter : tensor<4xf32>
!v = !par.dist<tensor<4xf32>, @s0, [{}]>
par.fragment @f(%w: tensor<4xf32>, %v: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.add %w, %v : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.step @train() attributes {par.calls = 4 : i64} {
  %w = par.read @w behind 1 : !v
  // expected-error @below {{has staleness 2, and another read of the same block 1: not supported yet by Schedule}}
  %v = par.read @v behind 2 : !v
  %s = par.loop 1 () : () -> !v {
  ^bb0(%i: tensor<i64>):
    %a = par.run @f(%w, %v) : (!v, !v) -> !v
    par.yield [sum] %a : !v
  }
  par.return
}
