// Three calls on values from files, by hand: y = w . x, then w - x. Missing and unlike values are errors.
// RUN: %python %S/Inputs/write-values.py %t.w '{"w": ["F32", [2], "f", [1, 2]]}'
// RUN: %python %S/Inputs/write-values.py %t.x '{"x": ["F64", [3, 2], "d", [1, 1, 2, 0, 0.5, 4]]}'
// RUN: par-opt %s --par-interpret='values=%t.w,%t.x steps=3' -o /dev/null | FileCheck %s
// RUN: not par-opt %s --par-interpret='values=%t.w,%t.x steps=4' -o /dev/null 2>&1 | FileCheck %s --check-prefix=SHORT
// RUN: not par-opt %s --par-interpret='values=%t.w' -o /dev/null 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not par-opt %s --par-interpret='values=%t.x' -o /dev/null 2>&1 | FileCheck %s --check-prefix=VARIABLE
// RUN: not par-opt %s --par-interpret='values=%t.none' -o /dev/null 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not par-opt %s --par-interpret='values=%s' -o /dev/null 2>&1 | FileCheck %s --check-prefix=FORMAT
// RUN: %python %S/Inputs/write-values.py %t.i '{"x": ["I64", [2], "q", [1, 1]]}'
// RUN: not par-opt %s --par-interpret='values=%t.w,%t.i' -o /dev/null 2>&1 | FileCheck %s --check-prefix=INTEGERS
// RUN: %python %S/Inputs/write-values.py %t.w3 '{"w": ["F32", [3], "f", [1, 2, 3]]}'
// RUN: not par-opt %s --par-interpret='values=%t.w3' -o /dev/null 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: %python %S/Inputs/write-values.py %t.half '{"w": ["F16", [2], "h", [1, 2]]}'
// RUN: not par-opt %s --par-interpret='values=%t.half' -o /dev/null 2>&1 | FileCheck %s --check-prefix=ARRAY
// RUN: %python %S/Inputs/write-values.py %t.long '{"w": ["F32", [3], "f", [1, 2]]}'
// RUN: not par-opt %s --par-interpret='values=%t.long' -o /dev/null 2>&1 | FileCheck %s --check-prefix=LONG

// CHECK: step call 0 output "y" tensor<f32> 3
// CHECK-NEXT: step call 1 output "y" tensor<f32> 0
// CHECK-NEXT: step call 2 output "y" tensor<f32> 3
// CHECK-NEXT: step norm "w" 3.905124837953327
// SHORT: error: input "x" has 6 elements, call 3 takes those up to 8
// ABSENT: error: input "x", 'tensor<2xf32>', is not in the files of values
// VARIABLE: error: variable "w" has no value, and is not in the files of values
// NONE: error: {{.*}}.none: No such file or directory
// FORMAT: error: {{.*}}interpret-values.mlir: header of {{[0-9]+}} bytes does not fit into the file of {{[0-9]+}}
// INTEGERS: error: input "x", 'tensor<2xf32>', has another element type in the files of values
// SHAPE: error: variable "w", 'tensor<2xf32>', is 'tensor<3xf32>' in the files of values
// LONG: error: {{.*}}.long: tensor "w" says bytes [0, {{[0-9]+}}) of {{[0-9]+}}, and its shape needs {{[0-9]+}}
// ARRAY: error: {{.*}}: array "w" is not of F32, F64, I32, I64 or BOOL
par.variable @w parameter : tensor<2xf32>
par.step @step(%x: tensor<2xf32>) -> tensor<f32> attributes {inputs = ["x"], outputs = ["y"]} {
  %w = par.read @w : tensor<2xf32>
  %p = par.multiply %w, %x : tensor<2xf32>
  %y = par.reduce sum %p dims [0] : tensor<2xf32> to tensor<f32>
  %n = par.subtract %w, %x : tensor<2xf32>
  par.write %n to @w : tensor<2xf32>
  par.return %y : tensor<f32>
}
