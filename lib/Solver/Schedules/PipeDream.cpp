// PipeDream (Narayanan et al. 2019): 1F1B without a flush. Every batch updates; stage s computes with the weights of
// p - 1 - s updates ago, which are those that its device has when the batch's forward comes, and keeps them for its
// backward. The order is 1F1B's over all batches between two flushes.
#include "OneForwardOneBackward.h"

using namespace par;

static unsigned pipeDreamBehind(unsigned stage, unsigned stages) { return stages - 1 - stage; }

namespace par::schedules {
extern const Schedule PipeDream;
const Schedule PipeDream = {
    .name = "pipedream",
    .summary = "asynchronous: every batch updates, stage s is p-1-s updates behind; one version of the weights for each",
    .order = oneForwardOneBackwardOrder,
    .bubble = oneForwardOneBackwardBubble,
    .behind = pipeDreamBehind,
    .mostMicrobatches = 1,
};
} // namespace par::schedules
