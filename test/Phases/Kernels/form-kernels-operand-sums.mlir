// The gradient of a bias is computed with that of the weight: a library matmul sums one of its operands over the
// contracted dims, in f32 and if the sum's elements are contiguous in the operand.
// RUN: par-opt %s --par-form-kernels=device=cuda --par-verify-kernels | FileCheck %s
// RUN: par-opt %s --par-form-kernels | FileCheck %s --check-prefix=CPU
// RUN: par-opt %s --par-check-phases='passes=par-form-kernels{device=cuda}'

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @x input of "x" : tensor<2x4x8xbf16> as !par.dist<tensor<2x4x8xbf16>, @s0, [{}, {}, {}]>
  par.buffer @dy input of "dy" : tensor<2x4x2x8xbf16> as !par.dist<tensor<2x4x2x8xbf16>, @s0, [{}, {}, {}, {}]>
  par.buffer @dw temp : tensor<8x2x8xf32>
  par.buffer @dv input of "dv" : tensor<2x8x8xf32> as !par.dist<tensor<2x8x8xf32>, @s0, [{}, {}, {}]>
  par.buffer @dw16 temp : tensor<8x2x8xbf16>
  par.buffer @db input of "db" : tensor<2x8xf32> as !par.dist<tensor<2x8xf32>, @s0, [{}, {}]>
  par.buffer @other temp : tensor<2x2x8xf32>
  par.buffer @last input of "last" : tensor<8x2x4x8xbf16> as !par.dist<tensor<8x2x4x8xbf16>, @s0, [{}, {}, {}, {}]>
  par.buffer @dz temp : tensor<8x8xf32>
  par.buffer @ds temp : tensor<8xf32>

  // CPU-LABEL: par.block @right
  // CPU: par.launch @{{.*}} -> tensor<2x8xf32>
  // CPU: par.launch @{{.*}} -> tensor<8x2x8xf32>
  // CHECK-LABEL: par.block @right
  // CHECK: par.launch @dot.0({{.*}}) : (tensor<2x4x8xbf16>, tensor<2x4x2x8xbf16>) -> (tensor<8x2x8xf32>, tensor<2x8xf32>)
  // CHECK-NOT: par.launch
  // CHECK: par.store
  par.block @right {
    %x16 = par.load @x : tensor<2x4x8xbf16>
    %dy16 = par.load @dy : tensor<2x4x2x8xbf16>
    %x = par.convert %x16 : tensor<2x4x8xbf16> to tensor<2x4x8xf32>
    %dy = par.convert %dy16 : tensor<2x4x2x8xbf16> to tensor<2x4x2x8xf32>
    %b = par.reduce sum %dy dims [0, 1] : tensor<2x4x2x8xf32> to tensor<2x8xf32>
    %w = par.dot %x, %dy contracting [0, 1] x [0, 1] : (tensor<2x4x8xf32>, tensor<2x4x2x8xf32>) -> tensor<8x2x8xf32>
    par.store %b to @db : tensor<2x8xf32>
    par.store %w to @dw : tensor<8x2x8xf32>
  }

  // The weight may be transposed. An accumulated matmul has no place for the sum: the sum is a new value.
  // CHECK-LABEL: par.block @left
  // CHECK: %[[both:.*]]:2 = par.launch @dot.{{[0-9]+}}({{.*}}) : (tensor<2x4x2x8xbf16>, tensor<2x4x8xbf16>, tensor<2x8x8xf32>) -> (tensor<2x8x8xf32>, tensor<2x8xf32>)
  // CHECK: par.launch @add.{{[0-9]+}}({{.*}}%[[both]]#1
  // CHECK-NOT: par.launch
  // CHECK: par.store
  par.block @left {
    %x16 = par.load @x : tensor<2x4x8xbf16>
    %dy16 = par.load @dy : tensor<2x4x2x8xbf16>
    %before = par.load @dv : tensor<2x8x8xf32>
    %b0 = par.load @db : tensor<2x8xf32>
    %x = par.convert %x16 : tensor<2x4x8xbf16> to tensor<2x4x8xf32>
    %dy = par.convert %dy16 : tensor<2x4x2x8xbf16> to tensor<2x4x2x8xf32>
    %w = par.dot %dy, %x contracting [0, 1] x [0, 1] : (tensor<2x4x2x8xf32>, tensor<2x4x8xf32>) -> tensor<2x8x8xf32>
    %v = par.add %before, %w : tensor<2x8x8xf32>
    %b = par.reduce sum %dy dims [0, 1] : tensor<2x4x2x8xf32> to tensor<2x8xf32>
    %c = par.add %b0, %b : tensor<2x8xf32>
    par.store %c to @db : tensor<2x8xf32>
    par.store %v to @dv : tensor<2x8x8xf32>
  }

  // A sum over fewer dims is another one.
  // CHECK-LABEL: par.block @partly
  // CHECK-COUNT-2: par.launch
  par.block @partly {
    %x16 = par.load @x : tensor<2x4x8xbf16>
    %dy16 = par.load @dy : tensor<2x4x2x8xbf16>
    %x = par.convert %x16 : tensor<2x4x8xbf16> to tensor<2x4x8xf32>
    %dy = par.convert %dy16 : tensor<2x4x2x8xbf16> to tensor<2x4x2x8xf32>
    %w = par.dot %x, %dy contracting [0, 1] x [0, 1] : (tensor<2x4x8xf32>, tensor<2x4x2x8xf32>) -> tensor<8x2x8xf32>
    %b = par.reduce sum %dy dims [1] : tensor<2x4x2x8xf32> to tensor<2x2x8xf32>
    par.store %b to @other : tensor<2x2x8xf32>
    par.store %w to @dw : tensor<8x2x8xf32>
  }

  // Beside a result of bf16 the library's sum would be of bf16 too.
  // CHECK-LABEL: par.block @narrow
  // CHECK-COUNT-2: par.launch
  par.block @narrow {
    %x16 = par.load @x : tensor<2x4x8xbf16>
    %dy16 = par.load @dy : tensor<2x4x2x8xbf16>
    %x = par.convert %x16 : tensor<2x4x8xbf16> to tensor<2x4x8xf32>
    %dy = par.convert %dy16 : tensor<2x4x2x8xbf16> to tensor<2x4x2x8xf32>
    %w = par.dot %x, %dy contracting [0, 1] x [0, 1] : (tensor<2x4x8xf32>, tensor<2x4x2x8xf32>) -> tensor<8x2x8xf32>
    %w16 = par.convert %w : tensor<8x2x8xf32> to tensor<8x2x8xbf16>
    %b = par.reduce sum %dy dims [0, 1] : tensor<2x4x2x8xf32> to tensor<2x8xf32>
    par.store %b to @db : tensor<2x8xf32>
    par.store %w16 to @dw16 : tensor<8x2x8xbf16>
  }

  // Nor has it one along rows.
  // CHECK-LABEL: par.block @along
  // CHECK-COUNT-2: par.launch
  par.block @along {
    %z16 = par.load @last : tensor<8x2x4x8xbf16>
    %z = par.convert %z16 : tensor<8x2x4x8xbf16> to tensor<8x2x4x8xf32>
    %y16 = par.load @last : tensor<8x2x4x8xbf16>
    %y = par.convert %y16 : tensor<8x2x4x8xbf16> to tensor<8x2x4x8xf32>
    %w = par.dot %z, %y contracting [1, 2, 3] x [1, 2, 3] : (tensor<8x2x4x8xf32>, tensor<8x2x4x8xf32>) -> tensor<8x8xf32>
    %b = par.reduce sum %z dims [1, 2, 3] : tensor<8x2x4x8xf32> to tensor<8xf32>
    par.store %b to @ds : tensor<8xf32>
    par.store %w to @dz : tensor<8x8xf32>
  }

  // The matmul's operands may depend on the sum.
  // CHECK-LABEL: par.block @before
  // CHECK-COUNT-4: par.launch
  par.block @before {
    %x16 = par.load @x : tensor<2x4x8xbf16>
    %dy16 = par.load @dy : tensor<2x4x2x8xbf16>
    %dy = par.convert %dy16 : tensor<2x4x2x8xbf16> to tensor<2x4x2x8xf32>
    %b = par.reduce sum %dy dims [0, 1] : tensor<2x4x2x8xf32> to tensor<2x8xf32>
    %all = par.reduce sum %b dims [0] : tensor<2x8xf32> to tensor<8xf32>
    %row = par.broadcast_in_dim %all dims [2] : tensor<8xf32> to tensor<2x4x8xf32>
    %x32 = par.convert %x16 : tensor<2x4x8xbf16> to tensor<2x4x8xf32>
    %sum = par.add %x32, %row : tensor<2x4x8xf32>
    %sum16 = par.convert %sum : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
    %x = par.convert %sum16 : tensor<2x4x8xbf16> to tensor<2x4x8xf32>
    %w = par.dot %x, %dy contracting [0, 1] x [0, 1] : (tensor<2x4x8xf32>, tensor<2x4x2x8xf32>) -> tensor<8x2x8xf32>
    par.store %b to @db : tensor<2x8xf32>
    par.store %w to @dw : tensor<8x2x8xf32>
  }

  // Values of the buffers after each block.
  par.block @right_gives {
    %db = par.load @db : tensor<2x8xf32>
    par.fetch %db as "right.db" : tensor<2x8xf32> of !par.dist<tensor<2x8xf32>, @s0, [{}, {}]>
    %dw = par.load @dw : tensor<8x2x8xf32>
    par.fetch %dw as "right.dw" : tensor<8x2x8xf32> of !par.dist<tensor<8x2x8xf32>, @s0, [{}, {}, {}]>
  }
  par.block @left_gives {
    %db = par.load @db : tensor<2x8xf32>
    par.fetch %db as "left.db" : tensor<2x8xf32> of !par.dist<tensor<2x8xf32>, @s0, [{}, {}]>
    %dv = par.load @dv : tensor<2x8x8xf32>
    par.fetch %dv as "left.dv" : tensor<2x8x8xf32> of !par.dist<tensor<2x8x8xf32>, @s0, [{}, {}, {}]>
  }
  par.block @partly_gives {
    %other = par.load @other : tensor<2x2x8xf32>
    par.fetch %other as "partly.other" : tensor<2x2x8xf32> of !par.dist<tensor<2x2x8xf32>, @s0, [{}, {}, {}]>
    %dw = par.load @dw : tensor<8x2x8xf32>
    par.fetch %dw as "partly.dw" : tensor<8x2x8xf32> of !par.dist<tensor<8x2x8xf32>, @s0, [{}, {}, {}]>
  }
  par.block @narrow_gives {
    %db = par.load @db : tensor<2x8xf32>
    par.fetch %db as "narrow.db" : tensor<2x8xf32> of !par.dist<tensor<2x8xf32>, @s0, [{}, {}]>
    %dw16 = par.load @dw16 : tensor<8x2x8xbf16>
    par.fetch %dw16 as "narrow.dw16" : tensor<8x2x8xbf16> of !par.dist<tensor<8x2x8xbf16>, @s0, [{}, {}, {}]>
  }
  par.block @along_gives {
    %ds = par.load @ds : tensor<8xf32>
    par.fetch %ds as "along.ds" : tensor<8xf32> of !par.dist<tensor<8xf32>, @s0, [{}]>
    %dz = par.load @dz : tensor<8x8xf32>
    par.fetch %dz as "along.dz" : tensor<8x8xf32> of !par.dist<tensor<8x8xf32>, @s0, [{}, {}]>
  }
  par.block @before_gives {
    %db = par.load @db : tensor<2x8xf32>
    par.fetch %db as "before.db" : tensor<2x8xf32> of !par.dist<tensor<2x8xf32>, @s0, [{}, {}]>
    %dw = par.load @dw : tensor<8x2x8xf32>
    par.fetch %dw as "before.dw" : tensor<8x2x8xf32> of !par.dist<tensor<8x2x8xf32>, @s0, [{}, {}, {}]>
  }
  par.entry @all runs [@right, @right_gives, @left, @left_gives, @partly, @partly_gives, @narrow, @narrow_gives, @along, @along_gives, @before, @before_gives]
    microbatches [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}
