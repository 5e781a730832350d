#include "par/Base/Tensor.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Beside.h"
#include "par/Dialect/Interfaces/Interpretable.h"

using namespace mlir;
using namespace par::interp;

namespace par {
namespace {

/// A collective is interpreted at its start; its `done` does nothing.
struct DoneInterpreter : InterpretableOpInterface::ExternalModel<DoneInterpreter, DoneOp> {
  FailureOr<SmallVector<Tensor>> interpret(Operation *op, ArrayRef<Tensor> operands) const {
    return llvm::to_vector(operands.take_front(op->getNumResults()));
  }
};

} // namespace

void registerBesideInterpretations(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) { attachOnce<DoneOp, DoneInterpreter>(*context); });
}

} // namespace par
