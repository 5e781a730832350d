// The table of ONNX operators: the opset of each, the reason for each refusal, and the limits of those that are
// imported in part.
#include "par/Phases/Import/Operators.h"
#include "../Graph/GraphImporter.h"

#include "llvm/Support/raw_ostream.h"

namespace par {
namespace {

using llvm::StringRef;

/// Operators of ai.onnx and the opset in which each came.
struct Operator {
  const char *name;
  int since;
};
constexpr Operator operators[] = {
    {"Abs", 1},
    {"Acos", 7},
    {"Acosh", 9},
    {"Add", 1},
    {"AffineGrid", 20},
    {"And", 1},
    {"ArgMax", 1},
    {"ArgMin", 1},
    {"Asin", 7},
    {"Asinh", 9},
    {"Atan", 7},
    {"Atanh", 9},
    {"Attention", 23},
    {"AveragePool", 1},
    {"BatchNormalization", 1},
    {"Bernoulli", 15},
    {"BitCast", 26},
    {"BitShift", 11},
    {"BitwiseAnd", 18},
    {"BitwiseNot", 18},
    {"BitwiseOr", 18},
    {"BitwiseXor", 18},
    {"BlackmanWindow", 17},
    {"Cast", 1},
    {"CastLike", 15},
    {"CausalConvWithState", 27},
    {"Ceil", 1},
    {"Celu", 12},
    {"CenterCropPad", 18},
    {"Clip", 1},
    {"Col2Im", 18},
    {"Compress", 9},
    {"Concat", 1},
    {"ConcatFromSequence", 11},
    {"Constant", 1},
    {"ConstantOfShape", 9},
    {"Conv", 1},
    {"ConvInteger", 10},
    {"ConvTranspose", 1},
    {"Cos", 7},
    {"Cosh", 9},
    {"CumProd", 26},
    {"CumSum", 11},
    {"DFT", 17},
    {"DeformConv", 19},
    {"DepthToSpace", 1},
    {"DequantizeLinear", 10},
    {"Det", 11},
    {"Div", 1},
    {"Dropout", 1},
    {"DynamicQuantizeLinear", 11},
    {"Einsum", 12},
    {"Elu", 1},
    {"Equal", 1},
    {"Erf", 9},
    {"Exp", 1},
    {"Expand", 8},
    {"EyeLike", 9},
    {"Flatten", 1},
    {"Floor", 1},
    {"GRU", 1},
    {"Gather", 1},
    {"GatherElements", 11},
    {"GatherND", 11},
    {"Gelu", 20},
    {"Gemm", 1},
    {"GlobalAveragePool", 1},
    {"GlobalLpPool", 1},
    {"GlobalMaxPool", 1},
    {"Greater", 1},
    {"GreaterOrEqual", 12},
    {"GridSample", 16},
    {"GroupNormalization", 18},
    {"HammingWindow", 17},
    {"HannWindow", 17},
    {"HardSigmoid", 1},
    {"HardSwish", 14},
    {"Hardmax", 1},
    {"Identity", 1},
    {"If", 1},
    {"ImageDecoder", 20},
    {"InstanceNormalization", 1},
    {"IsInf", 10},
    {"IsNaN", 9},
    {"LRN", 1},
    {"LSTM", 1},
    {"LayerNormalization", 17},
    {"LeakyRelu", 1},
    {"Less", 1},
    {"LessOrEqual", 12},
    {"LinearAttention", 27},
    {"Log", 1},
    {"LogSoftmax", 1},
    {"Loop", 1},
    {"LpNormalization", 1},
    {"LpPool", 1},
    {"MatMul", 1},
    {"MatMulInteger", 10},
    {"Max", 1},
    {"MaxPool", 1},
    {"MaxRoiPool", 1},
    {"MaxUnpool", 9},
    {"Mean", 1},
    {"MeanVarianceNormalization", 9},
    {"MelWeightMatrix", 17},
    {"Min", 1},
    {"Mish", 18},
    {"Mod", 10},
    {"Mul", 1},
    {"Multinomial", 7},
    {"Neg", 1},
    {"NegativeLogLikelihoodLoss", 12},
    {"NonMaxSuppression", 10},
    {"NonZero", 9},
    {"Not", 1},
    {"OneHot", 9},
    {"Optional", 15},
    {"OptionalGetElement", 15},
    {"OptionalHasElement", 15},
    {"Or", 1},
    {"PRelu", 1},
    {"Pad", 1},
    {"Pow", 1},
    {"QLinearConv", 10},
    {"QLinearMatMul", 10},
    {"QuantizeLinear", 10},
    {"RMSNormalization", 23},
    {"RNN", 1},
    {"RandomNormal", 1},
    {"RandomNormalLike", 1},
    {"RandomUniform", 1},
    {"RandomUniformLike", 1},
    {"Range", 11},
    {"Reciprocal", 1},
    {"ReduceL1", 1},
    {"ReduceL2", 1},
    {"ReduceLogSum", 1},
    {"ReduceLogSumExp", 1},
    {"ReduceMax", 1},
    {"ReduceMean", 1},
    {"ReduceMin", 1},
    {"ReduceProd", 1},
    {"ReduceSum", 1},
    {"ReduceSumSquare", 1},
    {"RegexFullMatch", 20},
    {"Relu", 1},
    {"Reshape", 1},
    {"Resize", 10},
    {"ReverseSequence", 10},
    {"RoiAlign", 10},
    {"RotaryEmbedding", 23},
    {"Round", 11},
    {"STFT", 17},
    {"Scan", 8},
    {"Scatter", 9},
    {"ScatterElements", 11},
    {"ScatterND", 11},
    {"Selu", 1},
    {"SequenceAt", 11},
    {"SequenceConstruct", 11},
    {"SequenceEmpty", 11},
    {"SequenceErase", 11},
    {"SequenceInsert", 11},
    {"SequenceLength", 11},
    {"SequenceMap", 17},
    {"Shape", 1},
    {"Shrink", 9},
    {"Sigmoid", 1},
    {"Sign", 9},
    {"Sin", 7},
    {"Sinh", 9},
    {"Size", 1},
    {"Slice", 1},
    {"Softmax", 1},
    {"SoftmaxCrossEntropyLoss", 12},
    {"Softplus", 1},
    {"Softsign", 1},
    {"SpaceToDepth", 1},
    {"Split", 1},
    {"SplitToSequence", 11},
    {"Sqrt", 1},
    {"Squeeze", 1},
    {"StringConcat", 20},
    {"StringNormalizer", 10},
    {"StringSplit", 20},
    {"Sub", 1},
    {"Sum", 1},
    {"Swish", 24},
    {"Tan", 7},
    {"Tanh", 1},
    {"TensorScatter", 24},
    {"TfIdfVectorizer", 9},
    {"ThresholdedRelu", 10},
    {"Tile", 1},
    {"TopK", 1},
    {"Transpose", 1},
    {"Trilu", 14},
    {"Unique", 11},
    {"Unsqueeze", 1},
    {"Upsample", 1},
    {"Where", 9},
    {"Xor", 1},
};

struct Note {
  const char *name, *text;
};

constexpr const char *byData = "the shape of its output depends on data";
constexpr const char *strings = "works on strings";
constexpr const char *quantized = "works on quantized numbers";

/// Operators that an ahead-of-time compiler of tensor programs does not support, and why.
constexpr Note refusals[] = {
    {"ConvInteger", quantized},
    {"DynamicQuantizeLinear", quantized},
    {"ImageDecoder", "decodes files"},
    {"MatMulInteger", quantized},
    {"MaxRoiPool", "the place of its windows depends on data"},
    {"NonMaxSuppression", byData},
    {"NonZero", byData},
    {"QLinearConv", quantized},
    {"QLinearMatMul", quantized},
    {"QuantizeLinear", quantized},
    {"RegexFullMatch", strings},
    {"StringConcat", strings},
    {"StringNormalizer", strings},
    {"StringSplit", strings},
    {"TfIdfVectorizer", "counts n-grams of texts"},
    {"Unique", byData},
};

/// Limits of supported operators.
constexpr Note limits[] = {
    {"If", "a known condition takes one branch, one of data both, which then have equal shapes"},
    {"Loop", "unrolled by a known trip count; without scan outputs it may end by a condition of data"},
    {"Scan", "unrolled; of opset 8 without sequence lengths"},
    {"RNN", "unrolled; no clip; activations Sigmoid, Tanh, Relu"},
    {"GRU", "unrolled; no clip; activations Sigmoid, Tanh, Relu"},
    {"LSTM", "unrolled; no clip, no input_forget; activations Sigmoid, Tanh, Relu"},
    {"AffineGrid", "a size known when compiling"},
    {"Compress", "a condition known when compiling"},
    {"CumProd", "an axis known when compiling"},
    {"CumSum", "an axis known when compiling"},
    {"DequantizeLinear", "integers of 8 and 16 bits and i32"},
    {"Det", "matrices of up to 8 rows"},
    {"DFT", "a length and an axis known when compiling"},
    {"Dropout", "drops in training steps only, whatever training_mode says elsewhere"},
    {"Expand", "a shape known when compiling"},
    {"LinearAttention", "unrolled"},
    {"MelWeightMatrix", "all known when compiling"},
    {"OneHot", "a depth known when compiling"},
    {"Optional", "dissolved: known to hold something or not"},
    {"OptionalGetElement", "dissolved: known to hold something or not"},
    {"OptionalHasElement", "dissolved: known to hold something or not"},
    {"Reshape", "a shape known when compiling"},
    {"RoiAlign", "a sampling_ratio above 0"},
    {"SequenceAt", "a position known when compiling"},
    {"SequenceErase", "a position known when compiling"},
    {"SequenceInsert", "a position known when compiling"},
    {"STFT", "frames known when compiling"},
    {"Slice", "starts, ends, axes and steps known when compiling"},
    {"Tile", "repeats known when compiling"},
    {"TopK", "a K known when compiling"},
    {"Trilu", "a diagonal known when compiling"},
};

StringRef textOf(llvm::ArrayRef<Note> notes, StringRef name) {
  for (const Note &note : notes)
    if (name == note.name)
      return note.text;
  return "";
}

} // namespace

StringRef refusalOf(StringRef opType) { return textOf(refusals, opType); }

std::string operatorsPage() {
  ImportTable table = importTable();
  Folder folder(/*opset=*/0);
  int64_t count = 0;
  std::string rows;
  llvm::raw_string_ostream out(rows);
  for (const Operator &op : operators) {
    bool ofTypes = StringRef(op.name) == "Shape" || StringRef(op.name) == "Size"; // needs only a value's type
    bool computed = ofTypes || table.contains(op.name), known = folder.knows(op.name);
    count += computed || known;
    StringRef limit = textOf(limits, op.name), refusal = refusalOf(op.name);
    out << "| " << op.name << " | " << op.since << " | "
        << (computed ? "yes"
            : known  ? "of known values"
                     : "no")
        << " | "
        << (computed          ? limit
            : refusal.empty() ? StringRef(known ? "" : "not supported yet")
                              : refusal)
        << " |\n";
  }
  std::string page;
  llvm::raw_string_ostream os(page);
  os << "# Operators\n\nMade by `par-node-tests --operators` from the tables of lib/Phases/Import.\n\n"
        "Opsets 1 to 27 are read, below 7 the operators that have not changed since. "
     << count << " of the " << std::size(operators)
     << " operators of ai.onnx are\n"
        "read. A function of the model is inlined at its nodes, whatever its name. "
        "A refused operator is named at its node, and\n"
        "so is a wrong number of inputs or outputs at its opset. "
        "Element types: f64, f32, f16, bf16, bool, and integers of 8 to\n"
        "64 bits with or without a sign (64 bits without a sign: only layout ops, comparison, "
        "addition, multiplication, division\nand casts).\n\n"
        "| operator | since opset | read | |\n| --- | --- | --- | --- |\n"
     << rows;
  return page;
}

} // namespace par
