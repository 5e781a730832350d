// Kernels for a GPU recompute values to save memory traffic, unlike those for a CPU, and have no more operands than
// registers hold. The results are the same.
// RUN: par-opt %s --par-form-kernels=device=cuda --par-verify-kernels | FileCheck %s
// RUN: par-opt %s --par-form-kernels | FileCheck %s --check-prefix=CPU
// RUN: par-opt %s --par-check-phases='passes=par-form-kernels{device=cuda}'

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @x input of "x" : tensor<4x8xf32> as !par.dist<tensor<4x8xf32>, @s0, [{}, {}]>
  par.buffer @y temp : tensor<4x8xf32>
  par.buffer @z temp : tensor<4x8xf32>
  par.buffer @w input of "w" : tensor<8x8xf32> as !par.dist<tensor<8x8xf32>, @s0, [{}, {}]>
  par.buffer @b input of "b" : tensor<4x8xbf16> as !par.dist<tensor<4x8xbf16>, @s0, [{}, {}]>
  par.buffer @c input of "c" : tensor<4x8xbf16> as !par.dist<tensor<4x8xbf16>, @s0, [{}, {}]>
  par.buffer @v input of "v" : tensor<8x8xbf16> as !par.dist<tensor<8x8xbf16>, @s0, [{}, {}]>
  par.buffer @g input of "g" : tensor<8x8xf32> as !par.dist<tensor<8x8xf32>, @s0, [{}, {}]>
  par.buffer @image input of "image" : tensor<2x4x8x8xbf16> as !par.dist<tensor<2x4x8x8xbf16>, @s0, [{}, {}, {}, {}]>
  par.buffer @filter input of "filter" : tensor<6x4x3x3xbf16> as !par.dist<tensor<6x4x3x3xbf16>, @s0, [{}, {}, {}, {}]>
  par.buffer @features input of "features" : tensor<2x6x6x6xbf16> as !par.dist<tensor<2x6x6x6xbf16>, @s0, [{}, {}, {}, {}]>
  par.buffer @wide input of "wide" : tensor<6x4x3x3xf32> as !par.dist<tensor<6x4x3x3xf32>, @s0, [{}, {}, {}, {}]>
  par.buffer @widefeatures temp : tensor<2x6x6x6xf32>
  par.buffer @tall input of "tall" : tensor<1024x96xf32> as !par.dist<tensor<1024x96xf32>, @s0, [{}, {}]>
  par.buffer @long input of "long" : tensor<65536xf32> as !par.dist<tensor<65536xf32>, @s0, [{}]>
  par.buffer @columns temp : tensor<96xf32>
  par.buffer @one temp : tensor<f32>
  par.buffer @other temp : tensor<f32>

  // A matmul and the ops after it use two values of x: the latter recompute both from x.
  // CHECK-LABEL: par.block @again
  // CHECK: %[[X:.*]] = par.load @x
  // CHECK: %[[E:.*]] = par.launch @{{.*}}(%[[X]]) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: %[[D:.*]] = par.launch @dot.{{[0-9]+}}(%[[E]],
  // CHECK: par.launch @{{.*}}(%[[D]], %[[X]]) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CPU-LABEL: par.block @again
  // CPU: par.launch @{{.*}}(%{{.*}}) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  par.block @again {
    %x = par.load @x : tensor<4x8xf32>
    %w = par.load @w : tensor<8x8xf32>
    %e = par.exp %x : tensor<4x8xf32>
    %t = par.tanh %e : tensor<4x8xf32>
    %d = par.dot %e, %w contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %0 = par.multiply %d, %e : tensor<4x8xf32>
    %1 = par.add %0, %t : tensor<4x8xf32>
    par.store %1 to @y : tensor<4x8xf32>
  }

  // Not where the buffer that it would be computed from is written before it is read again.
  // CHECK-LABEL: par.block @stored
  // CHECK: par.launch @{{.*}}(%{{.*}}) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  par.block @stored {
    %x = par.load @x : tensor<4x8xf32>
    %w = par.load @w : tensor<8x8xf32>
    %e = par.exp %x : tensor<4x8xf32>
    %t = par.tanh %e : tensor<4x8xf32>
    %d = par.dot %e, %w contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    par.store %d to @x : tensor<4x8xf32>
    %0 = par.multiply %d, %e : tensor<4x8xf32>
    %1 = par.add %0, %t : tensor<4x8xf32>
    par.store %1 to @y : tensor<4x8xf32>
  }

  // A narrow constant is none that two chains share a kernel for.
  // CHECK-LABEL: par.block @constant
  // CHECK-COUNT-2: par.launch @{{.*}} : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  // CPU-LABEL: par.block @constant
  // CPU: par.launch @{{.*}} : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  par.block @constant {
    %b = par.load @b : tensor<4x8xbf16>
    %c = par.load @c : tensor<4x8xbf16>
    %half = par.constant dense<0.5> : tensor<4x8xf32>
    %narrow = par.convert %half : tensor<4x8xf32> to tensor<4x8xbf16>
    %h = par.convert %narrow : tensor<4x8xbf16> to tensor<4x8xf32>
    %bw = par.convert %b : tensor<4x8xbf16> to tensor<4x8xf32>
    %cw = par.convert %c : tensor<4x8xbf16> to tensor<4x8xf32>
    %0 = par.multiply %bw, %h : tensor<4x8xf32>
    %1 = par.add %cw, %h : tensor<4x8xf32>
    par.store %0 to @y : tensor<4x8xf32>
    par.store %1 to @z : tensor<4x8xf32>
  }

  // Matmuls read bf16 without a convert, and write it if the result is converted; accumulators stay f32.
  // CHECK-LABEL: par.block @narrow
  // CHECK-COUNT-3: par.load
  // CHECK-NEXT: %[[D:.*]] = par.launch @dot.{{[0-9]+}}({{.*}}) : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
  // CHECK-NEXT: par.store %[[D]] to @c
  // CHECK-NEXT: %[[G:.*]] = par.launch @dot.{{[0-9]+}}({{.*}}) : (tensor<4x8xbf16>, tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK-NEXT: par.store %[[G]] to @g
  // CPU-LABEL: par.block @narrow
  // CPU: par.launch @dot.{{[0-9]+}}({{.*}}) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  par.block @narrow {
    %b = par.load @b : tensor<4x8xbf16>
    %v = par.load @v : tensor<8x8xbf16>
    %sum = par.load @g : tensor<8x8xf32>
    %bw = par.convert %b : tensor<4x8xbf16> to tensor<4x8xf32>
    %vw = par.convert %v : tensor<8x8xbf16> to tensor<8x8xf32>
    %turned = par.transpose %vw [1, 0] : tensor<8x8xf32> to tensor<8x8xf32>
    %d = par.dot %bw, %turned contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %c = par.convert %d : tensor<4x8xf32> to tensor<4x8xbf16>
    par.store %c to @c : tensor<4x8xbf16>
    %g = par.dot %bw, %bw contracting [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %all = par.add %sum, %g : tensor<8x8xf32>
    par.store %all to @g : tensor<8x8xf32>
  }

  // Three blocks would add up 96 columns, one a whole tensor: many add up parts first.
  // CHECK-LABEL: par.block @sums
  // CHECK: par.launch @{{.*}} : (tensor<1024x96xf32>) -> tensor<16x96xf32>
  // CHECK: par.launch @{{.*}} : (tensor<16x96xf32>) -> tensor<96xf32>
  // CHECK: par.launch @{{.*}} : (tensor<1024x96xf32>) -> tensor<1024xf32>
  // CHECK: par.launch @{{.*}} : (tensor<1024xf32>) -> tensor<f32>
  // CHECK: par.launch @{{.*}} : (tensor<65536xf32>) -> tensor<32xf32>
  // CHECK: par.launch @{{.*}} : (tensor<32xf32>) -> tensor<f32>
  // CPU-LABEL: par.block @sums
  // CPU: par.launch @{{.*}} : (tensor<65536xf32>) -> tensor<f32>
  par.block @sums {
    %tall = par.load @tall : tensor<1024x96xf32>
    %long = par.load @long : tensor<65536xf32>
    %0 = par.reduce sum %tall dims [0] : tensor<1024x96xf32> to tensor<96xf32>
    %1 = par.exp %tall : tensor<1024x96xf32>
    %2 = par.reduce max %1 dims [0, 1] : tensor<1024x96xf32> to tensor<f32>
    %3 = par.reduce sum %long dims [0] : tensor<65536xf32> to tensor<f32>
    par.store %0 to @columns : tensor<96xf32>
    par.store %2 to @one : tensor<f32>
    par.store %3 to @other : tensor<f32>
  }

  // Convolutions, too; their library has no f32 results of 16-bit operands, so results are rounded. A rounded result is
  // not converted again.
  // CHECK-LABEL: par.block @convolutions
  // CHECK-COUNT-4: par.load
  // CHECK-NEXT: %[[Y:.*]] = par.launch @convolution.{{[0-9]+}}({{.*}}) : (tensor<2x4x8x8xbf16>, tensor<6x4x3x3xbf16>) -> tensor<2x6x6x6xbf16>
  // CHECK-NEXT: par.store %[[Y]] to @features
  // CHECK-NEXT: %[[DX:.*]] = par.launch @convolution_input_grad.{{[0-9]+}}({{.*}}) : (tensor<2x6x6x6xbf16>, tensor<6x4x3x3xbf16>) -> tensor<2x4x8x8xbf16>
  // CHECK-NEXT: par.store %[[DX]] to @image
  // CHECK-NEXT: %[[DW:.*]] = par.launch @convolution_filter_grad.{{[0-9]+}}({{.*}}) : (tensor<2x4x8x8xbf16>, tensor<2x6x6x6xbf16>) -> tensor<6x4x3x3xbf16>
  // CHECK-NEXT: %[[SUM:.*]] = par.launch @{{.*}}(%{{.*}}, %[[DW]]) : (tensor<6x4x3x3xf32>, tensor<6x4x3x3xbf16>) -> tensor<6x4x3x3xf32>
  // CHECK-NEXT: par.store %[[SUM]] to @wide
  // CHECK-NEXT: par.store %[[DW]] to @filter
  // CPU-LABEL: par.block @convolutions
  // CPU: par.launch @convolution.{{[0-9]+}}({{.*}}) : (tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x6x6xf32>
  // CPU: par.launch @convolution_input_grad.{{[0-9]+}}({{.*}}) : (tensor<2x6x6x6xf32>, tensor<6x4x3x3xf32>) -> tensor<2x4x8x8xf32>
  // CPU: par.launch @convolution_filter_grad.{{[0-9]+}}({{.*}}) : (tensor<2x4x8x8xf32>, tensor<2x6x6x6xf32>) -> tensor<6x4x3x3xf32>
  par.block @convolutions {
    %x = par.load @image : tensor<2x4x8x8xbf16>
    %w = par.load @filter : tensor<6x4x3x3xbf16>
    %dy = par.load @features : tensor<2x6x6x6xbf16>
    %sum = par.load @wide : tensor<6x4x3x3xf32>
    %xw = par.convert %x : tensor<2x4x8x8xbf16> to tensor<2x4x8x8xf32>
    %ww = par.convert %w : tensor<6x4x3x3xbf16> to tensor<6x4x3x3xf32>
    %dyw = par.convert %dy : tensor<2x6x6x6xbf16> to tensor<2x6x6x6xf32>
    %y = par.convolution %xw, %ww strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1] groups 1
      : (tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x6x6xf32>
    %yn = par.convert %y : tensor<2x6x6x6xf32> to tensor<2x6x6x6xbf16>
    par.store %yn to @features : tensor<2x6x6x6xbf16>
    %dx = par.convolution_input_grad %dyw, %ww strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1] groups 1
      : (tensor<2x6x6x6xf32>, tensor<6x4x3x3xf32>) -> tensor<2x4x8x8xf32>
    %dxn = par.convert %dx : tensor<2x4x8x8xf32> to tensor<2x4x8x8xbf16>
    par.store %dxn to @image : tensor<2x4x8x8xbf16>
    %dw = par.convolution_filter_grad %xw, %dyw strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1] groups 1
      : (tensor<2x4x8x8xf32>, tensor<2x6x6x6xf32>) -> tensor<6x4x3x3xf32>
    %all = par.add %sum, %dw : tensor<6x4x3x3xf32>
    par.store %all to @wide : tensor<6x4x3x3xf32>
    %dwn = par.convert %dw : tensor<6x4x3x3xf32> to tensor<6x4x3x3xbf16>
    par.store %dwn to @filter : tensor<6x4x3x3xbf16>
  }

  // One operand in f32: in f32.
  // CHECK-LABEL: par.block @mixed
  // CHECK: par.launch @convolution.{{[0-9]+}}({{.*}}) : (tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x6x6xf32>
  par.block @mixed {
    %x = par.load @image : tensor<2x4x8x8xbf16>
    %w = par.load @wide : tensor<6x4x3x3xf32>
    %xw = par.convert %x : tensor<2x4x8x8xbf16> to tensor<2x4x8x8xf32>
    %y = par.convolution %xw, %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1] groups 1
      : (tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x6x6xf32>
    par.store %y to @widefeatures : tensor<2x6x6x6xf32>
  }

  // Values of the buffers after each block.
  par.block @again_gives {
    %y = par.load @y : tensor<4x8xf32>
    par.fetch %y as "again.y" : tensor<4x8xf32> of !par.dist<tensor<4x8xf32>, @s0, [{}, {}]>
  }
  par.block @stored_gives {
    %x = par.load @x : tensor<4x8xf32>
    par.fetch %x as "stored.x" : tensor<4x8xf32> of !par.dist<tensor<4x8xf32>, @s0, [{}, {}]>
    %y = par.load @y : tensor<4x8xf32>
    par.fetch %y as "stored.y" : tensor<4x8xf32> of !par.dist<tensor<4x8xf32>, @s0, [{}, {}]>
  }
  par.block @constant_gives {
    %y = par.load @y : tensor<4x8xf32>
    par.fetch %y as "constant.y" : tensor<4x8xf32> of !par.dist<tensor<4x8xf32>, @s0, [{}, {}]>
    %z = par.load @z : tensor<4x8xf32>
    par.fetch %z as "constant.z" : tensor<4x8xf32> of !par.dist<tensor<4x8xf32>, @s0, [{}, {}]>
  }
  par.block @narrow_gives {
    %c = par.load @c : tensor<4x8xbf16>
    par.fetch %c as "narrow.c" : tensor<4x8xbf16> of !par.dist<tensor<4x8xbf16>, @s0, [{}, {}]>
    %g = par.load @g : tensor<8x8xf32>
    par.fetch %g as "narrow.g" : tensor<8x8xf32> of !par.dist<tensor<8x8xf32>, @s0, [{}, {}]>
  }
  par.block @sums_gives {
    %columns = par.load @columns : tensor<96xf32>
    par.fetch %columns as "sums.columns" : tensor<96xf32> of !par.dist<tensor<96xf32>, @s0, [{}]>
    %one = par.load @one : tensor<f32>
    par.fetch %one as "sums.one" : tensor<f32> of !par.dist<tensor<f32>, @s0, []>
    %other = par.load @other : tensor<f32>
    par.fetch %other as "sums.other" : tensor<f32> of !par.dist<tensor<f32>, @s0, []>
  }
  par.block @convolutions_gives {
    %features = par.load @features : tensor<2x6x6x6xbf16>
    par.fetch %features as "convolutions.features" : tensor<2x6x6x6xbf16> of !par.dist<tensor<2x6x6x6xbf16>, @s0, [{}, {}, {}, {}]>
    %image = par.load @image : tensor<2x4x8x8xbf16>
    par.fetch %image as "convolutions.image" : tensor<2x4x8x8xbf16> of !par.dist<tensor<2x4x8x8xbf16>, @s0, [{}, {}, {}, {}]>
    %wide = par.load @wide : tensor<6x4x3x3xf32>
    par.fetch %wide as "convolutions.wide" : tensor<6x4x3x3xf32> of !par.dist<tensor<6x4x3x3xf32>, @s0, [{}, {}, {}, {}]>
    %filter = par.load @filter : tensor<6x4x3x3xbf16>
    par.fetch %filter as "convolutions.filter" : tensor<6x4x3x3xbf16> of !par.dist<tensor<6x4x3x3xbf16>, @s0, [{}, {}, {}, {}]>
  }
  par.block @mixed_gives {
    %widefeatures = par.load @widefeatures : tensor<2x6x6x6xf32>
    par.fetch %widefeatures as "mixed.widefeatures" : tensor<2x6x6x6xf32> of !par.dist<tensor<2x6x6x6xf32>, @s0, [{}, {}, {}, {}]>
  }
  par.entry @all runs [@again, @again_gives, @stored, @stored_gives, @constant, @constant_gives, @narrow, @narrow_gives, @sums, @sums_gives, @convolutions, @convolutions_gives, @mixed, @mixed_gives]
    microbatches [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}
