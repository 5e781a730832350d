// Training marks: facts of a module's training that no ONNX node can express. par.export writes them as metadata of the
// model under the key `par.training`.
#pragma once

#include "par/Onnx/Model.h"

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

namespace par {

/// How PyTorch differentiates one embedding: the gradient of its result that reaches the table.
struct EmbeddingMark {
  std::optional<int64_t> paddingRow; ///< lookups of it give no gradient (`padding_idx`)
  bool byFrequency = false;          ///< divided by how often the batch looks the row up (`scale_grad_by_freq`)
};

struct TrainingMarks {
  llvm::StringSet<> frozen;                  ///< initializers that need no gradient in PyTorch
  llvm::StringMap<EmbeddingMark> embeddings; ///< by the name of the Gather
  llvm::StringSet<>
      cumulative; ///< modules of batch norms whose moving statistics are the mean of all steps' (momentum=None)
};

/// `{"version": 1, "frozen": ["a.weight"], "embeddings": [{"node": "node_embedding", "padding_row": 1,
/// "scale_by_frequency": true}], "cumulative": ["norm"]}`, every key but the version optional; a file without it has no
/// marks. Fails with a lower-case sentence if the text is malformed or names something that the model does not have.
llvm::Expected<TrainingMarks> readTrainingMarks(const onnx::Model &model);

/// The variable that counts a batch norm's steps: "features.1.num_batches_tracked". `module` is "" if the model is the
/// batch norm.
std::string batchNormCounter(llvm::StringRef module);

} // namespace par
