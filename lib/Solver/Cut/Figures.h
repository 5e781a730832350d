// The figures of a cut, for searches that compare many.
#pragma once

#include "StepPlay.h"

namespace par {

/// Each stage's work, without its links.
std::vector<StageTimes> timesOf(const StageCutProblem &problem, llvm::ArrayRef<unsigned> stageOf);

/// StageCutProblem::evaluate with a play made before.
StageCut evaluateCut(const StageCutProblem &problem, const StepPlay &play, std::vector<unsigned> stageOf);

} // namespace par
