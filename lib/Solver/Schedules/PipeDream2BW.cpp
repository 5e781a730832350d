// PipeDream-2BW (Narayanan et al. 2021): 1F1B over the microbatches of all batches between two flushes. Each batch
// computes with the weights of one update ago, so that the device keeps two versions, however many stages there are. A
// batch has at least as many microbatches as there are stages: the forwards of a batch then follow the update that they
// wait for.
#include "OneForwardOneBackward.h"

using namespace par;

static unsigned pipeDream2BWBehind(unsigned, unsigned stages) { return stages > 1; }

namespace par::schedules {
extern const Schedule PipeDream2BW;
const Schedule PipeDream2BW = {
    .name = "pipedream-2bw",
    .summary = "asynchronous: every batch of p microbatches or more updates, all stages one update behind; two "
               "versions of the weights",
    .order = oneForwardOneBackwardOrder,
    .bubble = oneForwardOneBackwardBubble,
    .behind = pipeDream2BWBehind,
    .microbatchForEachStage = true,
};
} // namespace par::schedules
