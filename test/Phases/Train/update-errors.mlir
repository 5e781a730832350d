// AddOptimizer and ClipGradients refuse unsupported steps and settings.
// RUN: not par-opt %s --par-add-optimizer="kind=newton" 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not par-opt %s --par-add-optimizer="settings=beta1=0.5" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not par-opt %s --par-add-optimizer="settings=beta1" 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not par-opt %s --par-add-optimizer="lr-scales=x=1" 2>&1 | FileCheck %s --check-prefix=SETTING
// RUN: not par-opt %s --par-add-optimizer="decays=w" 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not par-opt %s --par-add-optimizer="kinds=x=adamw" 2>&1 | FileCheck %s --check-prefix=SETTING
// RUN: not par-opt %s --par-add-optimizer="own-settings=x:momentum=1" 2>&1 | FileCheck %s --check-prefix=SETTING
// RUN: not par-opt %s --par-add-optimizer="kinds=w=newton" 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not par-opt %s --par-add-optimizer="own-settings=w:beta1=0.5" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not par-opt %s --par-add-optimizer="states=fp16" 2>&1 | FileCheck %s --check-prefix=STATES
// RUN: not par-opt %s --par-add-optimizer="kind=adamw" 2>&1 | FileCheck %s --check-prefix=TAKEN
// RUN: not par-opt %s --par-clip-gradients="clip=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not par-opt %s --par-clip-gradients="clip=1" 2>&1 | FileCheck %s --check-prefix=CLIP
// RUN: not par-opt %s --par-clip-gradients="value=-2" 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not par-opt %s --par-clip-gradients="clip=1 value=2" 2>&1 | FileCheck %s --check-prefix=BOTH

// KIND: error: 'par.step' op has the optimizer "newton", expected one of adamw, {{.*}}momentum, {{.*}}sgd
// UNKNOWN: error: 'par.step' op has the setting "beta1", which par.sgd does not take
// TEXT: error: 'par.step' op settings has "beta1", expected name=number
// SETTING: error: 'par.step' op has a setting for @x, which is no parameter
// NUMBER: error: 'par.step' op decays has "w", expected parameter=number
// STATES: error: 'par.step' op keeps states in "fp16", expected f32 or bf16
// TAKEN: error: training needs a variable @w.m of its own
// TAKEN: note: the name is taken here
// NEGATIVE: error: 'par.step' op has the clipping norm -1.000000e+00, expected a positive number
// VALUE: error: 'par.step' op has the clipping value -2.000000e+00, expected a positive number
// BOTH: error: 'par.step' op has both a clipping norm, 1.000000e+00, and a clipping value, 2.000000e+00
// CLIP: error: training needs a variable @clip of its own
// CLIP: note: the name is taken here
par.variable @w parameter : tensor<f32>
par.variable @w.m parameter : tensor<f32>
par.variable @clip frozen : tensor<f32>
par.step @train() -> tensor<f32> {
  %w = par.read @w : tensor<f32>
  %one = par.constant dense<1.0> : tensor<f32>
  %ct = par.cotangent %w, %one : tensor<f32>
  %g = par.gradient %ct of @w : tensor<f32>
  par.return %w : tensor<f32>
}
