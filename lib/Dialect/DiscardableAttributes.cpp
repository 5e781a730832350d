// The dialect's discardable attributes: on which ops each may stand, and with which value.
#include "par/Dialect/Par.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace {

struct DiscardableAttribute {
  StringLiteral name;
  StringLiteral holder; ///< in words, for the error
  bool (*mayHold)(Operation *op);
  bool (*isValid)(Attribute value);
};

bool isStep(Operation *op) { return isa<par::StepOp>(op); }
bool isEntry(Operation *op) { return isa<par::EntryOp>(op); }
bool isLoop(Operation *op) { return isa<linalg::GenericOp>(op); }

bool isCount(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getInt() > 0;
}
bool areNames(Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  return list && llvm::all_of(list, [](Attribute one) { return isa<StringAttr>(one); });
}
bool areDims(Attribute value) {
  auto dims = dyn_cast<DictionaryAttr>(value);
  return dims && llvm::all_of(dims, [](NamedAttribute dim) { return isa<IntegerAttr>(dim.getValue()); });
}
bool isMark(Attribute value) { return isa<UnitAttr>(value); }
bool areNumbers(Attribute value) { return isa<DenseI64ArrayAttr>(value); }

constexpr DiscardableAttribute known[] = {
    // Split to Schedule: calls that one entry makes (asynchronous schedules).
    {par::ParDialect::CallsAttrHelper::getNameStr(), "par.step", isStep, isCount},
    // Schedule to Bundle: the version of the weights of each run.
    {par::ParDialect::VersionsAttrHelper::getNameStr(), "par.entry", isEntry, areNumbers},
    // Import to Split: the batch dim of each output of a step that predicts with a batch of one.
    {par::ParDialect::BatchOfOneAttrHelper::getNameStr(), "par.step", isStep, areDims},
    // Import to Bundle: outputs whose batch is not dim 0 in the model.
    {par::ParDialect::OutputBatchDimsAttrHelper::getNameStr(), "par.step", isStep, areDims},
    // Split to the phase check: variables whose gradients no loop accumulates.
    {par::ParDialect::UnaccumulatedAttrHelper::getNameStr(), "par.step", isStep, areNames},
    // Import to Bundle: inputs and outputs whose integers have no sign.
    {par::ParDialect::UnsignedAttrHelper::getNameStr(), "par.step", isStep, areNames},
    // A kernel's body, lowering to Codegen: a reduction that counts earlier elements of a total order.
    {par::ParDialect::CountsEarlierAttrHelper::getNameStr(), "linalg.generic", isLoop, isMark},
    // Codegen: the key of random numbers, which becomes an argument of the kernel.
    {par::ParDialect::KeyAttrHelper::getNameStr(), "par.constant",
     [](Operation *op) { return isa<par::ConstantOp>(op); }, isMark},
};

} // namespace

LogicalResult par::ParDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  for (const DiscardableAttribute &one : known) {
    if (attribute.getName() != one.name)
      continue;
    if (!one.mayHold(op))
      return op->emitOpError() << "has the attribute " << one.name << ", which only " << one.holder << " may have";
    if (!one.isValid(attribute.getValue()))
      return op->emitOpError() << "has the attribute " << one.name << " with the value " << attribute.getValue()
                               << ", which it cannot have";
    return success();
  }
  return op->emitOpError() << "has the attribute " << attribute.getName() << ", which the dialect does not declare";
}
