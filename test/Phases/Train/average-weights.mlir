// Each parameter has an average beside its states, which evaluations may read (values: test/Models/torch_keys.py).
// DEFINE: %{train} = par-opt --par-differentiate --par-add-optimizer
// DEFINE: %{check} = FileCheck %s --check-prefix
// RUN: %{train} %s --par-average-weights=decay=0.75 --par-verify-train | FileCheck %s
// RUN: %{train} %s "--par-average-weights=decay=0.75 eval=true" | %{check}=EVAL
// RUN: not %{train} %s --par-average-weights=decay=1.5 2>&1 | %{check}=DECAY
// RUN: sed -e 's/@b /@w.ema /' %s | not %{train} --par-average-weights 2>&1 | %{check}=TAKEN

// CHECK: par.variable @w.ema state of @w : tensor<f32>
// CHECK-LABEL: par.step @train
// CHECK-DAG: par.write %{{.*}} to @averages
// CHECK-DAG: par.write %{{.*}} to @w.ema
// EVAL-LABEL: par.step @eval
// EVAL-NOT: par.read @w :
// EVAL: par.read @w.ema
// EVAL: par.step @train
// DECAY: error: {{.*}} averages weights with the decay 1.5{{.*}}, expected one from 0 to 1
// TAKEN: error: training needs a variable @w.ema of its own
// TAKEN: note: the name is taken here
par.variable @w parameter : tensor<f32> value dense<0.5> : tensor<f32>
par.variable @b buffer : tensor<f32> value dense<1.0> : tensor<f32>
par.step @eval() -> tensor<f32> attributes {outputs = ["loss"]} {
  %w = par.read @w : tensor<f32>
  %b = par.read @b : tensor<f32>
  %l = par.multiply %w, %b : tensor<f32>
  par.return %l : tensor<f32>
}
