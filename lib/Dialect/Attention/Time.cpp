#include "par/Base/TypeSize.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Attention.h"
#include "par/Dialect/Interfaces/Timed.h"

using namespace mlir;

namespace par {
namespace {

template <typename Op, bool backward>
struct AttentionTime : TimedOpInterface::ExternalModel<AttentionTime<Op, backward>, Op> {
  Cost getTime(Operation *op, const CostTable &costs) const {
    auto attention = cast<Op>(op);
    Heads heads(attention);
    AttentionShape shape{formatOf(attention.getQuery().getType()),
                         backward,
                         heads.batch,
                         heads.heads,
                         heads.groups,
                         heads.queries,
                         heads.keys,
                         heads.width,
                         heads.valueWidth,
                         attention.getCausal()};
    return costs.attention(shape, getByteSize(op->getOperands()) + getByteSize(op->getResults()));
  }
};

} // namespace

void registerAttentionTimes(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<AttentionOp, AttentionTime<AttentionOp, false>>(*context);
    attachOnce<AttentionGradOp, AttentionTime<AttentionGradOp, true>>(*context);
  });
}

} // namespace par
