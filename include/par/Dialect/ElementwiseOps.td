#ifndef PAR_DIALECT_ELEMENTWISEOPS_TD
#define PAR_DIALECT_ELEMENTWISEOPS_TD

include "par/Dialect/Types.td"

// Elementwise ops: operands and results have one shape; nothing broadcasts implicitly.

class Par_UnaryOp<string mnemonic, Type type, string meaning>
    : Par_TensorOp<mnemonic, (ins type:$operand), (outs type:$result), [SameOperandsAndResultType, Elementwise]> {
  let summary = meaning;
  let description = "Example: `%1 = par." # mnemonic # " %0 : tensor<4xf32>`";
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}
def Par_NegateOp : Par_UnaryOp<"negate", Par_NumberTensor, "-x">;
def Par_AbsOp : Par_UnaryOp<"abs", Par_NumberTensor, "|x|">;
def Par_SignOp : Par_UnaryOp<"sign", Par_NumberTensor, "-1, 0 or 1; NaN stays NaN">;
def Par_ExpOp : Par_UnaryOp<"exp", Par_FloatTensor, "e^x">;
def Par_LogOp : Par_UnaryOp<"log", Par_FloatTensor, "natural logarithm">;
def Par_SqrtOp : Par_UnaryOp<"sqrt", Par_FloatTensor, "square root">;
def Par_RsqrtOp : Par_UnaryOp<"rsqrt", Par_FloatTensor, "1 / sqrt(x)">;
def Par_ReciprocalOp : Par_UnaryOp<"reciprocal", Par_FloatTensor, "1 / x">;
def Par_TanhOp : Par_UnaryOp<"tanh", Par_FloatTensor, "hyperbolic tangent">;
def Par_ErfOp : Par_UnaryOp<"erf", Par_FloatTensor, "error function">;
def Par_SigmoidOp : Par_UnaryOp<"sigmoid", Par_FloatTensor, "1 / (1 + e^-x)">;
def Par_SinOp : Par_UnaryOp<"sin", Par_FloatTensor, "sine">;
def Par_CosOp : Par_UnaryOp<"cos", Par_FloatTensor, "cosine">;
def Par_AtanOp : Par_UnaryOp<"atan", Par_FloatTensor, "inverse tangent, within [-pi / 2, pi / 2]">;
def Par_FloorOp : Par_UnaryOp<"floor", Par_FloatTensor, "largest integer not above x">;
def Par_CeilOp : Par_UnaryOp<"ceil", Par_FloatTensor, "smallest integer not below x">;
def Par_RoundOp : Par_UnaryOp<"round", Par_FloatTensor, "nearest integer; the even one of two">;
def Par_NotOp : Par_UnaryOp<"not", Par_IntTensor, "bitwise complement; logical negation of i1">;

class Par_TestOp<string mnemonic, string meaning>
    : Par_TensorOp<mnemonic, (ins Par_FloatTensor:$operand), (outs Par_BoolTensor:$result),
                   [Elementwise, SameOperandsAndResultShape, InferTypeOpAdaptor]> {
  let summary = meaning;
  let description = "Example: `%1 = par." # mnemonic # " %0 : tensor<4xf32>` gives a `tensor<4xi1>`";
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
}
def Par_IsNanOp : Par_TestOp<"is_nan", "true where x is not a number">;
def Par_IsFiniteOp : Par_TestOp<"is_finite", "true where x is neither infinite nor NaN">;

class Par_BinaryOp<string mnemonic, Type type, string meaning, list<Trait> traits = []>
    : Par_TensorOp<mnemonic, (ins type:$lhs, type:$rhs), (outs type:$result),
                   !listconcat(traits, [SameOperandsAndResultType, Elementwise])> {
  let summary = meaning;
  let description = "Example: `%2 = par." # mnemonic # " %0, %1 : tensor<4xf32>`";
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}
def Par_AddOp : Par_BinaryOp<"add", Par_NumberTensor, "x + y", [Commutative]>;
def Par_SubtractOp : Par_BinaryOp<"subtract", Par_NumberTensor, "x - y">;
def Par_MultiplyOp : Par_BinaryOp<"multiply", Par_NumberTensor, "x * y", [Commutative]>;
def Par_DivideOp : Par_BinaryOp<"divide", Par_NumberTensor, "x / y; integers round towards zero">;
def Par_RemainderOp : Par_BinaryOp<"remainder", Par_NumberTensor, "remainder with the sign of the dividend">;
def Par_MaximumOp : Par_BinaryOp<"maximum", Par_NumberTensor, "the larger; NaN if either is", [Commutative]>;
def Par_MinimumOp : Par_BinaryOp<"minimum", Par_NumberTensor, "the smaller; NaN if either is", [Commutative]>;
def Par_PowerOp : Par_BinaryOp<"power", Par_FloatTensor, "x to the y">;
def Par_AndOp : Par_BinaryOp<"and", Par_IntTensor, "bitwise and", [Commutative]>;
def Par_OrOp : Par_BinaryOp<"or", Par_IntTensor, "bitwise or", [Commutative]>;
def Par_XorOp : Par_BinaryOp<"xor", Par_IntTensor, "bitwise exclusive or", [Commutative]>;
def Par_ShiftLeftOp : Par_BinaryOp<"shift_left", Par_IntTensor,
    "x shifted by y bits, 0 from the width on; y as unsigned">;
