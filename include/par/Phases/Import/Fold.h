// Evaluates ONNX nodes whose inputs are all known.
#pragma once

#include "par/Phases/Import/StaticTensor.h"

#include "llvm/ADT/StringMap.h"

namespace par {

/// Inputs of a folding function. A missing optional input is null.
struct FoldContext {
  const onnx::Node &node;
  llvm::ArrayRef<const StaticTensor *> inputs;
  int64_t opset;

  const StaticTensor *input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  /// Integers given as an attribute by older opsets and as an input by newer ones; nothing if in neither place.
  std::optional<llvm::SmallVector<int64_t>> intsFrom(llvm::StringRef attribute, size_t position) const;
};

using FoldFunction = llvm::FailureOr<StaticTensor> (*)(const FoldContext &);
using FoldTable = llvm::StringMap<FoldFunction>;

/// The table of one family of ops.
void addElementwiseFolds(FoldTable &table);
void addShapeFolds(FoldTable &table);
void addIndexFolds(FoldTable &table);
void addReduceFolds(FoldTable &table);

/// Value of a node's only result. Fails if the op is not in the table, the inputs do not fit together, or more than
/// `foldLimit` elements would have to be stored; the caller then imports the node as an op.
class Folder {
public:
  explicit Folder(int64_t opset);
  /// Nodes from here on are of this opset.
  void setOpset(int64_t newOpset) { opset = newOpset; }
  llvm::FailureOr<StaticTensor> fold(const onnx::Node &node, llvm::ArrayRef<const StaticTensor *> inputs) const;
  bool knows(llvm::StringRef opType) const { return table.contains(opType); }

private:
  int64_t opset;
  FoldTable table;
};

/// GatherND's value of `data` at indices that `concat` makes by joining `parts` along their last dim. The parts are
/// read as they are stored, and only for dims along which elements of `data` change. Fails where an index is out of
/// range, for empty indices, and as `fold` does.
llvm::FailureOr<StaticTensor> gatherByColumns(const onnx::Node &gather, const StaticTensor *data,
                                              const onnx::Node &concat, llvm::ArrayRef<const StaticTensor *> parts);

/// Dim counted from the end if negative; fails outside [-rank, rank).
llvm::FailureOr<int64_t> normalizeDim(int64_t dim, int64_t rank);

/// The order of dims that a Transpose asks for (reversed by default); fails where `perm` is no permutation.
llvm::FailureOr<llvm::SmallVector<int64_t>> resolveTranspose(const onnx::Node &node, int64_t rank);

/// Shape that ONNX's Reshape asks for: 0 copies (unless `allowZero`), one -1 is inferred.
llvm::FailureOr<Shape> resolveReshape(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> asked, bool allowZero);

/// Start, step and count of one sliced dim, by ONNX's clamping rules. `step` may be negative.
struct SliceRange {
  int64_t start = 0, step = 1, count = 0;
};
llvm::FailureOr<llvm::SmallVector<SliceRange>>
resolveSlice(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> ends,
             std::optional<llvm::SmallVector<int64_t>> axes, std::optional<llvm::SmallVector<int64_t>> steps);

/// Shape with 1 inserted at `axes` of the result, respectively without the named (default: all) dims of size 1.
llvm::FailureOr<Shape> unsqueezedShape(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> axes);
llvm::FailureOr<Shape> squeezedShape(llvm::ArrayRef<int64_t> shape, std::optional<llvm::SmallVector<int64_t>> axes);

} // namespace par
