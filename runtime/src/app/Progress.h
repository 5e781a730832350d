// Output of par-run: progress lines, the metrics file, the trace.
#pragma once

#include "Bar.h"
#include "MetricsFile.h"

#include "par/app/Job.h"
#include "par/files/FileWriter.h"

#include <chrono>
#include <cmath>
#include <optional>

namespace par::core {

/// A rank's report of a step; all ranks exchange theirs after each step.
struct StepReport {
  double ms = 0;
  uint64_t sentBytes = 0, peakBytes = 0;
  bool saving = false;    ///< a part of a save is still being written
  double copyMs = 0;      ///< of the last copy that another start goes on from; 0: none
  bool mirroring = false; ///< this copy is still on its way to a neighbour, or one of another rank to this one
  std::map<std::string, double> metrics;

  std::string encode() const;
  static StepReport decode(const std::string &text);
};

/// A step seen over all ranks.
struct StepSummary {
  uint64_t step = 0;
  double loss = 0, lr = 0, gradNorm = 0, lossScale = 0, ms = 0;
  bool hasLoss = false, hasGradNorm = false, hasLossScale = false;
  bool scales = false;   ///< the loss is scaled, by a number that stays or by one that adapts, which is reported
  bool skipsNan = false; ///< see skipsNan()
  /// Gradients that are not finite, or a loss, where these write nothing.
  bool skipped() const { return (scales || skipsNan) && hasGradNorm && !std::isfinite(gradNorm); }
  /// Skipped for more than a loss scale that is too large.
  bool isNan() const { return skipped() && (!scales || !std::isfinite(loss)); }
  uint64_t sentBytes = 0, peakBytes = 0;
  bool saving = false;                   ///< a rank is
  double copyMs = 0;                     ///< of the rank whose copy took longest
  bool mirroring = false;                ///< a rank is
  std::map<std::string, double> metrics; ///< every scalar output, as its first owner has it
  int badRank = -1;                      ///< the first whose loss is not finite
};
/// Whether a step whose loss or gradient is not finite writes nothing but buffers and the counter "skipped_steps".
bool skipsNan(const format::Manifest &manifest);
StepSummary summarize(const format::Manifest &manifest, const std::vector<std::string> &reports);

/// The reports of all calls that a call of `train` makes (Manifest::calls), as one text, and the summary of each from
/// the texts of all ranks.
std::string joinReports(const std::vector<std::string> &calls);
std::vector<StepSummary> summarizeCalls(const format::Manifest &manifest, std::vector<std::string> reports);

/// The folder of a step's state, for its line: of a save that is whole, or of one that is being written.
struct SaidOfSaves {
  std::string saved, saving;
};

/// The lines that rank 0 has printed, in memory that outlives it: another start of the ranks repeats none and leaves
/// none out.
struct Printed {
  uint64_t step = 0;      ///< up to which lines stand
  uint64_t evaluated = 0; ///< 1 + the step after which the last evaluation was
  uint64_t files[2] = {}; ///< bytes of the files of metrics before this job's
  uint64_t peak = 0;
  int64_t began = 0; ///< nanoseconds of the monotonic clock
  bool done = false, cadence = false;
};

/// Rank 0's voice; silent on others.
class Progress {
public:
  /// `printed` outlives it.
  Progress(const Job &job, const comm::Control &control, Printed &printed);
  void start();
  /// At another start, once it is known after which step: the lines of metrics that follow are written again.
  void goOn(uint64_t step, const std::string &how);
  /// A line of the device about how it will compute, if it has one.
  void remark(const std::string &line);
  /// A line every so many steps, for the first and the last one, and where something was saved, or begun to be.
  void step(const StepSummary &summary, const SaidOfSaves &saves);
  void predicted(uint64_t rows, double seconds);
  /// The means of an evaluation, by output; `note` ends the line.
  void evaluated(uint64_t rows, uint64_t leftOut, const std::map<std::string, double> &means, const std::string &note,
                 uint64_t afterStep);
  /// `steps`: all that the job has made.
  void done(uint64_t bound, uint64_t scratch, uint64_t steps);
  /// After a signal: the last save.
  void interrupted(const std::string &saved);
  /// Before the last step, so that --export has nothing to write.
  void notExported();
  /// Prints a line. One that cannot be written ends no training.
  void say(const std::string &line);
  /// At the end; throws Failure where a line could not be written.
  void finish();

private:
  std::string rate(double ms) const;
  bool isShown(const StepSummary &summary, const SaidOfSaves &saves) const;
  std::string lineOf(const StepSummary &summary, const SaidOfSaves &saves) const;

  /// Writes a line as it is.
  void put(const std::string &line);
  void sayStart(double firstMs);

  const Job &job;
  Printed &printed;
  bool speaks, again; ///< again: lost ranks were started again
  std::string hosts;  ///< where there are several, as the first line says it
  uint64_t every = 1, firstStep = 1, tokensPerRow = 0;
  std::vector<MetricsFile> files; ///< --metrics and --log
  Bar bar;
  std::vector<double> times;
  std::string lastSave, unprinted; ///< why the first line that was not printed was not
};

/// Collects the instructions of some steps and writes them as one Perfetto trace: a process a rank, a thread a queue.
/// The thread "schedule" shows the slots of the schedule: F0 is the forward of microbatch 0, B a backward, W a weight
/// gradient.
class Trace {
public:
  /// One rank `writes`: it makes the file now. Throws Failure.
  Trace(const Job &job, bool writes);
  /// Before the run of a step: its times are kept if it is one of those.
  void prepare(Session &session, uint64_t step) const { session.onDevice().keepStamps(covers(step)); }
  void add(Session &session, uint64_t step, const format::Program &program);
  /// Collective.
  void write(comm::Control &control);

private:
  bool covers(uint64_t step) const { return !path.empty() && step >= first && step <= last; }
  void nameThreads(uint32_t rank, const format::Program &program);
  void addSlots(Session &session, uint64_t step);

  const format::Manifest &manifest;
  std::string path, events;
  std::optional<StreamWriter> out;
  uint64_t first, last;
};

/// "14.2 MiB", "730.1 KiB".
std::string humanBytes(uint64_t bytes);

} // namespace par::core
