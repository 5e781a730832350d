#include "MovedElements.h"

#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Par.h"

using namespace mlir;

namespace par {

bool movesElementsOf(OpOperand &use) {
  auto isAddress = [](Value value) { return isa<IntegerType>(getElementTypeOrSelf(value.getType())); };
  Operation *op = use.getOwner();
  return use.getOperandNumber() == 0 && op->getNumResults() == 1 && isTensorOp(op) && movesElements(op) &&
         llvm::all_of(llvm::drop_begin(op->getOperands()), isAddress);
}

bool isLookup(OpOperand &use) { return use.getOwner()->getNumOperands() > 1 && movesElementsOf(use); }

} // namespace par
