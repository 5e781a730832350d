#include "par/Phases/Import/Import.h"
#include "par/Phases/Import/Passes.h"

#include "mlir/Pass/PassManager.h"

namespace par {

#define GEN_PASS_DEF_READONNXPASS
#include "par/Phases/Import/Passes.h.inc"

using namespace mlir;

namespace {

struct ReadOnnxPass : impl::ReadOnnxPassBase<ReadOnnxPass> {
  using ReadOnnxPassBase::ReadOnnxPassBase;

  /// Fills a map from options of the form `key=value`; false at one that is not.
  template <class Add>
  bool readPairs(ArrayRef<std::string> pairs, Add add) {
    return llvm::all_of(pairs, [&](StringRef pair) {
      auto [key, value] = pair.split('=');
      return !key.empty() && !value.empty() && add(key.str(), value);
    });
  }

  std::vector<ParameterTie> ties;

  /// The option's pairs name initializers.
  LogicalResult tieParameters(onnx::Model &file) {
    for (ParameterTie &tie : ties) {
      const std::vector<int64_t> *shapes[] = {nullptr, nullptr};
      for (const onnx::Tensor &tensor : file.initializers)
        if (tensor.name == tie.name || tensor.name == tie.owner)
          shapes[tensor.name == tie.owner] = &tensor.dims;
      if (!shapes[0] || !shapes[1])
        return emitError(FileLineColLoc::get(&getContext(), StringRef(model), 0, 0))
               << "tie says \"" << tie.name << "\" is \"" << tie.owner << "\", and "
               << (shapes[0] ? tie.owner : tie.name) << " is no initializer";
      tie.transposed = *shapes[0] != *shapes[1];
    }
    tieInModel(file, ties);
    return success();
  }

  LogicalResult readOptions(ImportOptions &result) {
    bool read = readPairs(
        dims, [&](std::string symbol, StringRef size) { return !size.getAsInteger(10, result.dims[symbol]); });
    read &= readPairs(values, [&](std::string input, StringRef value) {
      result.values[input] = value.str();
      return true;
    });
    read &= readPairs(tie, [&](std::string name, StringRef other) {
      ties.push_back({std::move(name), other.str()});
      return true;
    });
    if (batch > 0)
      result.batch = batch;
    result.train = train;
    result.allowLost = allowLost;
    if (!loss.empty()) {
      result.loss.emplace();
      result.loss->kind = loss;
      result.loss->output = output;
      result.loss->labels = labels;
      result.loss->shift = shift;
      result.loss->smoothing = smoothing;
    }
    return success(read);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    ImportOptions wanted;
    if (failed(readOptions(wanted))) {
      module.emitError("dims, values and tie are lists of key=value");
      return signalPassFailure();
    }
    if (!module.getBody()->empty()) {
      module.emitError("expected an empty module to import into");
      return signalPassFailure();
    }
    std::string reason;
    std::optional<onnx::Model> file = onnx::readModel(model, reason);
    if (!file) {
      emitError(FileLineColLoc::get(&getContext(), StringRef(model), 0, 0)) << reason;
      return signalPassFailure();
    }
    if (failed(tieParameters(*file)))
      return signalPassFailure();
    OwningOpRef<ModuleOp> imported = importModel(*file, wanted, &getContext());
    if (!imported)
      return signalPassFailure();
    module.getBody()->getOperations().splice(module.getBody()->end(), imported->getBody()->getOperations());
  }
};

} // namespace

} // namespace par
