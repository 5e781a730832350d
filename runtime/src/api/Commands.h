// The calls of a session as data, so that they reach ranks in this process and in others alike.
#pragma once

#include "par/data/FedBatch.h"
#include "par/save/Checkpoint.h"

namespace par::api {

enum class Verb : uint8_t { Train, Infer, Set, Read, Write, Load, Resume, Save, OpenFolder, Export, End };

/// Whether a verb runs an entry. Its faults are found before ranks begin, or on all ranks alike.
inline bool runsEntry(Verb verb) { return verb <= Verb::Infer; }

/// Whether a verb may give tensors other values.
inline bool changesState(Verb verb) {
  return verb == Verb::Train || verb == Verb::Write || verb == Verb::Load || verb == Verb::Resume;
}

using FedArrays = std::vector<std::pair<size_t, core::FedArray>>; ///< with the index of the input

/// Arrays of inputs have two places, so that those of the next run arrive beside this one.
struct Ahead {
  FedArrays fed;       ///< the arrays of the next run; none where they are not known
  uint64_t number = 0; ///< of the next run's arrays: Exchange::arrived() reaches it when they are there
  uint64_t place = 0;  ///< of this run's arrays; the next run's come to the other one
  bool isTold = false; ///< this run's arrays have come beside the run before; other processes need not know
};

struct Command {
  Verb verb = Verb::End;
  std::string name; ///< of an entry, a tensor, a hyperparameter, a folder or a file
  double value = 0;
  uint64_t keep = 0;
  std::vector<std::string> paths;
  FedArrays fed;
  Ahead ahead;
  core::FedArray tensor;   ///< of Write
  std::byte *to = nullptr; ///< of Read, of so many bytes
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
/// The part of an encoded command that the callers of all ranks must agree on: not what one of them knows ahead.
std::string_view agreedPart(std::string_view encoded);
Command decodeCommand(const std::string &text);
std::string encode(const Answer &answer);
Answer decodeAnswer(const std::string &text);

} // namespace par::api
