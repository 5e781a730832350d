// PipeDream-2BW (Narayanan et al. 2021): 1F1B over the microbatches of all batches between two flushes. Each batch
// computes with weights one update old, so that the device keeps two versions for any number of stages. A batch has at
// least as many microbatches as there are stages: its forwards then come after the update that they wait for.
#include "OneForwardOneBackward.h"

using namespace par;

static unsigned pipeDream2BWBehind(unsigned, unsigned stages) { return stages > 1; }

namespace par::schedules {
extern const Schedule PipeDream2BW;
const Schedule PipeDream2BW = {
    .name = "pipedream-2bw",
    .summary = "asynchronous: every batch of p microbatches or more updates, all stages use weights one update "
               "old; two versions of the weights",
    .order = oneForwardOneBackwardOrder,
    .bubble = oneForwardOneBackwardBubble,
    .behind = pipeDream2BWBehind,
    .microbatchForEachStage = true,
};
} // namespace par::schedules
