// Checkpoints: DIR/STEP/ holds one safetensors file a rank with the rectangles that it owns, and index.json, which
// says where each part of each global tensor lies, so that any plan reads any plan's. A checkpoint is written as
// DIR/STEP.tmp, synced and renamed: what bears a step's name is complete.
#pragma once

#include "par/core/Session.h"

namespace par::core {

/// Where a run stood.
struct RunPosition {
  uint64_t step = 0;      ///< steps done
  uint64_t rows = 0;      ///< rows of the data order consumed
  uint64_t seed = 0;
  bool shuffled = true;
};

/// Collective. Writes DIR/STEP and removes all but the `keep` newest; returns "DIR/STEP" at every rank.
std::string saveCheckpoint(Session &session, const std::string &folder, const RunPosition &position, unsigned keep);

/// A checkpoint that has been opened and checked against its index.
struct Checkpoint {
  RunPosition position;
  WeightStore store;
};

/// Opens the checkpoint in `path` itself. Throws Failure (error 23) if a file is not as the index says.
Checkpoint openCheckpoint(const std::string &path);
/// The newest complete checkpoint of a folder: "DIR/STEP"; throws Failure if there is none.
std::string newestCheckpoint(const std::string &folder);
/// True if `path` holds an index.json of a checkpoint.
bool isCheckpoint(const std::string &path);

} // namespace par::core
