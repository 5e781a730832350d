// The file of one rank in a save: its rectangles of the tensors, dense, in one safetensors file.
#pragma once

#include "SaveIndex.h"

#include "comm/shared/Memory.h"
#include "par/session/Session.h"

#include <atomic>

namespace par::core {

/// Facts of the save in the header of a rank's file.
using Facts = std::map<std::string, std::string>;

/// Facts that every file of a save has.
Facts factsOf(const std::string &plan, const std::string &run, uint64_t step, size_t rank, size_t ranks);

/// This rank's parts of the tensors that are saved, as they lie in the session or in a copy of it.
class RankState {
public:
  explicit RankState(const Session &session);

  /// Copies the parts, so that steps may change the session's. False where the host has no memory for a copy: then
  /// they stay the session's.
  bool copy();
  /// The parts are the session's again. The copy's memory stays for the next one.
  void forgetCopy() { copied = false; }
  /// Bytes of all parts.
  uint64_t bytes() const { return total; }
  /// Writes the file and waits until it is on the disk. Throws Failure, and where `stop` is set returns early; in both
  /// cases no file is left.
  SavedFile write(const std::string &path, Facts facts, const std::atomic<bool> &stop) const;

private:
  using Take = std::function<void(std::span<const std::byte>)>;
  void visit(const Take &take) const;

  const Session &session;
  std::vector<ArrayHeader> headers;
  std::vector<const format::Tensor *> tensors;
  uint64_t total = 0;
  bool copied = false;
  comm::Mapping memory; ///< of the copy, kept from one save to the next
};

} // namespace par::core
