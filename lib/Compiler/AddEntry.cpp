// Two imports of one model, of other sizes, as two steps of one module.
#include "AddEntry.h"

#include "par/Dialect/Modes.h"
#include "par/Phases/Import/Import.h"
#include "par/Phases/Split/Passes.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace par {

static std::string nameIn(StringRef entry, StringRef name) { return (entry + "." + name).str(); }

static ArrayAttr namesIn(StringRef entry, ArrayAttr names) {
  Builder builder(names.getContext());
  return builder.getArrayAttr(llvm::map_to_vector(names.getAsRange<StringAttr>(), [&](StringAttr name) -> Attribute {
    return builder.getStringAttr(nameIn(entry, name));
  }));
}

static DictionaryAttr keysIn(StringRef entry, DictionaryAttr facts) {
  NamedAttrList renamed;
  for (NamedAttribute fact : facts)
    renamed.append(nameIn(entry, fact.getName()), fact.getValue());
  return renamed.getDictionary(facts.getContext());
}

/// Names of inputs and outputs, also where facts of them are kept.
static void rename(StepOp step, StringRef entry) {
  step.setSymName(entry);
  step.setInputsAttr(namesIn(entry, *step.getInputs()));
  step.setOutputsAttr(namesIn(entry, *step.getOutputs()));
  for (StringRef facts : {outputBatchDims, batchOfOneAttr})
    if (auto said = step->getAttrOfType<DictionaryAttr>(facts))
      step->setAttr(facts, keysIn(entry, said));
  if (auto names = step->getAttrOfType<ArrayAttr>(unsignedNames))
    step->setAttr(unsignedNames, namesIn(entry, names));
}

/// Adds a variable, unless an equal one is there. A table that the sizes have changed gets a name of its own.
static LogicalResult addVariable(ModuleOp into, ModuleOp from, VariableOp variable, StringRef entry) {
  auto known = into.lookupSymbol<VariableOp>(variable.getSymName());
  if (known && known->getAttrDictionary() == variable->getAttrDictionary())
    return success();
  if (known && known.getKind() != VariableKind::constant)
    return variable.emitError() << "\"" << variable.getSymName() << "\" is " << variable.getTensorType() << " in entry "
                                << entry << " and " << known.getTensorType()
                                << " in the other; entries share their variables, so a dim of one must not depend on a "
                                   "size that "
                                << entry << " changes";
  if (known) {
    auto own = StringAttr::get(into.getContext(), nameIn(entry, variable.getSymName()));
    if (failed(SymbolTable::replaceAllSymbolUses(variable.getSymNameAttr(), own, from)))
      return failure();
    variable.setSymNameAttr(own);
  }
  variable->moveBefore(into.getBody(), into.getBody()->begin());
  return success();
}

LogicalResult addEntry(ModuleOp into, ModuleOp from, StringRef name) {
  for (auto variable : llvm::make_early_inc_range(from.getOps<VariableOp>()))
    if (failed(addVariable(into, from, variable, name)))
      return failure();
  StepOp step = *from.getOps<StepOp>().begin();
  rename(step, name);
  step->moveBefore(into.getBody(), into.getBody()->end());
  return success();
}

} // namespace par
