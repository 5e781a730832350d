// Settings that make a plan fit a memory limit, found by compiling the model with each.
#pragma once

#include "par/Compiler/Compiler.h"

namespace par {

/// Maximum bytes of a rank, and the predicted time of a step.
struct Measures {
  uint64_t peak = 0;
  int64_t stepNs = 0;
};

/// A setting that saves memory, as --set takes it and as a plan has it.
struct Way {
  std::string setting, spelled; ///< "zero.level=3", "zero: 3"
  Measures measures;
};

struct WaysOut {
  Measures plan;            ///< as it is
  std::vector<Way> helpful; ///< settings that each save memory; of zero's levels the one that saves most
  std::vector<Way> fitting; ///< settings that fit by themselves
  /// If none fits by itself: all helpful ones together; nothing where they do not compile.
  std::optional<Measures> together;
};

/// Compiles `model` once for each setting that the plan does not have and could, from the first phase that it changes.
/// `compiled` is the compilation that needs more than `limit` bytes. Nothing if its step cannot be predicted.
std::optional<WaysOut> findWaysOut(const std::shared_ptr<const Model> &model, const PlanText &text,
                                   const CompilerOptions &options, const Compiled &compiled, uint64_t limit);

} // namespace par
