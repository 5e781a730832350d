// RUN: par-opt %s --par-carry-state="pairs=sum=before,next=position" | FileCheck %s
// RUN: not par-opt %s --par-carry-state="pairs=none=before" 2>&1 | FileCheck %s --check-prefix=OUTPUT
// RUN: not par-opt %s --par-carry-state="pairs=sum=none" 2>&1 | FileCheck %s --check-prefix=INPUT
// RUN: not par-opt %s --par-carry-state="pairs=sum=position" 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not par-opt %s --par-carry-state="pairs=same=before" 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: sed 's/@predict/@eval/' %s | not par-opt --par-carry-state="pairs=sum=before" 2>&1 | FileCheck %s --check-prefix=EVAL
// RUN: par-opt %s --par-carry-state="pairs=sum=before,next=position" | par-opt --par-interpret="seed=1" -o /dev/null | FileCheck %s --check-prefix=CALL

// CHECK-DAG: par.variable @before carried : tensor<4x2xf32>
// CHECK-DAG: par.variable @position carried : tensor<i64>
// CHECK: par.step @predict(%[[X:.*]]: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) attributes {batch_dims = array<i64: 0>, inputs = ["x"], outputs = ["y", "same"]}
// CHECK-DAG: %[[B:.*]] = par.read @before batch 0 : tensor<4x2xf32>
// CHECK-DAG: %[[P:.*]] = par.read @position : tensor<i64>
// CHECK: %[[SUM:.*]] = par.add %[[X]], %[[B]]
// CHECK: %[[NEXT:.*]] = par.add %[[P]]
// CHECK: par.write %[[SUM]] to @before : tensor<4x2xf32>
// CHECK: par.write %[[NEXT]] to @position : tensor<i64>
// CHECK: par.return %{{.*}}, %[[X]] : tensor<4x2xf32>, tensor<4x2xf32>

// OUTPUT: carries "none" to "before", and has no output "none"
// INPUT: carries "sum" to "none", and has no input "none"
// TYPE: carries "sum", 'tensor<4x2xf32>', to "position", 'tensor<i64>'
// SAME: carries "same", which is an input or a parameter as it came in
// EVAL: has no @predict, the only step that carries outputs on to the next call

// CALL: predict output "y" tensor<4x2xf32> -1.58982 -1.88759
// CALL: predict variable "before" tensor<4x2xf32> 1.58982 1.88759
// CALL: predict variable "position" tensor<i64> 1
par.step @predict(%x: tensor<4x2xf32>, %b: tensor<4x2xf32>, %p: tensor<i64>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<i64>, tensor<4x2xf32>)
    attributes {batch_dims = array<i64: 0, 0, -1>, inputs = ["x", "before", "position"], outputs = ["y", "sum", "next", "same"]} {
  %0 = par.add %x, %b : tensor<4x2xf32>
  %1 = par.negate %0 : tensor<4x2xf32>
  %one = par.constant dense<1> : tensor<i64>
  %2 = par.add %p, %one : tensor<i64>
  par.return %1, %0, %2, %x : tensor<4x2xf32>, tensor<4x2xf32>, tensor<i64>, tensor<4x2xf32>
}
