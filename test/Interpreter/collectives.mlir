// Local fragments run on all ranks in lock step; each collective by hand. x = [1, 2, 3, 4] over "tp".
// RUN: par-opt %s --par-interpret -o /dev/null | FileCheck %s
par.stage @s0 <"dp"=2, "tp"=2> ranks [0, 1, 2, 3]
par.variable @x frozen : tensor<4xf32> value dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
par.variable @o frozen : tensor<3xf32> value dense<[1.0, 2.0, 4.0]> : tensor<3xf32>

par.fragment @collect(%x: tensor<2xf32>, %o: tensor<2xf32>)
    -> (tensor<4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1xf32>, tensor<2x1xf32>, tensor<i64>, tensor<f32>)
    attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %gathered = par.all_gather %x dims [0] over ["tp"] : (tensor<2xf32>) -> tensor<4xf32>
  %sum = par.all_reduce sum %x over ["tp"] : (tensor<2xf32>) -> tensor<2xf32>
  %max = par.all_reduce max %x over ["tp"] : (tensor<2xf32>) -> tensor<2xf32>
  %scattered = par.reduce_scatter sum %x dims [0] over ["tp"] : (tensor<2xf32>) -> tensor<1xf32>
  %square = par.reshape %gathered : tensor<4xf32> to tensor<2x2xf32>
  // Row r of the whole on rank r, cut along dim 1 and joined along dim 0.
  %i = par.axis_index over ["tp"] : tensor<i64>
  %row = par.dynamic_slice %square at %i dim 0 size 1 : tensor<2x2xf32>, tensor<i64> to tensor<1x2xf32>
  %turned = par.all_to_all %row split [1] concat [0] over ["tp"] : (tensor<1x2xf32>) -> tensor<2x1xf32>
  %both = par.axis_index over ["dp", "tp"] : tensor<i64>
  %ranks = par.all_reduce sum %both over ["dp", "tp"] : (tensor<i64>) -> tensor<i64>
  // The shard of three elements over two ranks ends in padding, which a mask keeps out of the sum.
  %iota = par.iota dim 0 : tensor<2xi64>
  %two = par.constant dense<2> : tensor<i64>
  %first = par.multiply %i, %two : tensor<i64>
  %start = par.broadcast_in_dim %first dims [] : tensor<i64> to tensor<2xi64>
  %at = par.add %iota, %start : tensor<2xi64>
  %three = par.constant dense<3> : tensor<2xi64>
  %real = par.compare lt %at, %three : tensor<2xi64>
  %zero = par.constant dense<0.0> : tensor<2xf32>
  %kept = par.select %real, %o, %zero : tensor<2xi1>, tensor<2xf32>
  %part = par.reduce sum %kept dims [0] : tensor<2xf32> to tensor<f32>
  par.return %gathered, %sum, %max, %scattered, %turned, %ranks, %part
      : tensor<4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1xf32>, tensor<2x1xf32>, tensor<i64>, tensor<f32>
}

par.step @eval() -> (!par.dist<tensor<4xf32>, @s0, [{}]>, !par.dist<tensor<2xf32>, @s0, [{}]>,
    !par.dist<tensor<2xf32>, @s0, [{}]>, !par.dist<tensor<2xf32>, @s0, [{"tp"}]>, !par.dist<tensor<2x2xf32>, @s0, [{}, {"tp"}]>,
    !par.dist<tensor<i64>, @s0, []>, !par.dist<tensor<f32>, @s0, [], unreduced={"tp"}>)
    attributes {outputs = ["gathered", "sum", "max", "scattered", "turned", "ranks", "part"]} {
  %x = par.read @x : !par.dist<tensor<4xf32>, @s0, [{"tp"}]>
  %o = par.read @o : !par.dist<tensor<3xf32>, @s0, [{"tp"}]>
  // CHECK-DAG: "gathered" tensor<4xf32> 1 2 3 4
  // CHECK-DAG: "sum" tensor<2xf32> 4 6
  // CHECK-DAG: "max" tensor<2xf32> 3 4
  // CHECK-DAG: "scattered" tensor<2xf32> 4 6
  // CHECK-DAG: "turned" tensor<2x2xf32> 1 2 3 4
  // CHECK-DAG: "ranks" tensor<i64> 6
  // CHECK-DAG: "part" tensor<f32> 7
  %r:7 = par.run @collect(%x, %o)
      : (!par.dist<tensor<4xf32>, @s0, [{"tp"}]>, !par.dist<tensor<3xf32>, @s0, [{"tp"}]>)
      -> (!par.dist<tensor<4xf32>, @s0, [{}]>, !par.dist<tensor<2xf32>, @s0, [{}]>, !par.dist<tensor<2xf32>, @s0, [{}]>,
          !par.dist<tensor<2xf32>, @s0, [{"tp"}]>, !par.dist<tensor<2x2xf32>, @s0, [{}, {"tp"}]>,
          !par.dist<tensor<i64>, @s0, []>, !par.dist<tensor<f32>, @s0, [], unreduced={"tp"}>)
  par.return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6
      : !par.dist<tensor<4xf32>, @s0, [{}]>, !par.dist<tensor<2xf32>, @s0, [{}]>, !par.dist<tensor<2xf32>, @s0, [{}]>,
        !par.dist<tensor<2xf32>, @s0, [{"tp"}]>, !par.dist<tensor<2x2xf32>, @s0, [{}, {"tp"}]>,
        !par.dist<tensor<i64>, @s0, []>, !par.dist<tensor<f32>, @s0, [], unreduced={"tp"}>
}
