// The cost of a microbatch on a rank, for each tensor degree and number of samples that a candidate asks for: the real
// phases run on the model with one of its equal layers and with two, and the difference is one layer.
#pragma once

#include "par/Compiler/Compiler.h"
#include "par/Search/Candidate.h"
#include "par/Search/Layers.h"

#include <map>

namespace par {

/// Times and bytes of a rank that holds a part of the model in one stage; sums and multiples are those of other parts.
struct RankCost {
  int64_t forward = 0, backward = 0;         ///< ns of a microbatch, with the communication of tensor axes
  int64_t compute = 0;                       ///< of them: ns of local work
  int64_t update = 0;                        ///< ns of local work in the update, with all states on the rank
  int64_t params = 0, grads = 0, states = 0; ///< bytes
  int64_t saved = 0;                         ///< bytes that forward keeps of a microbatch
  int64_t buffers = 0;                       ///< other bytes at the peak
  /// The front of recomputation: bytes that are kept of `saved` and ns that backward takes longer, of the choices at
  /// prices of a byte that are the same for all profiles; the first keeps all. Empty: it was not asked for.
  std::vector<int64_t> kept, again;
  std::vector<double> prices; ///< ns a byte, of each; a choice of B bytes takes at least again + (kept - B) x price

  RankCost operator+(const RankCost &other) const;
  RankCost operator*(int64_t times) const;
  RankCost operator/(int64_t parts) const;
};

/// A part that does not repeat, and one of the equal layers.
struct ModelCost {
  RankCost rest, layer;
  int64_t layers = 0; ///< equal ones
  RankCost all() const { return rest + layer * layers; }
};

/// Profiles a model, each (degree, samples) once.
class Profiler {
public:
  /// `base`: settings that leave no key open but those of candidates. All outlive the profiler.
  Profiler(const std::shared_ptr<const Model> &model, const PlanText &base, const Space &space);

  /// The cost with the candidate's tensor axis and microbatch on one stage. States are whole, or counted as whole:
  /// where zero shards masters, ranks round their shards once a step and not all parameters in each microbatch, so
  /// those are profiled with zero 1, and the rounded parameters are in `buffers`. Nothing if no such plan compiles.
  const std::optional<ModelCost> &costOf(const Candidate &candidate);
  /// A cost that the candidate's is not below, from profiles that are there; nothing: they say nothing of it. Local
  /// work on several tensor ranks is at least its share of that on fewer, and their communication not less. More
  /// samples cost at least what the last two profiles' difference says, fewer at least their share. Masters that each
  /// microbatch rounds cost at least as much as those that are rounded once.
  std::optional<ModelCost> lowerCost(const Candidate &candidate) const;
  /// Whether `costOf` has the answer without compiling.
  bool isKnown(const Candidate &candidate) const { return known.count(keyOf(candidate)); }
  /// Layers of the model that can be dealt to stages: without equal ones, its nodes.
  int64_t layers() const;
  /// "h, of which 47 of 48 are equal"; empty: the model has no equal layers, and is profiled whole.
  std::string describeLayers() const;
  /// Why the first plan that did not compile did not.
  const std::string &reason() const { return one.refused; }
  size_t compilations() const { return one.compiled + two.compiled; }

  /// By tensor degree, its rules, samples, and whether masters are sharded.
  using Key = std::tuple<int64_t, int64_t, int64_t, bool>;
  Key keyOf(const Candidate &candidate) const {
    return {candidate.tensor, candidate.rules(), candidate.samples, space.rounds && candidate.zero > 0};
  }

private:
  /// A model with few layers, and its first trial, from whose import later ones go on.
  struct Thin {
    std::shared_ptr<const Model> model;
    std::optional<Compiled> first;
    size_t compiled = 0;
    std::string refused;
  };
  int64_t batchOf(const Candidate &candidate) const;
  /// The candidate that is profiled for it.
  Candidate profiled(const Candidate &candidate) const;
  /// `plain`: see `profiled`.
  std::optional<RankCost> measure(Thin &thin, const Candidate &plain) const;

  const PlanText &base;
  const Space &space;
  int64_t batch; ///< samples of a profile's step
  std::optional<LayerStack> stack;
  Thin one, two; ///< with so many equal layers; `one` is whole without a stack
  /// The cost with so many samples, by profiles with these degrees.
  std::optional<ModelCost> bySamples(int64_t tensor, int64_t rules, int64_t samples, bool sharded) const;
  std::map<Key, std::optional<ModelCost>> known;
};

} // namespace par
