// A session as its caller sees it: checks every call before ranks hear of it, and keeps what calls return.
#pragma once

#include "api/Facts.h"
#include "api/Feeding.h"
#include "api/Ranks.h"

#include <deque>

namespace par::api {

/// A result that is no scalar.
struct ResultView {
  format::DType type = format::DType::F32;
  std::vector<int64_t> shape;
  const std::byte *data = nullptr;
};

/// All functions throw Failure.
class Caller {
public:
  explicit Caller(std::unique_ptr<Ranks> ranks);

  /// The arrays of the next calls of run(), which forgets those that it took, and all if it throws.
  Feeding &feeding() { return fed; }
  void run(const std::string &entry);
  /// Its scalars are those of the last entry that has run, by optimizer step.
  const Answer &lastAnswer() const { return last; }
  ResultView result(const std::string &output) const;
  void set(const std::string &name, double value);
  double get(const std::string &name) const;
  void read(const std::string &tensor, std::span<std::byte> to);
  void write(const std::string &tensor, core::FedArray array);
  void load(std::vector<std::string> paths);
  void resume(const std::string &path);
  /// `onlyOpens`: takes the folder, as the first save to it does, so that its faults are found before there is one.
  std::string save(const std::string &folder, uint64_t keep, bool onlyOpens = false);
  void exportTo(const std::string &path);
  /// The oldest line for the user; nothing where there is none.
  std::optional<std::string> nextEvent();
  const format::Bundle &bundle() const { return ranks->bundle(); }
  void end() { ranks->end(); }

private:
  const Answer &perform(const Command &command);
  void take(Answer answer);
  const format::Tensor &tensorOf(const std::string &name) const;
  const EntryFacts &entryOf(const std::string &name) const;

  std::unique_ptr<Ranks> ranks;
  const format::Manifest &manifest;
  Feeding fed;
  std::map<std::string, EntryFacts> entries;
  std::string lastEntry;
  std::map<std::string, double> hypers;
  Answer last;
  std::deque<std::string> events;
};

} // namespace par::api
