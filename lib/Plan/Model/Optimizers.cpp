// The optimizers of a plan and their settings.
#include "par/Plan/Model/Optimizers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace par {

static constexpr OptimizerSetting momentumSettings[] = {
    {"momentum", "momentum", 0.9, &PlanOptimizer::momentum},
    {"nesterov", "nesterov", 0, nullptr, &PlanOptimizer::nesterov},
};
// The first steps divide by 1 - beta, which is 0 in f32 a little below 1 already; a weight whose gradients were all 0,
// as of an embedding that no sample took, by eps.
static constexpr double maxBeta = 0.999999, minEps = 1e-37, maxEps = 3.4e38;
static constexpr const char *betaRange = "numbers from 0 to 0.999999", *epsRange = "a number of at least 1e-37";
static constexpr const char *lionRange = "numbers from 0 to 1"; // it divides by nothing
static constexpr OptimizerSetting adamwSettings[] = {
    {"betas", "beta1", 0.9, &PlanOptimizer::beta1, nullptr, 0, maxBeta, betaRange},
    {"betas", "beta2", 0.999, &PlanOptimizer::beta2, nullptr, 0, maxBeta, betaRange},
    {"eps", "epsilon", 1e-8, &PlanOptimizer::eps, nullptr, minEps, maxEps, epsRange},
};
static constexpr OptimizerSetting lionSettings[] = {
    {"betas", "beta1", 0.9, &PlanOptimizer::beta1, nullptr, 0, 1, lionRange},
    {"betas", "beta2", 0.99, &PlanOptimizer::beta2, nullptr, 0, 1, lionRange},
};
static constexpr OptimizerSetting muonSettings[] = {
    {"momentum", "momentum", 0.95, &PlanOptimizer::momentum},
    {"nesterov", "nesterov", 1, nullptr, &PlanOptimizer::nesterov},
};

static constexpr OptimizerKind kinds[] = {
    {"sgd", {}, 0},
    {"momentum", momentumSettings, 0},
    {"adamw", adamwSettings, 0.01},
    {"lion", lionSettings, 0},
    {"muon", muonSettings, 0.1},
};

double settingOf(const PlanOptimizer &optimizer, const OptimizerSetting &setting) {
  return setting.flag ? *(optimizer.*setting.flag) : *(optimizer.*setting.number);
}

llvm::ArrayRef<OptimizerKind> getOptimizerKinds() { return kinds; }

const OptimizerKind *findOptimizerKind(llvm::StringRef name) {
  const OptimizerKind *found = llvm::find_if(kinds, [&](const OptimizerKind &kind) { return kind.name == name; });
  return found == std::end(kinds) ? nullptr : found;
}

std::string ownersOfSetting(llvm::StringRef key) {
  std::vector<std::string> names;
  for (const OptimizerKind &kind : kinds)
    if (llvm::any_of(kind.settings, [&](const OptimizerSetting &setting) { return key == setting.key; }))
      names.push_back(kind.name);
  return llvm::join(names, " and ");
}

} // namespace par
