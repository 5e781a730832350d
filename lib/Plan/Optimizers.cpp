//===- Optimizers.cpp - the optimizers of a plan and what each is told
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "par/Plan/Optimizers.h"

#include "llvm/ADT/STLExtras.h"

namespace par {

static constexpr OptimizerSetting momentumSettings[] = {
    {"momentum", "momentum", 0.9, &PlanOptimizer::momentum},
    {"nesterov", "nesterov", 0, nullptr, &PlanOptimizer::nesterov},
};
static constexpr OptimizerSetting adamwSettings[] = {
    {"betas", "beta1", 0.9, &PlanOptimizer::beta1},
    {"betas", "beta2", 0.999, &PlanOptimizer::beta2},
    {"eps", "epsilon", 1e-8, &PlanOptimizer::eps},
};

static constexpr OptimizerKind kinds[] = {
    {"sgd", {}, 0},
    {"momentum", momentumSettings, 0},
    {"adamw", adamwSettings, 0.01},
};

double settingOf(const PlanOptimizer &optimizer, const OptimizerSetting &setting) {
  return setting.flag ? *(optimizer.*setting.flag) : *(optimizer.*setting.number);
}

llvm::ArrayRef<OptimizerKind> getOptimizerKinds() { return kinds; }

const OptimizerKind *findOptimizerKind(llvm::StringRef name) {
  const OptimizerKind *found = llvm::find_if(kinds, [&](const OptimizerKind &kind) { return kind.name == name; });
  return found == std::end(kinds) ? nullptr : found;
}

} // namespace par
