// The optimizers of a plan and their settings.
#pragma once

#include "par/Plan/Model/Plan.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace par {

/// One setting of an optimizer: a number, or true or false.
struct OptimizerSetting {
  const char *key;       ///< below train.optimizer; settings of one key are a list there
  const char *attribute; ///< of the op
  double value;          ///< the default
  /// Where the plan keeps it: one of both.
  WithOrigin<double> PlanOptimizer::*number;
  WithOrigin<bool> PlanOptimizer::*flag = nullptr;
  /// Limits of the number: outside of them the update divides by zero or diverges.
  double least = 0, most = 1;
  const char *range = "a number from 0 to 1"; ///< in words
};

/// The plan's value of a setting.
double settingOf(const PlanOptimizer &optimizer, const OptimizerSetting &setting);

/// One optimizer, by the word for it, which is its op's name too.
struct OptimizerKind {
  const char *name;
  llvm::ArrayRef<OptimizerSetting> settings; ///< those of one key are consecutive
  double weightDecay;                        ///< if the plan has none
};

llvm::ArrayRef<OptimizerKind> getOptimizerKinds();

/// Null if there is none.
const OptimizerKind *findOptimizerKind(llvm::StringRef name);

/// The optimizers that a key is of: "momentum", "a and b".
std::string ownersOfSetting(llvm::StringRef key);

} // namespace par
