#pragma once

#include "par/Dialect/Par.h"

#include "llvm/Support/ErrorHandling.h"

#include <cstring>

namespace par {

/// Attaches a model of an interface to the op. MLIR silently keeps the first of two models, so an op listed twice would
/// use another one than the code suggests: this ends the process, with both names. The same model twice is allowed:
/// extensions run once for each registry of a context.
template <typename Op, typename Model>
void attachOnce(mlir::MLIRContext &context) {
  using Interface = typename Model::Interface;
  using Concept = typename Interface::Concept;
  std::optional<mlir::RegisteredOperationName> name =
      mlir::RegisteredOperationName::lookup(mlir::TypeID::get<Op>(), &context);
  if (!name)
    llvm::reportFatalInternalError(llvm::Twine(Op::getOperationName()) + " is not registered");
  const Concept *known = name->getInterface<Interface>();
  if (!known)
    return Op::template attachInterface<Model>(context);
  // A model is the table of its functions.
  Model model;
  if (std::memcmp(known, static_cast<const Concept *>(&model), sizeof(Concept)) != 0)
    llvm::reportFatalInternalError(llvm::Twine(Op::getOperationName()) + " has two models of " +
                                   llvm::getTypeName<Interface>() + ": it is listed twice");
}

} // namespace par
