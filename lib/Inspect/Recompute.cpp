#include "par/Inspect/Recompute.h"

namespace par {

RecomputeFacts describeRecompute(const Compiled &compiled) {
  const Plan &plan = compiled.planned.plan.plan;
  RecomputeFacts facts;
  facts.mode = PlanRecompute::nameOf(plan.train ? *plan.recompute.kind : PlanRecompute::None).str();
  facts.given = plan.recompute.kind.given();
  facts.moves = plan.train && plan.offload.saved;
  facts.limit = compiled.planned.recomputeLimit();
  facts.microbatches = plan.rounds();
  facts.stages = compiled.recomputes;
  return facts;
}

} // namespace par
