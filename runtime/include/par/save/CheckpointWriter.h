// Writes the checkpoints of one job. The state is copied between two steps and written beside those that follow.
#pragma once

#include "par/save/Checkpoint.h"

#include <memory>
#include <utility>

namespace par::core {

/// Every rank has one, and calls the collective functions at the same places. They throw Failure.
class CheckpointWriter {
public:
  /// `owner` is rank 0's, null on others. The `keep` newest checkpoints in `folder` stay.
  CheckpointWriter(Session &session, SaveFolder *owner, std::string folder, uint64_t keep);
  /// A save that is not whole is given up.
  ~CheckpointWriter();

  /// Whether a save that was begun and finds no space is given up, rather than throwing.
  void goOnWhenFull(bool goesOn) { givesUp = goesOn; }
  /// "ckpt/4.RUN.tmp/rank1.safetensors: error: ..." after a save that was given up; once, the same at every rank.
  std::string takeFull() { return std::exchange(full, ""); }

  /// Collective. Writes DIR/STEP and returns that, at every rank. One that was begun before is made whole first.
  std::string save(const RunPosition &position);

  /// Collective. Copies the state and begins to write it; returns DIR/STEP, which is not there yet, or "" where it was
  /// given up. One that was begun before must be whole. A rank without memory for a copy writes all of its part now.
  std::string begin(const RunPosition &position);
  /// Whether a save that was begun is not whole.
  bool pending() const;
  /// Whether this rank has work left until the next advance().
  bool busy() const;
  /// Collective, while a save is pending and no rank is busy. Returns DIR/STEP, at every rank, once it is whole, and ""
  /// before: then rank 0 is busy with the index and the name.
  std::string advance();
  /// Collective. Waits until a pending save is whole. Returns DIR/STEP, or "" where none is pending.
  std::string finish();

  /// "rank 3 has no memory for a copy of its state (12.0 MiB)" after a begin() in which a rank had none; "" otherwise.
  const std::string &remark() const { return lacking; }

private:
  struct Writing;
  bool start(const RunPosition &position, bool copies);
  std::string makeFolder() const;
  void waitForTask();
  bool giveUp(const std::vector<std::string> &faults);
  void nameIt(const std::vector<std::string> &files);

  Session &session;
  SaveFolder *owner;
  std::string folder, run, lacking, full;
  uint64_t keep;
  bool givesUp = false;
  std::unique_ptr<Writing> writing;
};

} // namespace par::core
