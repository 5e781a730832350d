// The kernels that ship inside the runtime: their names, operands and immediates as data. The compiler reads
// this table to emit calls, the loader to check them; neither needs to link anything for it.
//
// Every kernel has the ABI of generated ones:
//
//     void k(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1)
//
// ptr[i] is the buffer of operand i (in the order of the table), imm[i] the immediate i: integers as two's complement,
// reals as the bit pattern of a double. Tiles [tile0, tile1) of builtinTiles(...) are computed; the split into tiles
// depends only on the immediates, so results do not depend on the number of threads. All indices are i64, all tensors
// dense and row-major. Floats are f32; the row kernels have forms named _bf16 and _f16 that keep their large operands
// so, compute in f32 and round to nearest even; those of convolutions keep all so.
#pragma once

#include "par/kernels/AttentionSizes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

namespace par::kernels {

/// How a kernel touches an operand: read, written whole, read and written, or added to.
enum class Access : char { Read = 'r', Write = 'w', Update = 'u', Accumulate = 'a' };

struct BuiltinOperand {
  std::string_view name;
  Access access;
  std::string_view type;  ///< "f32", "bf16", "f16" or "i64"
  std::string_view shape; ///< in terms of the immediates, e.g. "rows x cols"; "" is a scalar
  /// The operand is there only if this immediate is not 0; -1: always. Optional operands come last.
  int onlyIf = -1;
};

/// Whether a call with these immediates has the operand.
constexpr bool isPresent(const BuiltinOperand &operand, std::span<const uint64_t> imm) {
  return operand.onlyIf < 0 || imm[static_cast<size_t>(operand.onlyIf)] != 0;
}

struct BuiltinImmediate {
  std::string_view name;
  bool real = false; ///< a double's bit pattern
};

/// A builtin. Tiles: ceil(imm[tileBy] / tileSize), at least 1, times imm[tileByToo] where that is not -1; one tile
/// where tileBy is -1.
struct BuiltinKernel {
  std::string_view name;
  std::string_view meaning;
  std::span<const BuiltinOperand> operands;
  std::span<const BuiltinImmediate> immediates;
  int tileBy = -1;
  uint64_t tileSize = 1;
  /// The compiler calls it only in bundles for cuda; a CPU computes it by the f32 form, on copies.
  bool forCuda = false;
  /// Checks by the immediates that sizes fit each other, for rules that operands' shapes do not express; null: they
  /// always do.
  bool (*fits)(std::span<const uint64_t> imms) = nullptr;
  int tileByToo = -1;
};

namespace table {
using enum Access;
using O = BuiltinOperand;
using I = BuiltinImmediate;

// Optimizers. `coef`, where has_coef is 1, multiplies the gradient first (the clip coefficient). The rate is
// lr * lr_scale. `step` is the count of this step, from 1.
inline constexpr std::array adamwOperands{
    O{"w", Update, "f32", "n"}, O{"g", Read, "f32", "n"}, O{"m", Update, "f32", "n"},   O{"v", Update, "f32", "n"},
    O{"step", Read, "f32", ""}, O{"lr", Read, "f32", ""}, O{"coef", Read, "f32", "", 6}};
inline constexpr std::array adamwImmediates{I{"n"},         I{"beta1", true},        I{"beta2", true},
                                            I{"eps", true}, I{"weight_decay", true}, I{"lr_scale", true},
                                            I{"has_coef"}};
inline constexpr std::array sgdOperands{O{"w", Update, "f32", "n"}, O{"g", Read, "f32", "n"}, O{"lr", Read, "f32", ""},
                                        O{"coef", Read, "f32", "", 3}};
inline constexpr std::array sgdImmediates{I{"n"}, I{"weight_decay", true}, I{"lr_scale", true}, I{"has_coef"}};
inline constexpr std::array momentumOperands{O{"w", Update, "f32", "n"}, O{"g", Read, "f32", "n"},
                                             O{"buf", Update, "f32", "n"}, O{"lr", Read, "f32", ""},
                                             O{"coef", Read, "f32", "", 5}};
inline constexpr std::array momentumImmediates{I{"n"},        I{"momentum", true}, I{"weight_decay", true},
                                               I{"nesterov"}, I{"lr_scale", true}, I{"has_coef"}};

// The same of some rows of a table, each named once; `index` outside of the table is of none, and its gradient is not
// read.
inline constexpr std::string_view ofTable = "rows x width", ofRows = "n x width";
inline constexpr std::array adamwRowsOperands{O{"w", Update, "f32", ofTable}, O{"g", Read, "f32", ofRows},
                                              O{"m", Update, "f32", ofTable}, O{"v", Update, "f32", ofTable},
                                              O{"step", Read, "f32", ""},     O{"lr", Read, "f32", ""},
                                              O{"index", Read, "i64", "n"},   O{"coef", Read, "f32", "", 8}};
inline constexpr std::array adamwRowsImmediates{I{"n"},
                                                I{"width"},
                                                I{"rows"},
                                                I{"beta1", true},
                                                I{"beta2", true},
                                                I{"eps", true},
                                                I{"weight_decay", true},
                                                I{"lr_scale", true},
                                                I{"has_coef"}};
inline constexpr std::array sgdRowsOperands{O{"w", Update, "f32", ofTable}, O{"g", Read, "f32", ofRows},
                                            O{"lr", Read, "f32", ""}, O{"index", Read, "i64", "n"},
                                            O{"coef", Read, "f32", "", 5}};
inline constexpr std::array sgdRowsImmediates{
    I{"n"}, I{"width"}, I{"rows"}, I{"weight_decay", true}, I{"lr_scale", true}, I{"has_coef"}};
inline constexpr std::array momentumRowsOperands{O{"w", Update, "f32", ofTable},   O{"g", Read, "f32", ofRows},
                                                 O{"buf", Update, "f32", ofTable}, O{"lr", Read, "f32", ""},
                                                 O{"index", Read, "i64", "n"},     O{"coef", Read, "f32", "", 7}};
inline constexpr std::array momentumRowsImmediates{
    I{"n"},        I{"width"},          I{"rows"},    I{"momentum", true}, I{"weight_decay", true},
    I{"nesterov"}, I{"lr_scale", true}, I{"has_coef"}};

// Cross entropy per token. `shard` is the position of this shard among equal ones: it holds the classes
// [shard * cols, (shard + 1) * cols), of which those from `total` on are padding and count nowhere (their dlogits
// are 0). A label outside belongs to another shard; the label `ignore` counts nowhere.
inline constexpr std::array crossEntropyOperands{O{"logits", Read, "f32", "rows x cols"},
                                                 O{"labels", Read, "i64", "rows"}, O{"loss", Write, "f32", "rows"},
                                                 O{"lse", Write, "f32", "rows"}};
inline constexpr std::array crossEntropyImmediates{I{"rows"}, I{"cols"}, I{"ignore"}};
inline constexpr std::array crossEntropyPaddedImmediates{I{"rows"}, I{"cols"}, I{"ignore"}, I{"total"}};
/// Rows hold all classes, at least one.
constexpr bool crossEntropyFits(std::span<const uint64_t> imms) { return imms[3] >= 1 && imms[3] <= imms[1]; }
inline constexpr std::array crossEntropyShardOperands{
    O{"logits", Read, "f32", "rows x cols"}, O{"labels", Read, "i64", "rows"}, O{"max", Read, "f32", "rows"},
    O{"sumexp", Write, "f32", "rows"}, O{"picked", Write, "f32", "rows"}};
inline constexpr std::array crossEntropyShardImmediates{I{"rows"}, I{"cols"}, I{"ignore"}, I{"shard"}, I{"total"}};
inline constexpr std::array crossEntropyBackwardOperands{
    O{"logits", Read, "f32", "rows x cols"}, O{"labels", Read, "i64", "rows"}, O{"lse", Read, "f32", "rows"},
    O{"dloss", Read, "f32", "rows"}, O{"dlogits", Write, "f32", "rows x cols"}};

// Rows of a table of which this shard holds [shard * rows, (shard + 1) * rows). An index outside belongs to another
// shard: gather gives zeros, scatter leaves it out. If the index is already local, shard is 0.
inline constexpr std::array gatherOperands{O{"table", Read, "f32", "rows x width"}, O{"index", Read, "i64", "n"},
                                           O{"out", Write, "f32", "n x width"}};
inline constexpr std::array rowImmediates{I{"n"}, I{"width"}, I{"rows"}, I{"shard"}};
inline constexpr std::array scatterAddOperands{O{"table", Accumulate, "f32", "rows x width"},
                                               O{"index", Read, "i64", "n"}, O{"values", Read, "f32", "n x width"}};

// New rows in the slots of a cache: a slot takes the row of its number; one whose number is none of a row stays.
inline constexpr std::array placeRowsOperands{O{"kept", Update, "f32", "batch x heads x slots x width"},
                                              O{"new", Read, "f32", "batch x heads x rows x width"},
                                              O{"number", Read, "i64", "batch x slots"}};
inline constexpr std::array placeRowsImmediates{I{"batch"}, I{"heads"}, I{"slots"}, I{"width"}, I{"rows"}};

inline constexpr std::array sumSquaresOperands{O{"x", Read, "f32", "n"}, O{"out", Accumulate, "f32", ""}};
inline constexpr std::array sumSquaresImmediates{I{"n"}, I{"weight", true}};

inline constexpr std::array rowsColsImmediates{I{"rows"}, I{"cols"}};
inline constexpr std::array rowMaxOperands{O{"x", Read, "f32", "rows x cols"}, O{"max", Write, "f32", "rows"}};
inline constexpr std::array softmaxOperands{O{"x", Read, "f32", "rows x cols"}, O{"y", Write, "f32", "rows x cols"}};
inline constexpr std::array softmaxBackwardOperands{
    O{"y", Read, "f32", "rows x cols"}, O{"dy", Read, "f32", "rows x cols"}, O{"dx", Write, "f32", "rows x cols"}};
inline constexpr std::array layerNormOperands{O{"x", Read, "f32", "rows x cols"}, O{"gamma", Read, "f32", "cols"},
                                              O{"beta", Read, "f32", "cols"},     O{"y", Write, "f32", "rows x cols"},
                                              O{"mean", Write, "f32", "rows"},    O{"rstd", Write, "f32", "rows"}};
inline constexpr std::array layerNormImmediates{I{"rows"}, I{"cols"}, I{"eps", true}};
inline constexpr std::array layerNormBackwardOperands{
    O{"x", Read, "f32", "rows x cols"},     O{"gamma", Read, "f32", "cols"},      O{"mean", Read, "f32", "rows"},
    O{"rstd", Read, "f32", "rows"},         O{"dy", Read, "f32", "rows x cols"},  O{"dx", Write, "f32", "rows x cols"},
    O{"dgamma", Accumulate, "f32", "cols"}, O{"dbeta", Accumulate, "f32", "cols"}};

// Convolutions of three spatial dims, of which the first may be 1 for fewer: input n x (groups x c) x i, filter o x c x
// k, output n x o x y. Windows begin every s elements, are padded by l before and h after (not negative), and their
// elements lie d apart.
#define PAR_EACH_DIM(NAME) I{NAME "0"}, I{NAME "1"}, I{NAME "2"}
inline constexpr std::array convolutionImmediates{I{"n"},
                                                  I{"groups"},
                                                  I{"c"},
                                                  I{"o"},
                                                  PAR_EACH_DIM("i"),
                                                  PAR_EACH_DIM("k"),
                                                  PAR_EACH_DIM("y"),
                                                  PAR_EACH_DIM("s"),
                                                  PAR_EACH_DIM("l"),
                                                  PAR_EACH_DIM("h"),
                                                  PAR_EACH_DIM("d")};
// Pools of planes, dims as a convolution's; padding counts as smaller than all values.
inline constexpr std::array poolImmediates{I{"planes"},       PAR_EACH_DIM("i"), PAR_EACH_DIM("k"), PAR_EACH_DIM("y"),
                                           PAR_EACH_DIM("s"), PAR_EACH_DIM("l"), PAR_EACH_DIM("h"), PAR_EACH_DIM("d")};
#undef PAR_EACH_DIM
/// Whether there are elements, windows and steps in each of the three dims whose sizes begin at `first`, and the padded
/// images can be counted: a kernel divides by steps.
constexpr bool windowsFit(std::span<const uint64_t> imms, size_t first) {
  double elements = 1;
  for (size_t dim = first; dim < first + 3; ++dim) {
    for (size_t list : {0, 1, 2, 3, 6}) // i, k, y, s, d
      if (imms[dim + 3 * list] < 1 || imms[dim + 3 * list] > uint64_t(1) << 31)
        return false;
    elements *= double(imms[dim]) + double(imms[dim + 12]) + double(imms[dim + 15]);
  }
  return elements < double(uint64_t(1) << 40);
}
constexpr bool poolFits(std::span<const uint64_t> imms) { return windowsFit(imms, 1); }
/// Each window of a convolution lies in the padded image, too.
constexpr bool convolutionFits(std::span<const uint64_t> imms) {
  if (imms[1] < 1 || imms[2] < 1 || imms[3] % imms[1] != 0 || !windowsFit(imms, 4))
    return false;
  for (size_t dim = 4; dim < 7; ++dim)
    if ((imms[dim + 6] - 1) * imms[dim + 9] + (imms[dim + 3] - 1) * imms[dim + 18] >=
        imms[dim] + imms[dim + 12] + imms[dim + 15])
      return false;
  return true;
}
inline constexpr std::string_view poolInput = "planes x i0 x i1 x i2", poolOutput = "planes x y0 x y1 x y2";
inline constexpr std::array maxPoolOperands{O{"x", Read, "f32", poolInput}, O{"y", Write, "f32", poolOutput}};
inline constexpr std::array maxPoolGradOperands{O{"dy", Read, "f32", poolOutput}, O{"x", Read, "f32", poolInput},
                                                O{"y", Read, "f32", poolOutput}, O{"dx", Write, "f32", poolInput}};
inline constexpr std::string_view convolutionInput = "n x groups x c x i0 x i1 x i2",
                                  convolutionFilter = "o x c x k0 x k1 x k2",
                                  convolutionOutput = "n x o x y0 x y1 x y2";
inline constexpr std::array convolutionOperands{O{"x", Read, "f32", convolutionInput},
                                                O{"w", Read, "f32", convolutionFilter},
                                                O{"y", Write, "f32", convolutionOutput}};
inline constexpr std::array convolutionInputGradOperands{O{"dy", Read, "f32", convolutionOutput},
                                                         O{"w", Read, "f32", convolutionFilter},
                                                         O{"dx", Write, "f32", convolutionInput}};
inline constexpr std::array convolutionFilterGradOperands{O{"x", Read, "f32", convolutionInput},
                                                          O{"dy", Read, "f32", convolutionOutput},
                                                          O{"dw", Write, "f32", convolutionFilter}};

// A convolution on tensors that have channels last, with the ops after it: y = clamp(scale * (x * w) + bias +
// residual). Sizes are those of a convolution, and the filter is as its is. Bounds may be infinite.
inline constexpr auto convolutionLastImmediates = [] {
  std::array<I, convolutionImmediates.size() + 5> all{};
  std::copy(convolutionImmediates.begin(), convolutionImmediates.end(), all.begin());
  size_t next = convolutionImmediates.size();
  for (I more : {I{"has_scale"}, I{"has_bias"}, I{"has_residual"}, I{"low", true}, I{"high", true}})
    all[next++] = more;
  return all;
}();
inline constexpr std::array convolutionLastOperands{
    O{"x", Read, "f32", "n x i0 x i1 x i2 x groups x c"},
    O{"w", Read, "f32", convolutionFilter},
    O{"y", Write, "f32", "n x y0 x y1 x y2 x o"},
    O{"scale", Read, "f32", "o", int(convolutionImmediates.size())},
    O{"bias", Read, "f32", "o", int(convolutionImmediates.size()) + 1},
    O{"residual", Read, "f32", "n x y0 x y1 x y2 x o", int(convolutionImmediates.size()) + 2}};
// The residual lies where the result is to lie, and has_residual is 1.
inline constexpr std::array convolutionLastAddOperands{convolutionLastOperands[0], convolutionLastOperands[1],
                                                       O{"y", Update, "f32", "n x y0 x y1 x y2 x o"},
                                                       convolutionLastOperands[3], convolutionLastOperands[4]};

// Attention of b x h heads, g of which have keys and values of their own, which h / g neighbours share: lse = log sum
// e^s, out = e^(s - lse) v where s = scale q k^T + mask. If causal, query i meets only keys 0 to i. The mask's dims are
// those of s or 1. Rows of heads lie in their operands as AttentionSizes.h says; one operand may hold several of those
// that are read, and, where `apart` is 0, all of those that backward writes.
inline constexpr std::string_view attentionMask = "m0 x m1 x m2 x m3";
template <const std::string_view &type>
inline constexpr std::array attentionOperands{O{"q", Read, type, "q"},
                                              O{"k", Read, type, "k"},
                                              O{"v", Read, type, "v"},
                                              O{"out", Write, type, "out"},
                                              O{"lse", Write, "f32", "b x h x sq"},
                                              O{"mask", Read, "f32", attentionMask, 8}};
template <const std::string_view &type>
inline constexpr std::array attentionBackwardOperands{O{"dout", Read, type, "dout"},
                                                      O{"q", Read, type, "q"},
                                                      O{"k", Read, type, "k"},
                                                      O{"v", Read, type, "v"},
                                                      O{"out", Read, type, "out"},
                                                      O{"lse", Read, "f32", "b x h x sq"},
                                                      O{"dq", Write, type, "dq"},
                                                      O{"dk", Write, type, "dk", AttentionSizes::apartIndex},
                                                      O{"dv", Write, type, "dv", AttentionSizes::apartIndex},
                                                      O{"mask", Read, "f32", attentionMask, 8}};
#define PAR_ATTENTION_SIZES                                                                                            \
  I{"b"}, I{"h"}, I{"g"}, I{"sq"}, I{"sk"}, I{"d"}, I{"e"}, I{"causal"}, I{"has_mask"}, I{"scale", true}, I{"m0"},     \
      I{"m1"}, I{"m2"}, I{"m3"}
#define PAR_ROWS(NAME) I{NAME}, I{NAME "_offset"}, I{NAME "_batch"}, I{NAME "_head"}, I{NAME "_row"}
inline constexpr std::array attentionImmediates{PAR_ATTENTION_SIZES, PAR_ROWS("q"), PAR_ROWS("k"), PAR_ROWS("v"),
                                                PAR_ROWS("out")};
inline constexpr std::array attentionBackwardImmediates{
    PAR_ATTENTION_SIZES, PAR_ROWS("dout"), PAR_ROWS("q"),  PAR_ROWS("k"),  PAR_ROWS("v"),
    PAR_ROWS("out"),     PAR_ROWS("dq"),   PAR_ROWS("dk"), PAR_ROWS("dv"), I{"apart"}};
#undef PAR_ATTENTION_SIZES
#undef PAR_ROWS
constexpr bool attentionFits(std::span<const uint64_t> imms) { return AttentionSizes(imms).fit(); }
inline constexpr std::string_view f32 = "f32", bf16 = "bf16", f16 = "f16";

/// The same operands, those that are whole rows in another type.
template <size_t n>
constexpr std::array<O, n> rowsIn(std::string_view type, std::array<O, n> operands) {
  for (O &operand : operands)
    if (operand.shape == "rows x cols")
      operand.type = type;
  return operands;
}
template <const auto &operands>
inline constexpr auto inBF16 = rowsIn("bf16", operands);
template <const auto &operands>
inline constexpr auto inF16 = rowsIn("f16", operands);
/// Three forms of one kernel.
#define PAR_ROW_KERNEL(NAME, MEANING, OPERANDS, ...)                                                                   \
  BuiltinKernel{NAME, MEANING, OPERANDS, __VA_ARGS__},                                                                 \
      BuiltinKernel{NAME "_bf16", MEANING, inBF16<OPERANDS>, __VA_ARGS__}, BuiltinKernel {                             \
    NAME "_f16", MEANING, inF16<OPERANDS>, __VA_ARGS__                                                                 \
  }

/// The same operands, all in another type.
template <size_t n>
constexpr std::array<O, n> allIn(std::string_view type, std::array<O, n> operands) {
  for (O &operand : operands)
    operand.type = type;
  return operands;
}
template <const auto &operands>
inline constexpr auto allInBF16 = allIn("bf16", operands);
template <const auto &operands>
inline constexpr auto allInF16 = allIn("f16", operands);
#define PAR_CONVOLUTION(NAME, MEANING, OPERANDS)                                                                       \
  BuiltinKernel{NAME, MEANING "; a group a tile", OPERANDS, convolutionImmediates, 1, 1, false, convolutionFits},      \
      BuiltinKernel{NAME "_bf16", MEANING, allInBF16<OPERANDS>, convolutionImmediates, -1, 1, true, convolutionFits},  \
      BuiltinKernel {                                                                                                  \
    NAME "_f16", MEANING, allInF16<OPERANDS>, convolutionImmediates, -1, 1, true, convolutionFits                      \
  }

inline constexpr std::array all{
    BuiltinKernel{"adamw",
                  "PyTorch's AdamW: w -= lr wd w; m, v moving averages; w -= lr/(1-b1^t) m / (sqrt(v/(1-b2^t)) + eps)",
                  adamwOperands, adamwImmediates, 0, 16384},
    BuiltinKernel{"sgd", "PyTorch's SGD: w -= lr (g + wd w)", sgdOperands, sgdImmediates, 0, 16384},
    BuiltinKernel{
        "momentum",
        "PyTorch's SGD with momentum, dampening 0: d = g + wd w; buf = mu buf + d; w -= lr (nesterov ? d + mu "
        "buf : buf); buf starts as zeros",
        momentumOperands, momentumImmediates, 0, 16384},
    BuiltinKernel{"adamw_rows", "adamw of the rows that index names", adamwRowsOperands, adamwRowsImmediates, 0, 64},
    BuiltinKernel{"sgd_rows", "sgd of the rows that index names", sgdRowsOperands, sgdRowsImmediates, 0, 64},
    BuiltinKernel{"momentum_rows", "momentum of the rows that index names", momentumRowsOperands,
                  momentumRowsImmediates, 0, 64},
    PAR_ROW_KERNEL("cross_entropy", "lse = log sum exp of the row; loss = lse - logit of the label, 0 if ignored",
                   crossEntropyOperands, crossEntropyImmediates, 0, 16),
    PAR_ROW_KERNEL("cross_entropy_padded",
                   "the same of the classes below total: a row's elements after them are not read",
                   crossEntropyOperands, crossEntropyPaddedImmediates, 0, 16, false, crossEntropyFits),
    PAR_ROW_KERNEL(
        "cross_entropy_shard",
        "of the classes held here: sumexp = sum exp(z - max); picked = logit of the label, 0 if elsewhere or "
        "ignored",
        crossEntropyShardOperands, crossEntropyShardImmediates, 0, 16),
    PAR_ROW_KERNEL("cross_entropy_backward",
                   "dlogits = (exp(z - lse) - [class is label]) dloss, 0 in ignored rows; dlogits may be logits",
                   crossEntropyBackwardOperands, crossEntropyShardImmediates, 0, 16),
    BuiltinKernel{"gather_rows", "out[i] = table[index[i] - shard * rows], zeros if outside", gatherOperands,
                  rowImmediates, 0, 64},
    BuiltinKernel{"scatter_add_rows", "table[index[i] - shard * rows] += values[i], in the order of i",
                  scatterAddOperands, rowImmediates, 1, 256},
    BuiltinKernel{"place_rows", "kept[b, h, s] = new[b, h, number[b, s]] where that is a row", placeRowsOperands,
                  placeRowsImmediates},
    BuiltinKernel{"sum_squares", "out += weight * sum x^2, summed in f64", sumSquaresOperands, sumSquaresImmediates},
    PAR_ROW_KERNEL("row_max", "max = largest of the row", rowMaxOperands, rowsColsImmediates, 0, 16),
    PAR_ROW_KERNEL("softmax", "y = softmax of each row; y may be x", softmaxOperands, rowsColsImmediates, 0, 16),
    PAR_ROW_KERNEL("softmax_backward", "dx = y (dy - sum y dy); dx may be dy", softmaxBackwardOperands,
                   rowsColsImmediates, 0, 16),
    PAR_ROW_KERNEL("layer_norm", "y = (x - mean) rstd gamma + beta; rstd = 1/sqrt(var + eps), var biased",
                   layerNormOperands, layerNormImmediates, 0, 16),
    PAR_ROW_KERNEL("layer_norm_backward", "dx, and sums over rows added to dgamma and dbeta", layerNormBackwardOperands,
                   rowsColsImmediates),
    PAR_CONVOLUTION("convolution", "y = convolution of x by w", convolutionOperands),
    PAR_CONVOLUTION("convolution_input_grad", "cotangent of x, given that of y", convolutionInputGradOperands),
    PAR_CONVOLUTION("convolution_filter_grad", "cotangent of w, given that of y", convolutionFilterGradOperands),
    BuiltinKernel{"convolution_last", "y = clamp(scale * (x * w) + bias + residual), channels last",
                  convolutionLastOperands, convolutionLastImmediates, -1, 1, false, convolutionFits},
    BuiltinKernel{"convolution_last_add", "y = clamp(scale * (x * w) + bias + y), channels last",
                  convolutionLastAddOperands, convolutionLastImmediates, -1, 1, false, convolutionFits},
    BuiltinKernel{"attention", "out = softmax(scale q k^T + mask) v; a head of a batch a tile", attentionOperands<f32>,
                  attentionImmediates, 0, 1, false, attentionFits, 1},
    BuiltinKernel{"attention_bf16", "out = softmax(scale q k^T + mask) v", attentionOperands<bf16>, attentionImmediates,
                  -1, 1, false, attentionFits},
    BuiltinKernel{"attention_f16", "out = softmax(scale q k^T + mask) v", attentionOperands<f16>, attentionImmediates,
                  -1, 1, false, attentionFits},
    BuiltinKernel{"attention_backward",
                  "cotangents of q, k and v, given that of out; a tile has all heads that share keys",
                  attentionBackwardOperands<f32>, attentionBackwardImmediates, 0, 1, false, attentionFits, 2},
    BuiltinKernel{"attention_backward_bf16", "cotangents of q, k and v, given that of out",
                  attentionBackwardOperands<bf16>, attentionBackwardImmediates, -1, 1, false, attentionFits},
    BuiltinKernel{"attention_backward_f16", "cotangents of q, k and v, given that of out",
                  attentionBackwardOperands<f16>, attentionBackwardImmediates, -1, 1, false, attentionFits},
    BuiltinKernel{"max_pool", "y = largest element of each window of x", maxPoolOperands, poolImmediates, 0, 1, false,
                  poolFits},
    BuiltinKernel{"max_pool_grad", "each dy goes to the first element of its window that equals y", maxPoolGradOperands,
                  poolImmediates, 0, 1, false, poolFits},
};
#undef PAR_ROW_KERNEL
#undef PAR_CONVOLUTION
} // namespace table

inline constexpr size_t convolutionImmediateCount = table::convolutionImmediates.size();

/// All builtins.
inline constexpr std::span<const BuiltinKernel> builtins() { return table::all; }

/// The builtin of that name, or null.
inline constexpr const BuiltinKernel *findBuiltin(std::string_view name) {
  for (const BuiltinKernel &kernel : table::all)
    if (kernel.name == name)
      return &kernel;
  return nullptr;
}

/// The name of the form in f32 of a kernel with forms for other types, or the name itself.
inline constexpr std::string_view formInF32(std::string_view name) {
  for (std::string_view types : {"_bf16", "_f16"})
    if (name.ends_with(types))
      return name.substr(0, name.size() - types.size());
  return name;
}

/// Number of tiles of a builtin with these immediates.
inline constexpr uint32_t builtinTiles(const BuiltinKernel &kernel, std::span<const uint64_t> imm) {
  if (kernel.tileBy < 0)
    return 1;
  uint64_t tiles = (imm[kernel.tileBy] + kernel.tileSize - 1) / kernel.tileSize;
  if (kernel.tileByToo >= 0)
    tiles *= imm[kernel.tileByToo];
  return tiles == 0 ? 1 : static_cast<uint32_t>(tiles);
}

/// A real immediate as it is stored, and back.
inline constexpr uint64_t realImmediate(double value) { return std::bit_cast<uint64_t>(value); }
inline constexpr double immediateReal(uint64_t bits) { return std::bit_cast<double>(bits); }

using KernelFunction = void (*)(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1);

/// The code of a builtin, or null if there is none of that name. (Needs the runtime library.)
KernelFunction builtinFunction(std::string_view name);

} // namespace par::kernels
