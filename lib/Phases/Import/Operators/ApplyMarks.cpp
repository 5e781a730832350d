// Training marks as ops of the step: values without a gradient, embeddings with PyTorch's gradient, means over all
// steps.
#include "ApplyMarks.h"
#include "../Parameters/TrainingMarks.h"
#include "Indices.h"
#include "Operands.h"

namespace par {

using namespace mlir;

/// 1 / the number of the batch's lookups of each index, in a float type.
static Value inverseCounts(NodeImporter &importer, Value indices, int64_t size, Type element) {
  OpBuilder &builder = importer.builder;
  auto type = cast<RankedTensorType>(indices.getType());
  Value ones = importer.splat(type.clone(builder.getI32Type()), 1);
  Value counts = IndexAddOp::create(builder, importer.loc, RankedTensorType::get({size}, builder.getI32Type()), ones,
                                    indices, 0, size);
  Value own = gatherAt(importer, counts, indices, 0);
  return 1.0 / termOf(importer, own).convert(element);
}

bool GraphImporter::hasGradient(Value value) {
  SmallVector<Value> pending{value};
  while (!pending.empty()) {
    Value next = pending.back();
    Operation *op = next.getDefiningOp();
    auto read = dyn_cast_or_null<ReadOp>(op);
    if (reached.contains(next)) {
      pending.pop_back();
    } else if (read || !op || !isa<FloatType>(getElementTypeOrSelf(next))) {
      reached[next] = read && parameters.trainable.contains(read.getVariable());
    } else {
      auto unknown = llvm::find_if(op->getOperands(), [&](Value operand) { return !reached.contains(operand); });
      if (unknown != op->operand_end())
        pending.push_back(*unknown);
      else
        reached[next] = llvm::any_of(op->getOperands(), [&](Value operand) { return reached.lookup(operand); });
    }
  }
  return reached.lookup(value);
}

/// Integers of the same bits have no gradient.
Value NodeImporter::stopGradient(Value value) {
  if (!trains() || !graph.hasGradient(value))
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  auto bits = type.clone(builder.getIntegerType(type.getElementTypeBitWidth()));
  return BitCastOp::create(builder, loc, type, BitCastOp::create(builder, loc, bits, value));
}

FailureOr<Value> NodeImporter::stepsAveraged(size_t i, Type element) {
  VariableOp variable = movedVariable(i);
  StringRef module = variable ? variable.getSymName() : StringRef();
  if (!module.consume_back("running_mean"))
    return Value();
  module.consume_back(".");
  if (!graph.marks.cumulative.contains(module))
    return Value();
  Value counter = graph.values.lookup(batchNormCounter(module)).computed;
  if (!counter || cast<RankedTensorType>(counter.getType()).getRank() != 0)
    return error() << "its counter \"" << batchNormCounter(module) << "\" is no number";
  return Value(termOf(*this, counter).convert(element) + double(++graph.averaged[module]));
}

const EmbeddingMark *NodeImporter::embeddingMark() const {
  auto found = graph.marks.embeddings.find(node.name);
  return found == graph.marks.embeddings.end() || !trains() ? nullptr : &found->second;
}

FailureOr<Value> markEmbedding(NodeImporter &importer, Value rows, Value indices, int64_t dim, int64_t size) {
  const EmbeddingMark *mark = importer.embeddingMark();
  if (!mark)
    return rows;
  Term picked = termOf(importer, rows);
  int64_t padding = mark->paddingRow.value_or(0);
  if (dim != 0 || padding < 0 || padding >= size || !isa<FloatType>(picked.getType().getElementType()))
    return importer.error() << "metadata \"par.training\" says that it is an embedding with a row " << padding
                            << ", and it takes " << picked.getType() << " along dim " << dim << ", which has " << size;
  Term index = termOf(importer, indices), held = picked.with(importer.stopGradient(picked));
  SmallVector<int64_t> dims = dimRange(0, index.getType().getRank());
  if (mark->byFrequency) {
    // Forward adds zero; backward multiplies.
    Term share = picked.with(inverseCounts(importer, indices, size, picked.getType().getElementType()));
    picked = held + (picked - held) * share.broadcast(dims, picked.getShape());
  }
  if (mark->paddingRow)
    picked = index.compare(Predicate::eq, double(padding)).broadcast(dims, picked.getShape()).select(held, picked);
  return Value(picked);
}

} // namespace par
