#include "par/Dialect/Attach.h"
#include "par/Dialect/Concerns.h"
#include "par/Dialect/Interfaces/Optimizer.h"

#include "par/Dialect/Interfaces/Optimizer.cpp.inc"

using namespace mlir;

namespace par {
namespace {

struct SgdStates : OptimizerOpInterface::ExternalModel<SgdStates, SgdOp> {
  static ArrayRef<StringRef> getStates() { return {}; }
  static bool countsSteps() { return false; }
};

struct MomentumStates : OptimizerOpInterface::ExternalModel<MomentumStates, MomentumOp> {
  static ArrayRef<StringRef> getStates() {
    static constexpr StringRef states[] = {".momentum"};
    return states;
  }
  static bool countsSteps() { return true; }
};

struct AdamwStates : OptimizerOpInterface::ExternalModel<AdamwStates, AdamwOp> {
  static ArrayRef<StringRef> getStates() {
    static constexpr StringRef states[] = {".m", ".v"};
    return states;
  }
  static bool countsSteps() { return true; }
};

struct LionStates : OptimizerOpInterface::ExternalModel<LionStates, LionOp> {
  static ArrayRef<StringRef> getStates() {
    static constexpr StringRef states[] = {".lion"}; // of no other optimizer: saves tell them apart by these
    return states;
  }
  static bool countsSteps() { return false; }
};

struct MuonStates : OptimizerOpInterface::ExternalModel<MuonStates, MuonOp> {
  static ArrayRef<StringRef> getStates() {
    static constexpr StringRef states[] = {".muon"};
    return states;
  }
  static bool countsSteps() { return false; }
  static bool updatesMatrices() { return true; }
};

} // namespace

void registerOptimizers(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<SgdOp, SgdStates>(*context);
    attachOnce<MomentumOp, MomentumStates>(*context);
    attachOnce<AdamwOp, AdamwStates>(*context);
    attachOnce<LionOp, LionStates>(*context);
    attachOnce<MuonOp, MuonStates>(*context);
  });
}

std::optional<Optimizer> findOptimizer(MLIRContext *context, StringRef kind) {
  std::string op = kind.contains('.') ? kind.str() : ("par." + kind).str();
  auto name = RegisteredOperationName::lookup(op, context);
  const auto *facts = name ? name->getInterface<OptimizerOpInterface>() : nullptr;
  if (!facts)
    return std::nullopt;
  return Optimizer{*name, facts};
}

SmallVector<StringRef> optimizerKinds(MLIRContext *context) {
  SmallVector<StringRef> kinds;
  for (RegisteredOperationName name : context->getRegisteredOperations())
    if (name.hasInterface<OptimizerOpInterface>()) {
      StringRef word = name.getStringRef();
      word.consume_front("par.");
      kinds.push_back(word);
    }
  llvm::sort(kinds);
  return kinds;
}

} // namespace par
