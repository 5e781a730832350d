// Checkpoints: DIR/STEP/ holds one safetensors file a rank with the rectangles that it owns, and index.json, which
// says where each part of each global tensor lies, so that any plan reads any plan's. Every file says which run wrote
// it, at which step, for which rank, and has a checksum: the index that of its own text and of each file's header, a
// header that of the file's data. A checkpoint is written as DIR/STEP.RUN.tmp, synced and renamed: what bears a step's
// name is whole.
#pragma once

#include "par/save/SaveFolder.h"
#include "par/session/Session.h"

namespace par::core {

/// Position of a run.
struct RunPosition {
  uint64_t step = 0; ///< steps done
  uint64_t rows = 0; ///< rows of the data order consumed
  uint64_t seed = 0;
  bool shuffled = true;
  std::string data = {}; ///< identifies the files of its data; "" if that is not known
  uint64_t skipped =
      0; ///< of the steps, those that overflowed and wrote nothing: the learning rate's schedule does not count them
};

/// A checkpoint that has been opened: its files are of one run and step, and hold the tensors of its index.
/// loadTensor() or intact() checks that their data is unchanged.
struct Checkpoint {
  RunPosition position;
  std::string run; ///< that wrote it
  WeightStore store;
  std::string remark; ///< for the user, if there is anything to say

  /// Sums all data.
  bool intact() const;
};

/// Opens the checkpoint in `path` itself. Throws Failure (error 23) if a file is not as the index says.
Checkpoint openCheckpoint(const std::string &path);
/// The newest checkpoint of a folder, "DIR/STEP"; nothing where none was saved. A broken one that is further than the
/// others is found, too, so that opening it says why. Throws Failure where the folder cannot be read.
std::optional<std::string> findNewestCheckpoint(const std::string &folder);
/// The same; throws Failure if there is none.
std::string newestCheckpoint(const std::string &folder);
/// True if `path` holds an index.json of a checkpoint.
bool isCheckpoint(const std::string &path);
/// "; ckpt/100 is complete: --resume ckpt/100", if there is another one beside `path` and all of it is as it was
/// written.
std::string otherComplete(const std::string &path);

} // namespace par::core
