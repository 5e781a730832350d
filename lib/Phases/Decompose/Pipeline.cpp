// The order of Decompose's passes. Chunks first: a gather that is cut is flattened piece by piece.
#include "par/Phases/Decompose/Passes.h"

using namespace mlir;

namespace par {

void buildDecomposePipeline(OpPassManager &manager, const DecomposeCollectivesPassOptions &options) {
  manager.addPass(createDecomposeCollectivesPass(options));
  manager.addPass(createFlattenCollectivesPass());
  manager.addPass(createVerifyDecomposePass());
}

} // namespace par
