#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Attention.h"

using namespace mlir;

namespace par {
namespace {

/// Matmuls over all scores, which are computed whether they are masked or not, and `perScore` operations for each
/// score. Not fusable: a library call of its own.
template <typename Op, int products, int64_t perScore>
struct AttentionCost : CostOpInterface::ExternalModel<AttentionCost<Op, products, perScore>, Op> {
  int64_t getFlops(Operation *op) const {
    Heads heads(cast<Op>(op));
    int64_t scores = heads.batch * heads.heads * heads.queries * heads.keys;
    return scores * (products * (heads.width + heads.valueWidth) + perScore);
  }
  bool isFusable(Operation *) const { return false; }
};

} // namespace

void registerAttentionCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    // q k^T and p v; backward q k^T, ct v^T, p^T ct, t k and t^T q.
    attachOnce<AttentionOp, AttentionCost<AttentionOp, 2, 16>>(*context);
    attachOnce<AttentionGradOp, AttentionCost<AttentionGradOp, 5, 16>>(*context);
  });
}

} // namespace par
