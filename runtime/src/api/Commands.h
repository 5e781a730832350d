// The calls of a session as data, so that they reach ranks in this process and in others alike.
#pragma once

#include "par/data/FedBatch.h"
#include "par/save/Checkpoint.h"

namespace par::api {

enum class Verb : uint8_t { Train, Infer, Set, Read, Write, Load, Resume, Save, Export, End };

/// Whether a verb runs an entry. Its faults are found before ranks begin, or on all ranks alike.
inline bool runsEntry(Verb verb) { return verb <= Verb::Infer; }

/// Whether a verb may give tensors other values.
inline bool changesState(Verb verb) {
  return verb == Verb::Train || verb == Verb::Write || verb == Verb::Load || verb == Verb::Resume;
}

struct Command {
  Verb verb = Verb::End;
  std::string name; ///< of an entry, a tensor, a hyperparameter, a folder or a file
  double value = 0;
  uint64_t keep = 0;
  std::vector<std::string> paths;
  std::vector<std::pair<size_t, core::FedArray>> fed; ///< with the index of the input
  core::FedArray tensor;                              ///< of Write
  std::byte *to = nullptr;                            ///< of Read, of so many bytes
  uint64_t bytes = 0;
};

/// Rank 0's answer.
struct Answer {
  std::vector<std::map<std::string, double>> scalars; ///< by call
  std::string text;
  core::RunPosition position;
  double rate = 0; ///< of the next step
  std::vector<std::string> events;
  std::string error; ///< "" where the command was done
  int code = 0;
};

/// Text for other processes. Addresses are left out: each process has its own.
std::string encode(const Command &command);
Command decodeCommand(const std::string &text);
std::string encode(const Answer &answer);
Answer decodeAnswer(const std::string &text);

} // namespace par::api
