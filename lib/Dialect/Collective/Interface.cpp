#include "par/Dialect/Par.h"

using namespace mlir;

#include "par/Dialect/Interfaces/Collective.cpp.inc"

StringRef par::getQueue(Operation *op) {
  auto collective = dyn_cast_or_null<CollectiveOpInterface>(op);
  return collective ? collective.getQueue() : StringRef();
}
