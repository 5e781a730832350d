// A session's work on one rank: the classes of par-run's loop, moved on by commands.
#pragma once

#include "api/ArrivingBatch.h"
#include "api/FolderSaves.h"
#include "api/SharedParts.h"
#include "app/SessionOptions.h"
#include "app/TrainSteps.h"

namespace par::api {

/// Every rank has one and gets the same commands. The constructor is collective.
class RankWork {
public:
  /// `job` was opened as `fed`; results go into `exchange`.
  RankWork(core::Job &job, comm::Control &control, const Exchange &exchange);

  /// Finds the faults of a command that all ranks see alike, and opens its files. Throws Failure; nothing has changed
  /// then.
  void prepare(const Command &command);
  /// Collective, after prepare() of the same command on all ranks.
  Answer perform(const Command &command);
  /// The answer where nothing is to be done.
  Answer answer(const std::string &text = "");

private:
  void giveValues();
  void goOnFrom(core::Checkpoint &&checkpoint);
  Answer train(const Command &command);
  Answer infer(const Command &command);
  std::array<core::StepRows, 2> rowsOf(const Command &command);
  void take(const format::Output &output, int64_t microbatch, std::span<const std::byte> from);
  void set(const std::string &name, double value);
  void read(const Command &command);
  void write(const Command &command);
  std::string save(const Command &command);
  void exportTo(const std::string &path);

  core::Job &job;
  comm::Control &control;
  const format::Manifest &manifest;
  const Exchange &exchange;
  std::vector<std::string> events; ///< before the members that say something
  core::Session session;
  core::Printed printed{};
  core::Progress progress;
  core::Trace trace;
  core::RunSaves saves;
  core::RunPosition position;
  core::TrainSteps steps;
  std::array<ArrivingBatch, 2> batches; ///< by the place of their arrays
  core::RowOrder order;
  FolderSaves folders;
  SharedParts parts;
  std::optional<core::Checkpoint> opened; ///< by prepare()
  std::optional<core::WeightStore> weights;
};

} // namespace par::api
