// A chain of 60 tensors is more than one kernel of a GPU, and one of a CPU.
// RUN: par-opt %s --par-form-kernels=device=cuda --par-verify-kernels | FileCheck %s
// RUN: par-opt %s --par-form-kernels | FileCheck %s --check-prefix=CPU
// RUN: par-opt %s --par-check-phases='passes=par-form-kernels{device=cuda}'
// CHECK-LABEL: par.block @chain
// CHECK: %[[HALF:.*]] = par.launch @add.0(
// CHECK: %[[WHOLE:.*]] = par.launch @add.1({{.*}}%[[HALF]]
// CHECK: par.fetch %[[WHOLE]]
// CPU-LABEL: par.block @chain
// CPU: par.launch @add.0(
// CPU-NOT: par.launch
par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @x0 input of "x0" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x1 input of "x1" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x2 input of "x2" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x3 input of "x3" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x4 input of "x4" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x5 input of "x5" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x6 input of "x6" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x7 input of "x7" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x8 input of "x8" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x9 input of "x9" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x10 input of "x10" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x11 input of "x11" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x12 input of "x12" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x13 input of "x13" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x14 input of "x14" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x15 input of "x15" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x16 input of "x16" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x17 input of "x17" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x18 input of "x18" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x19 input of "x19" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x20 input of "x20" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x21 input of "x21" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x22 input of "x22" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x23 input of "x23" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x24 input of "x24" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x25 input of "x25" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x26 input of "x26" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x27 input of "x27" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x28 input of "x28" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x29 input of "x29" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x30 input of "x30" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x31 input of "x31" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x32 input of "x32" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x33 input of "x33" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x34 input of "x34" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x35 input of "x35" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x36 input of "x36" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x37 input of "x37" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x38 input of "x38" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x39 input of "x39" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x40 input of "x40" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x41 input of "x41" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x42 input of "x42" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x43 input of "x43" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x44 input of "x44" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x45 input of "x45" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x46 input of "x46" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x47 input of "x47" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x48 input of "x48" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x49 input of "x49" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x50 input of "x50" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x51 input of "x51" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x52 input of "x52" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x53 input of "x53" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x54 input of "x54" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x55 input of "x55" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x56 input of "x56" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x57 input of "x57" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x58 input of "x58" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @x59 input of "x59" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.block @chain {
    %x0 = par.load @x0 : tensor<16xf32>
    %x1 = par.load @x1 : tensor<16xf32>
    %x2 = par.load @x2 : tensor<16xf32>
    %x3 = par.load @x3 : tensor<16xf32>
    %x4 = par.load @x4 : tensor<16xf32>
    %x5 = par.load @x5 : tensor<16xf32>
    %x6 = par.load @x6 : tensor<16xf32>
    %x7 = par.load @x7 : tensor<16xf32>
    %x8 = par.load @x8 : tensor<16xf32>
    %x9 = par.load @x9 : tensor<16xf32>
    %x10 = par.load @x10 : tensor<16xf32>
    %x11 = par.load @x11 : tensor<16xf32>
    %x12 = par.load @x12 : tensor<16xf32>
    %x13 = par.load @x13 : tensor<16xf32>
    %x14 = par.load @x14 : tensor<16xf32>
    %x15 = par.load @x15 : tensor<16xf32>
    %x16 = par.load @x16 : tensor<16xf32>
    %x17 = par.load @x17 : tensor<16xf32>
    %x18 = par.load @x18 : tensor<16xf32>
    %x19 = par.load @x19 : tensor<16xf32>
    %x20 = par.load @x20 : tensor<16xf32>
    %x21 = par.load @x21 : tensor<16xf32>
    %x22 = par.load @x22 : tensor<16xf32>
    %x23 = par.load @x23 : tensor<16xf32>
    %x24 = par.load @x24 : tensor<16xf32>
    %x25 = par.load @x25 : tensor<16xf32>
    %x26 = par.load @x26 : tensor<16xf32>
    %x27 = par.load @x27 : tensor<16xf32>
    %x28 = par.load @x28 : tensor<16xf32>
    %x29 = par.load @x29 : tensor<16xf32>
    %x30 = par.load @x30 : tensor<16xf32>
    %x31 = par.load @x31 : tensor<16xf32>
    %x32 = par.load @x32 : tensor<16xf32>
    %x33 = par.load @x33 : tensor<16xf32>
    %x34 = par.load @x34 : tensor<16xf32>
    %x35 = par.load @x35 : tensor<16xf32>
    %x36 = par.load @x36 : tensor<16xf32>
    %x37 = par.load @x37 : tensor<16xf32>
    %x38 = par.load @x38 : tensor<16xf32>
    %x39 = par.load @x39 : tensor<16xf32>
    %x40 = par.load @x40 : tensor<16xf32>
    %x41 = par.load @x41 : tensor<16xf32>
    %x42 = par.load @x42 : tensor<16xf32>
    %x43 = par.load @x43 : tensor<16xf32>
    %x44 = par.load @x44 : tensor<16xf32>
    %x45 = par.load @x45 : tensor<16xf32>
    %x46 = par.load @x46 : tensor<16xf32>
    %x47 = par.load @x47 : tensor<16xf32>
    %x48 = par.load @x48 : tensor<16xf32>
    %x49 = par.load @x49 : tensor<16xf32>
    %x50 = par.load @x50 : tensor<16xf32>
    %x51 = par.load @x51 : tensor<16xf32>
    %x52 = par.load @x52 : tensor<16xf32>
    %x53 = par.load @x53 : tensor<16xf32>
    %x54 = par.load @x54 : tensor<16xf32>
    %x55 = par.load @x55 : tensor<16xf32>
    %x56 = par.load @x56 : tensor<16xf32>
    %x57 = par.load @x57 : tensor<16xf32>
    %x58 = par.load @x58 : tensor<16xf32>
    %x59 = par.load @x59 : tensor<16xf32>
    %s1 = par.add %x0, %x1 : tensor<16xf32>
    %s2 = par.add %s1, %x2 : tensor<16xf32>
    %s3 = par.add %s2, %x3 : tensor<16xf32>
    %s4 = par.add %s3, %x4 : tensor<16xf32>
    %s5 = par.add %s4, %x5 : tensor<16xf32>
    %s6 = par.add %s5, %x6 : tensor<16xf32>
    %s7 = par.add %s6, %x7 : tensor<16xf32>
    %s8 = par.add %s7, %x8 : tensor<16xf32>
    %s9 = par.add %s8, %x9 : tensor<16xf32>
    %s10 = par.add %s9, %x10 : tensor<16xf32>
    %s11 = par.add %s10, %x11 : tensor<16xf32>
    %s12 = par.add %s11, %x12 : tensor<16xf32>
    %s13 = par.add %s12, %x13 : tensor<16xf32>
    %s14 = par.add %s13, %x14 : tensor<16xf32>
    %s15 = par.add %s14, %x15 : tensor<16xf32>
    %s16 = par.add %s15, %x16 : tensor<16xf32>
    %s17 = par.add %s16, %x17 : tensor<16xf32>
    %s18 = par.add %s17, %x18 : tensor<16xf32>
    %s19 = par.add %s18, %x19 : tensor<16xf32>
    %s20 = par.add %s19, %x20 : tensor<16xf32>
    %s21 = par.add %s20, %x21 : tensor<16xf32>
    %s22 = par.add %s21, %x22 : tensor<16xf32>
    %s23 = par.add %s22, %x23 : tensor<16xf32>
    %s24 = par.add %s23, %x24 : tensor<16xf32>
    %s25 = par.add %s24, %x25 : tensor<16xf32>
    %s26 = par.add %s25, %x26 : tensor<16xf32>
    %s27 = par.add %s26, %x27 : tensor<16xf32>
    %s28 = par.add %s27, %x28 : tensor<16xf32>
    %s29 = par.add %s28, %x29 : tensor<16xf32>
    %s30 = par.add %s29, %x30 : tensor<16xf32>
    %s31 = par.add %s30, %x31 : tensor<16xf32>
    %s32 = par.add %s31, %x32 : tensor<16xf32>
    %s33 = par.add %s32, %x33 : tensor<16xf32>
    %s34 = par.add %s33, %x34 : tensor<16xf32>
    %s35 = par.add %s34, %x35 : tensor<16xf32>
    %s36 = par.add %s35, %x36 : tensor<16xf32>
    %s37 = par.add %s36, %x37 : tensor<16xf32>
    %s38 = par.add %s37, %x38 : tensor<16xf32>
    %s39 = par.add %s38, %x39 : tensor<16xf32>
    %s40 = par.add %s39, %x40 : tensor<16xf32>
    %s41 = par.add %s40, %x41 : tensor<16xf32>
    %s42 = par.add %s41, %x42 : tensor<16xf32>
    %s43 = par.add %s42, %x43 : tensor<16xf32>
    %s44 = par.add %s43, %x44 : tensor<16xf32>
    %s45 = par.add %s44, %x45 : tensor<16xf32>
    %s46 = par.add %s45, %x46 : tensor<16xf32>
    %s47 = par.add %s46, %x47 : tensor<16xf32>
    %s48 = par.add %s47, %x48 : tensor<16xf32>
    %s49 = par.add %s48, %x49 : tensor<16xf32>
    %s50 = par.add %s49, %x50 : tensor<16xf32>
    %s51 = par.add %s50, %x51 : tensor<16xf32>
    %s52 = par.add %s51, %x52 : tensor<16xf32>
    %s53 = par.add %s52, %x53 : tensor<16xf32>
    %s54 = par.add %s53, %x54 : tensor<16xf32>
    %s55 = par.add %s54, %x55 : tensor<16xf32>
    %s56 = par.add %s55, %x56 : tensor<16xf32>
    %s57 = par.add %s56, %x57 : tensor<16xf32>
    %s58 = par.add %s57, %x58 : tensor<16xf32>
    %s59 = par.add %s58, %x59 : tensor<16xf32>
    par.fetch %s59 as "y" : tensor<16xf32> of !par.dist<tensor<16xf32>, @s0, [{}]>
  }
  par.entry @all runs [@chain] microbatches [0]
}