def Par_ShiftRightOp : Par_BinaryOp<"shift_right", Par_IntTensor,
    "x as unsigned, shifted by y bits, 0 from the width on; y as unsigned">;

def Par_CompareOp : Par_TensorOp<"compare", (ins Par_PredicateAttr:$predicate, Par_NumberTensor:$lhs,
    Par_NumberTensor:$rhs), (outs Par_BoolTensor:$result),
    [Elementwise, SameTypeOperands, SameOperandsAndResultShape, InferTypeOpAdaptor]> {
  let summary = "compares; integers as signed, NaN only ne";
  let description = "Example: `%2 = par.compare lt %0, %1 : tensor<4xf32>` gives a `tensor<4xi1>`";
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs)";
}

def Par_SelectOp : Par_TensorOp<"select", (ins Par_BoolTensor:$condition, Par_Tensor:$on_true, Par_Tensor:$on_false),
    (outs Par_Tensor:$result), [Elementwise, AllTypesMatch<["on_true", "on_false", "result"]>,
    SameOperandsAndResultShape]> {
  let summary = "on_true where the condition holds, else on_false";
  let description = "Example: `%3 = par.select %0, %1, %2 : tensor<4xf32>`; the condition is a `tensor<4xi1>`";
  let assemblyFormat = "$condition `,` $on_true `,` $on_false attr-dict `:` type($condition) `,` type($result)";
}

def Par_ConvertOp : Par_TensorOp<"convert", (ins Par_Tensor:$operand), (outs Par_Tensor:$result),
    [Elementwise, SameOperandsAndResultShape]> {
  let summary = "changes the element type";
  let description = [{
    Float to float rounds to nearest even; float to integer truncates; to i1 means x != 0; from i1 gives 0 or 1.

    Example: `%1 = par.convert %0 : tensor<4xbf16> to tensor<4xf32>`
  }];
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasFolder = 1;
}

def Par_BitCastOp : Par_TensorOp<"bit_cast", (ins Par_NumberTensor:$operand), (outs Par_NumberTensor:$result),
    [Elementwise, SameOperandsAndResultShape]> {
  let summary = "reads each element's bits as an element of another type, as wide as its own";
  let description = "Example: `%1 = par.bit_cast %0 : tensor<4xf32> to tensor<4xi32>`";
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
}

def Par_GeluOp : Par_TensorOp<"gelu", (ins Par_FloatTensor:$operand, DefaultValuedAttr<BoolAttr, "false">:$tanh),
    (outs Par_FloatTensor:$result), [SameOperandsAndResultType, Elementwise]> {
  let summary = "x * Phi(x), exactly or with the tanh approximation";
  let description = [{
    Hendrycks and Gimpel 2016: 0.5 x (1 + erf(x / sqrt 2)), or 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).

    Example: `%1 = par.gelu %0 : tensor<4xf32>`, `%1 = par.gelu %0 {tanh = true} : tensor<4xf32>`
  }];
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}
def Par_GeluGradOp : Par_TensorOp<"gelu_grad", (ins Par_FloatTensor:$cotangent, Par_FloatTensor:$operand,
    DefaultValuedAttr<BoolAttr, "false">:$tanh), (outs Par_FloatTensor:$result),
    [SameOperandsAndResultType, Elementwise]> {
  let summary = "cotangent of gelu's operand";
  let description = "Example: `%2 = par.gelu_grad %ct, %x : tensor<4xf32>`";
  let assemblyFormat = "$cotangent `,` $operand attr-dict `:` type($result)";
}

// Random numbers are a function of a key and a counter, so that no sharding, schedule or recomputation changes them.
def Par_RandomBitsOp : Par_TensorOp<"random_bits", (ins Par_IntTensor:$key, Par_IntTensor:$counter),
    (outs Par_IntTensor:$result), [SameOperandsAndResultType, Elementwise]> {
  let summary = "64 random bits for each counter under its key: Philox4x32-10";
  let description = [{
    Salmon, Moraes, Dror and Shaw 2011. All three are i64. The counter and the key fill the low words of the block and
    the key words, low half first; the result is the first two words of the output, the first one lowest.

    Example: `%2 = par.random_bits %key, %counter : tensor<4xi64>`
  }];
  let assemblyFormat = "$key `,` $counter attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif
