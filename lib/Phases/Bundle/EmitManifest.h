#pragma once

#include "Layouts.h"
#include "par/Phases/Bundle/Bundle.h"

namespace par {

/// Says how values of batches are averaged, by the results that -par-count-results gives @eval.
void sayMeans(std::vector<format::Output> &outputs);

/// Writes a bundle's manifest. `bundle` has its programs; the caller fills in the communicators.
class ManifestEmitter {
public:
  ManifestEmitter(mlir::ModuleOp module, const BundleOptions &options, format::Bundle &bundle)
      : module(module), options(options), bundle(bundle), out(bundle.manifest) {}

  mlir::LogicalResult emit();

private:
  mlir::LogicalResult emitRanks();
  mlir::LogicalResult emitTensors();
  mlir::LogicalResult emitTensor(VariableOp variable);
  mlir::LogicalResult emitHyper(VariableOp variable);
  mlir::LogicalResult emitInitialValue(VariableOp variable, format::Tensor &tensor);
  format::DType fileType(llvm::StringRef name, mlir::Type element);
  mlir::LogicalResult emitInput(BufferOp buffer, StageOp stage);
  mlir::LogicalResult emitOutput(FetchOp fetch, ProgramOp program);
  mlir::LogicalResult emitInterface();
  uint64_t placeConstant(mlir::DenseElementsAttr value);
  std::optional<format::Source> sourceOf(VariableOp variable) const;
  void findStates();

  mlir::ModuleOp module;
  const BundleOptions &options;
  format::Bundle &bundle;
  format::Manifest &out;
  std::string constants;
  llvm::SmallVector<std::pair<ProgramOp, llvm::StringMap<BufferOp>>> states; ///< state buffers by variable
  llvm::DenseMap<mlir::Attribute, uint64_t> constantPlaces;
  LayoutTable layouts;
};

/// The rule that a text names: zeros, ones, constant(c), normal(s), uniform(a). None if it is no rule.
std::optional<format::InitRule> parseInitRule(llvm::StringRef text);

} // namespace par
