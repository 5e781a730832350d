// A plan that a search looks at: values for the keys that the user's plan leaves open.
#pragma once

#include "par/Compiler/Model.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace par {

/// One choice for every open key.
struct Candidate {
  int64_t data = 1, tensor = 1, stages = 1; ///< ranks along dp, tp, pp
  bool sequence = false;                    ///< sequence parallelism beside tp
  bool lean = false;                        ///< tp shards more than pays, for the memory
  int64_t chunks = 1;                       ///< stages of one rank
  std::string schedule;                     ///< of several stages
  int64_t zero = 0;
  bool offloads = false;                 ///< the optimizer's states lie in the host's memory
  int64_t samples = 1, microbatches = 1; ///< of a microbatch on one rank; of a step
  bool dataOutside = false;              ///< neighbours along pp are nearer than those along dp: dp, pp, tp

  /// The rules of its tensor axis, as a number.
  int64_t rules() const { return 2 * lean + sequence; }
  int64_t ranks() const { return data * tensor * stages; }
  bool operator==(const Candidate &) const = default;
  /// From a rank to its neighbour along dp.
  int64_t dataStride() const { return dataOutside ? tensor * stages : tensor; }
};

/// Rules that shard over a tensor axis.
struct Sharding {
  std::string setting; ///< of the plan
  bool sequence = false, lean = false;
};

/// Keys that the search may fill.
struct OpenKeys {
  bool mesh = true, recipe = true, microbatches = true, zero = true, schedule = true, offload = true;
  bool order = true;     ///< in which the mesh's axes lie on the machine
  bool recompute = true; ///< each stage recomputes what it has no room for
};

/// All candidates for a number of ranks.
struct Space {
  OpenKeys open;
  Candidate fixed; ///< values of keys that are not open
  int64_t ranks = 1;
  int64_t batch = 1;      ///< samples of a step
  int64_t layers = 1;     ///< that stages are made of
  int64_t stages = 0;     ///< that the user's pipeline has; 0: open
  bool namesAxes = false; ///< lines of the user's plan name axes, which stay in the mesh with one rank too
  int64_t hostRanks = 0;  ///< of one host: tensor axes stay within; 0: all
  bool trains = true;
  bool keepsAll = false;        ///< nothing is recomputed (`recompute: none`)
  bool keepsInputs = false;     ///< all of a layer but its input is (`recompute: full`)
  bool rounds = false;          ///< masters are f32, and matmuls read them in a narrower format
  bool gathersOnce = false;     ///< parameters that are sharded are gathered once a step (`zero.gather: step`)
  bool reducesNarrow = false;   ///< gradients are rounded to 16 bits before they are summed over replicas
  bool overlaps = true;         ///< collectives may run beside compute (`collectives.overlap`)
  bool narrow = false;          ///< activations have two bytes an element
  std::vector<int64_t> weights; ///< elements of each trained parameter that zero shards
  int64_t weightBytes = 2;      ///< of an element of these, at least, while gradients are reduced
  int64_t trained = 0;          ///< parameters
  int64_t vectorElements = 0;   ///< elements of trained parameters with less than two dims
  int64_t smallElements = 0;    ///< elements of those that zero leaves whole (zero.min_size)
  int64_t bucket = INT64_MAX;   ///< bytes of several collectives that are one, at most
  std::map<int64_t, std::vector<Sharding>> shardings; ///< by the degree of the tensor axis; none: it is no help

  /// Bytes that replicas exchange of so many bytes of gradients.
  int64_t reducedBytes(int64_t grads) const { return reducesNarrow ? grads / 2 : grads; }
  /// Whether replicas share the parameters that stay on a rank: with rounded weights these are the masters.
  bool shardsParams(const Candidate &candidate) const { return candidate.zero == 3 || (rounds && candidate.zero > 0); }
  /// Whether a step begins with a gather of rounded masters, before its first forward.
  bool gathersFirst(const Candidate &candidate) const {
    return rounds && candidate.data > 1 && (candidate.zero == 1 || candidate.zero == 2);
  }
  /// Collectives that all weights need at least, of so many bytes an element, on so many tensor ranks: one that is
  /// larger than a bucket has its own.
  int64_t collectivesOf(int64_t elementBytes, int64_t tensor) const;
  /// How many times as many elements all parameters have as those of a rank, if so many ranks share them.
  double shares(int64_t ranks) const;
  /// Bytes that no collective exceeds: a bucket, or the largest weight.
  int64_t maxMessage() const;
  /// A layer may be cut in two, and what is before and after all layers are stages, too.
  int64_t maxStages() const;
  /// In a fixed order: fewer tensor ranks first.
  std::vector<Candidate> candidates() const;
  /// The settings that shard over the candidate's tensor axis; empty: the user's own rules do.
  std::string shardingOf(const Candidate &candidate) const;
  /// The candidate as settings of the plan, KEY=VALUE each.
  std::vector<std::string> settingsOf(const Candidate &candidate) const;
};

/// Axes of a candidate's mesh with their sizes, outermost first; neighbours along the last one are neighbouring ranks.
std::vector<std::pair<std::string, int64_t>> axesOf(const Candidate &candidate);
/// "pp 2 x dp 2 x tp 2"; "1 rank"
std::string describeMesh(const Candidate &candidate);
/// "pp 2 x dp 2 x tp 2 with its sequence, zero 1, 1f1b, 8 microbatches of 2"
std::string describeCandidate(const Candidate &candidate);

} // namespace par
