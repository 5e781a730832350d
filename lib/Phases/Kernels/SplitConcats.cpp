#include "Groups.h"

using namespace mlir;

namespace par {

/// Inputs of one concatenation.
static constexpr size_t maxInputs = 32;

void splitConcats(BlockOp block) {
  for (auto concat : llvm::make_early_inc_range(block.getOps<ConcatOp>())) {
    SmallVector<Value> inputs(concat.getInputs());
    OpBuilder builder(concat);
    while (inputs.size() > maxInputs) {
      SmallVector<Value> joined;
      for (ArrayRef<Value> rest = inputs; !rest.empty();) {
        ArrayRef<Value> some = rest.take_front(maxInputs);
        joined.push_back(some.size() == 1
                             ? some.front()
                             : ConcatOp::create(builder, concat.getLoc(), some, concat.getDim()).getResult());
        rest = rest.drop_front(some.size());
      }
      inputs = std::move(joined);
    }
    if (inputs.size() < concat.getInputs().size())
      concat.getInputsMutable().assign(inputs);
  }
}

} // namespace par
