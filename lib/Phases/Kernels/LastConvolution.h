// A convolution on values with channels last, and the ops after it that one call of the library computes too.
#pragma once

#include "Groups.h"
#include "par/Phases/Kernels/Builtin.h"

#include <limits>

namespace par {

/// The permutations between [N, C, x...] and [N, x..., C].
llvm::SmallVector<int64_t> channelsLast(int64_t rank);
llvm::SmallVector<int64_t> channelsFirst(int64_t rank);

/// transpose, convolution, transpose; then, each if it is there, in this order: a factor and a summand for each
/// channel, a tensor that is added, and bounds.
struct LastConvolution {
  /// None if the convolution does not stand between transposes to channels last.
  static std::optional<LastConvolution> read(ConvolutionOp op, IsTaken isTaken);

  ConvolutionOp convolution;
  mlir::Value input; ///< with channels last
  mlir::Value scale, bias, residual;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  mlir::Value result;
  /// Whether the result may take the place of the residual: nothing else of the call is read there.
  bool mayAddInPlace();
  llvm::SmallVector<mlir::Operation *> ops;       ///< in order, computed only here
  llvm::SmallPtrSet<mlir::Operation *, 8> clones; ///< constants, broadcasts and the first transpose

private:
  bool takeScale();
  bool takeSummand(IsTaken isTaken);
  bool takeBound(IsTaken isTaken);
  /// The vector that is repeated along all dims but the channels.
  mlir::Value readChannels(mlir::Value value);
  std::optional<double> readSplat(mlir::Value value);
  void advance(mlir::Operation *op);
};

/// The group of such a convolution; null for other ops.
std::unique_ptr<Group> formLastConvolution(mlir::Operation *op, IsTaken isTaken);
/// The call of the builtin "convolution_last", or of "convolution_last_add", that the kernel is, if it is one.
std::optional<BuiltinCall> describeLastConvolution(KernelOp kernel);
/// Images, groups, channels of a group, outputs, and the windows; none where the builtins have no such convolution.
std::optional<llvm::SmallVector<int64_t>> convolutionSizes(ConvolutionOp op);

} // namespace par
