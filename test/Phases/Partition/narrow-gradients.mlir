// Gradients are summed in the requested types: in the loop, after it, and over microbatches; no other value is.
// RUN: par-opt %s --par-narrow-gradients=reduce=bf16 --par-verify-partition | FileCheck %s --check-prefixes=CHECK,REDUCE
// RUN: par-opt %s --par-narrow-gradients=accumulate=bf16 | FileCheck %s --check-prefixes=CHECK,ACCUMULATE
// RUN: par-opt %s --par-narrow-gradients="accumulate=bf16 reduce=bf16" | FileCheck %s --check-prefixes=CHECK,BOTH
// RUN: par-opt %s --par-check-phases="passes=par-narrow-gradients{accumulate=bf16 reduce=bf16}" -o /dev/null
// RUN: not par-opt %s --par-narrow-gradients=reduce=i8 2>&1 | FileCheck %s --check-prefix=FORMAT
// FORMAT: error: sums gradients in "i8", expected f32 or bf16

par.stage @s0 <"dp"=2> ranks [0, 1]
par.variable @v parameter : tensor<4xf32> at [!par.dist<tensor<4xf32>, @s0, [{"dp"}]>]
par.variable @w parameter : tensor<4xf32> at [!par.dist<tensor<4xf32>, @s0, [{}]>]

// The first result is a sum that every microbatch scatters, the second one is reduced after the loop, the third is no
// gradient.
// CHECK-LABEL: par.fragment @backward
// REDUCE: %[[N:.*]] = par.convert %{{.*}} : tensor<4xf32> to tensor<4xbf16>
// REDUCE: %[[S:.*]] = par.reduce_scatter sum %[[N]] {{.*}} -> tensor<2xbf16>
// REDUCE: %[[G:.*]] = par.convert %[[S]] : tensor<2xbf16> to tensor<2xf32>
// REDUCE: par.return %[[G]], %{{.*}}, %{{.*}} : tensor<2xf32>, tensor<4xf32>, tensor<f32>
// ACCUMULATE: %[[S:.*]] = par.reduce_scatter sum %{{.*}} -> tensor<2xf32>
// ACCUMULATE: par.convert %[[S]] : tensor<2xf32> to tensor<2xbf16>
// ACCUMULATE: par.return {{.*}} : tensor<2xbf16>, tensor<4xbf16>, tensor<f32>
// BOTH: %[[S:.*]] = par.reduce_scatter sum %{{.*}} -> tensor<2xbf16>
// BOTH: par.return %[[S]], %{{.*}} : tensor<2xbf16>, tensor<4xbf16>, tensor<f32>
par.fragment @backward(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<4xf32>, tensor<f32>) attributes {stage = @s0, kind = #par.fragment_kind<backward>, local} {
  %a = par.exp %x : tensor<4xf32>
  %b = par.tanh %x : tensor<4xf32>
  %c = par.reduce sum %x dims [0] : tensor<4xf32> to tensor<f32>
  %s = par.reduce_scatter sum %a dims [0] over ["dp"] : (tensor<4xf32>) -> tensor<2xf32>
  par.return %s, %b, %c : tensor<2xf32>, tensor<4xf32>, tensor<f32>
}

