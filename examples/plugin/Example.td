// A dialect of one op and one optimizer. Passes of Par ask the ops' interfaces, so that no pass is touched.
include "par/Dialect/Interfaces/Cost.td"
include "par/Dialect/Interfaces/Decomposable.td"
include "par/Dialect/Interfaces/Differentiable.td"
include "par/Dialect/Interfaces/Interpretable.td"
include "par/Dialect/Interfaces/Optimizer.td"
include "par/Dialect/Interfaces/ShardingRule.td"
include "par/Plugin/TensorOp.td"

def Example_Dialect : Dialect {
  let name = "example";
  let cppNamespace = "::example";
  let dependentDialects = ["::par::ParDialect"];
}

// Facts that every op of a step has: how its dims correspond, its meaning on numbers, its meaning in Par's own ops
// (from which its kernel is made), and its cost.
class Example_Op<string name, dag ins_, dag outs_, list<Trait> more>
  : Par_PluginTensorOp<Example_Dialect, name, ins_, outs_, !listconcat(more, [
      DeclareOpInterfaceMethods<ShardingRuleOpInterface>, DeclareOpInterfaceMethods<InterpretableOpInterface>,
      DeclareOpInterfaceMethods<DecomposableOpInterface>, DeclareOpInterfaceMethods<CostOpInterface>])>;

def Example_CubeOp : Example_Op<"cube",
    (ins Par_FloatTensor:$operand, DefaultValuedAttr<F64Attr, "1.0">:$scale), (outs Par_FloatTensor:$result),
    [SameOperandsAndResultType, DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "scale x^3; the ONNX node example::cube";
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
}

// Operands in the order weight, gradient, states, learning rate; results weight, states.
def Example_SignMomentumOp : Example_Op<"sign_momentum",
    (ins Par_FloatTensor:$weight, Par_FloatTensor:$gradient, Par_FloatTensor:$momentum, Par_FloatTensor:$lr,
         DefaultValuedAttr<F64Attr, "0.9">:$beta, F64Attr:$weight_decay),
    (outs Par_FloatTensor:$new_weight, Par_FloatTensor:$new_momentum),
    [DeclareOpInterfaceMethods<OptimizerOpInterface>, AllTypesMatch<["weight", "new_weight"]>,
     AllTypesMatch<["momentum", "new_momentum"]>, AllShapesMatch<["weight", "gradient", "momentum"]>]> {
  let summary = "a step by the sign of a moving average: m = beta m + (1 - beta) g; w -= lr (sign(m) + weight_decay w)";
  let assemblyFormat = [{
    $weight `,` $gradient `,` $momentum `,` $lr attr-dict `:` type($weight) `,` type($gradient) `,` type($momentum) `,`
    type($lr)}];
}
