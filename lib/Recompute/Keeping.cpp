#include "Keeping.h"

#include "par/Import/Provenance.h"

using namespace mlir;

namespace par {

FailureOr<Keeping> Keeping::parse(ModuleOp module, StringRef mode, StringRef each) {
  Keeping keeping;
  if (mode != "none" && mode != "full" && mode != "each")
    return module.emitError() << "mode is none, full or each, found \"" << mode << "\"";
  keeping.mode = mode == "none" ? None : mode == "full" ? Full : Each;
  if (keeping.mode != Each)
    return keeping;
  std::string why;
  std::optional<NamePattern> pattern = NamePattern::parse(each, why);
  if (!pattern)
    return module.emitError() << "each is \"" << each << "\": " << why;
  keeping.pattern = *pattern;
  return keeping;
}

StringRef Keeping::moduleOf(Operation *op) const {
  std::optional<Provenance> from = getProvenance(op->getLoc());
  if (!from)
    return "";
  // The outermost one, so that a pattern that matches a module and one inside it means the whole.
  for (size_t dot = from->module.find('.');; dot = from->module.find('.', dot + 1)) {
    StringRef around = from->module.take_front(dot);
    if (!around.empty() && pattern.matchesName(around))
      return around;
    if (dot == StringRef::npos)
      return "";
  }
}

bool Keeping::keeps(Value value) const {
  if (mode != Each)
    return mode == None;
  Operation *source = value.getDefiningOp();
  if (!source)
    return false; // an argument is passed on, not kept
  StringRef module = moduleOf(source);
  if (module.empty())
    return true;
  // What flows into another matching module is what that one is computed again from.
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    StringRef other = isa<ReturnOp>(user) ? "" : moduleOf(user);
    return !other.empty() && other != module;
  });
}

FragmentOp fragmentOf(RunOp run) {
  return SymbolTable::lookupNearestSymbolFrom<FragmentOp>(run, run.getFragmentAttr());
}

SmallVector<RunPair> findPairs(StepOp step) {
  SmallVector<RunPair> pairs;
  step.walk([&](RunOp backward) {
    FragmentOp fragment = fragmentOf(backward);
    if (fragment.getKind() != FragmentKind::backward && fragment.getKind() != FragmentKind::weight)
      return;
    SmallVector<RunOp> seen;
    for (Value operand : backward.getOperands()) {
      auto forward = operand.getDefiningOp<RunOp>();
      if (!forward || forward->getBlock() != backward->getBlock() || llvm::is_contained(seen, forward) ||
          fragmentOf(forward).getKind() != FragmentKind::forward)
        continue;
      seen.push_back(forward);
      pairs.push_back({forward, backward});
    }
  });
  return pairs;
}

} // namespace par