// A sum after the loop stays in 16 bits until the update converts it.
// CHECK-LABEL: par.fragment @train.s0.reduce0
// REDUCE-SAME: (%[[A:.*]]: tensor<4xf32>) -> tensor<4xbf16>
// REDUCE: %[[N:.*]] = par.convert %[[A]]
// REDUCE-NEXT: %[[S:.*]] = par.all_reduce sum %[[N]]
// REDUCE: par.return %[[S]] : tensor<4xbf16>
// ACCUMULATE-SAME: (%[[A:.*]]: tensor<4xbf16>) -> tensor<4xbf16>
// ACCUMULATE: par.all_reduce sum %{{.*}} : (tensor<4xf32>) -> tensor<4xf32>
// BOTH-SAME: (%[[A:.*]]: tensor<4xbf16>) -> tensor<4xbf16>
// BOTH: %[[S:.*]] = par.all_reduce sum %[[A]]
// BOTH: par.return %[[S]] : tensor<4xbf16>
par.fragment @train.s0.reduce0(%g: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<reduce>, local} {
  %0 = par.all_reduce sum %g over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// The loss is no gradient.
// CHECK-LABEL: par.fragment @train.s0.reduce1
// CHECK: par.all_reduce sum %{{.*}} : (tensor<f32>) -> tensor<f32>
par.fragment @train.s0.reduce1(%g: tensor<f32>) -> tensor<f32> attributes {stage = @s0, kind = #par.fragment_kind<reduce>, local} {
  %0 = par.all_reduce sum %g over ["dp"] : (tensor<f32>) -> tensor<f32>
  par.return %0 : tensor<f32>
}

// CHECK-LABEL: par.fragment @update
// REDUCE-SAME: (%{{.*}}: tensor<2xf32>, %[[G:.*]]: tensor<2xf32>, %{{.*}}: tensor<4xf32>, %[[H:.*]]: tensor<4xbf16>)
// ACCUMULATE-SAME: %[[G:.*]]: tensor<2xbf16>, %{{.*}}: tensor<4xf32>, %[[H:.*]]: tensor<4xbf16>)
// BOTH-SAME: %[[G:.*]]: tensor<2xbf16>, %{{.*}}: tensor<4xf32>, %[[H:.*]]: tensor<4xbf16>)
// CHECK: %[[W:.*]] = par.convert %[[H]] : tensor<4xbf16> to tensor<4xf32>
// CHECK: par.subtract %{{.*}}, %[[W]] : tensor<4xf32>
par.fragment @update(%v: tensor<2xf32>, %g: tensor<2xf32>, %w: tensor<4xf32>, %h: tensor<4xf32>) -> (tensor<2xf32>, tensor<4xf32>) attributes {stage = @s0, kind = #par.fragment_kind<update>, local} {
  %0 = par.subtract %v, %g : tensor<2xf32>
  %1 = par.subtract %w, %h : tensor<4xf32>
  par.return %0, %1 : tensor<2xf32>, tensor<4xf32>
}

par.step @train(%x: !par.dist<tensor<2x8xf32>, @s0, [{}, {"dp"}]>) -> !par.dist<tensor<f32>, @s0, []> attributes {inputs = ["x"], outputs = ["loss"]} {
  %v = par.read @v : !par.dist<tensor<4xf32>, @s0, [{"dp"}]>
  %w = par.read @w : !par.dist<tensor<4xf32>, @s0, [{}]>
  %g, %h, %l = par.loop 2 (%x) {labels = ["v", "w", ""]} : (!par.dist<tensor<2x8xf32>, @s0, [{}, {"dp"}]>)
      -> (!par.dist<tensor<4xf32>, @s0, [{"dp"}]>, !par.dist<tensor<4xf32>, @s0, [{}], unreduced={"dp"}>, !par.dist<tensor<f32>, @s0, [], unreduced={"dp"}>) {
  ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<8xf32>, @s0, [{"dp"}]>):
    %a, %b, %c = par.run @backward(%xi) : (!par.dist<tensor<8xf32>, @s0, [{"dp"}]>)
      -> (!par.dist<tensor<4xf32>, @s0, [{"dp"}]>, !par.dist<tensor<4xf32>, @s0, [{}], unreduced={"dp"}>, !par.dist<tensor<f32>, @s0, [], unreduced={"dp"}>)
    par.yield [sum, sum, sum] %a, %b, %c : !par.dist<tensor<4xf32>, @s0, [{"dp"}]>, !par.dist<tensor<4xf32>, @s0, [{}], unreduced={"dp"}>, !par.dist<tensor<f32>, @s0, [], unreduced={"dp"}>
  }
  %r = par.run @train.s0.reduce0(%h) : (!par.dist<tensor<4xf32>, @s0, [{}], unreduced={"dp"}>) -> !par.dist<tensor<4xf32>, @s0, [{}]>
  %loss = par.run @train.s0.reduce1(%l) : (!par.dist<tensor<f32>, @s0, [], unreduced={"dp"}>) -> !par.dist<tensor<f32>, @s0, []>
  %n, %m = par.run @update(%v, %g, %w, %r) : (!par.dist<tensor<4xf32>, @s0, [{"dp"}]>, !par.dist<tensor<4xf32>, @s0, [{"dp"}]>, !par.dist<tensor<4xf32>, @s0, [{}]>, !par.dist<tensor<4xf32>, @s0, [{}]>)
      -> (!par.dist<tensor<4xf32>, @s0, [{"dp"}]>, !par.dist<tensor<4xf32>, @s0, [{}]>)
  par.write %n to @v : !par.dist<tensor<4xf32>, @s0, [{"dp"}]>
  par.write %m to @w : !par.dist<tensor<4xf32>, @s0, [{}]>
  par.return %loss : !par.dist<tensor<f32>, @s0, []>
}
