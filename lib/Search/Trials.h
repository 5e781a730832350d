// Candidates that are compiled whole and played.
#pragma once

#include "par/Search/Search.h"

#include "llvm/ADT/ArrayRef.h"

#include <atomic>
#include <future>

namespace par {

/// A candidate that was compiled, and its figures.
struct PlayedTrial {
  Compiled compiled;
  Simulation simulation;
  Estimate figures;
};

/// Compiles and plays candidates of one model under a user's plan. Several threads may ask at once: each trial has a
/// context of its own.
class Trials {
public:
  /// All outlive this. `limit`: bytes of a rank.
  Trials(const std::shared_ptr<const Model> &model, const PlanText &text, const Hardware &hardware,
         std::optional<uint64_t> limit)
      : model(model), text(text), hardware(hardware), limit(limit) {}

  /// Nothing: it does not compile, or `stops` has become true. `more`: further settings of the plan.
  std::optional<PlayedTrial> play(const Space &space, const Candidate &candidate,
                                  const std::atomic<bool> *stops = nullptr,
                                  llvm::ArrayRef<std::string> more = {}) const;

private:
  const std::shared_ptr<const Model> &model;
  const PlanText &text;
  const Hardware &hardware;
  const std::optional<uint64_t> limit;
};

/// The trial of the candidate that looks best while others are still profiled, on a thread of its own: profiles leave a
/// core idle. The plan that is found does not depend on it.
class EarlyTrial {
public:
  EarlyTrial(const Trials &trials, const Space &space) : trials(trials), space(space) {}
  ~EarlyTrial() { stop(); }

  /// Begins with this candidate, unless it has; another one's trial ends after its phase.
  void start(const Candidate &candidate);
  void stop();
  /// Whether its outcome can be taken.
  bool isOf(const Candidate &candidate) const { return of == candidate && running.valid(); }
  /// Waits for the outcome; once.
  std::optional<PlayedTrial> take() { return running.get(); }

private:
  const Trials &trials;
  const Space &space;
  std::optional<Candidate> of;
  std::atomic<bool> stops = false;
  std::future<std::optional<PlayedTrial>> running;
};

} // namespace par
