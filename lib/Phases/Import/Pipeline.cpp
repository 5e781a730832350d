// The order of Import's passes after the file is read.
#include "par/Phases/Import/Passes.h"

using namespace mlir;

namespace par {

void buildImportPipeline(OpPassManager &manager, const CarryStatePassOptions &carry) {
  // No canonicalization here: it would merge the constants of different layers, which may be on different stages.
  manager.addPass(createCarryStatePass(carry));
  manager.addPass(createFoldEmptyValuesPass());
  manager.addPass(createIgnoreCutPositionsPass());
  manager.addPass(createUnfoldDimsPass());
  manager.addPass(createSplitMergedDimsPass());
  manager.addPass(createVerifyImportPass());
}

namespace {
struct ImportSettings : PassPipelineOptions<ImportSettings> {
  ListOption<std::string> carry{*this, "carry",
                                llvm::cl::desc("outputs that are inputs of the next call, output=input")};
};
} // namespace

void registerImportPipeline() {
  PassPipelineRegistration<ImportSettings>(
      "par-import", "a step as it was read into one with carried state, unfolded dims and split merges",
      [](OpPassManager &manager, const ImportSettings &settings) {
        CarryStatePassOptions carry;
        carry.pairs.assign(settings.carry.begin(), settings.carry.end());
        buildImportPipeline(manager, carry);
      });
}

} // namespace par
