// An order table as text, in problem files and in the files that a plan names.
#include "par/Solver/Order/OrderTable.h"
#include "par/format/PlainFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace par;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

//===-- Text ---------------------------------------------------------------------------------===//

/// F, B or W, the microbatch, and `.CHUNK`.
static ScheduleSlot parseSlot(ProblemText &text) {
  StringRef word = text.word(), rest = word;
  ScheduleSlot slot = {SlotKind::Forward, 0};
  size_t kind = rest.empty() ? StringRef::npos : StringRef("FBW").find(rest.front());
  auto [microbatch, chunk] = rest.drop_front(rest.empty() ? 0 : 1).split('.');
  bool chunked = word.contains('.');
  if (kind == StringRef::npos || microbatch.getAsInteger(10, slot.microbatch) ||
      (chunked && chunk.getAsInteger(10, slot.chunk)))
    text.fail("expected a slot such as F0, B3 or W3.1, got '" + word + "'");
  else
    slot.kind = static_cast<SlotKind>(kind);
  return slot;
}

/// `device D SLOT...`: devices in order, one or several lines each.
static void parseDevice(ProblemText &text, OrderTableProblem &problem) {
  int64_t device = text.integer();
  size_t known = problem.table.size();
  if (device != static_cast<int64_t>(known) && device + 1 != static_cast<int64_t>(known))
    return text.fail("expected device " + Twine(known) + ", got device " + Twine(device));
  problem.table.resize(device + 1);
  problem.lines.resize(device + 1);
  if (text.atEnd())
    text.fail("device " + Twine(device) + " has no slots");
  while (!text.atEnd()) {
    problem.table.back().push_back(parseSlot(text));
    problem.lines.back().push_back(text.lineNumber());
  }
}

static Placement parsePlacement(ProblemText &text) {
  if (text.accept("v"))
    return Placement::V;
  if (!text.accept("round_robin"))
    text.fail("expected round_robin or v, got '" + text.word() + "'");
  return Placement::RoundRobin;
}

/// Takes sizes that the text does not give from its table.
static void completeSizes(OrderTableProblem &problem, bool stages, bool microbatches) {
  unsigned chunks = 1, most = 0;
  for (const DeviceSlots &slots : problem.table)
    for (const ScheduleSlot &slot : slots) {
      chunks = std::max(chunks, slot.chunk + 1);
      most = std::max(most, slot.microbatch + 1);
    }
  if (problem.table.empty())
    return;
  if (!problem.devices)
    problem.devices = problem.table.size();
  if (!stages)
    problem.stages = chunks <= maxOrderCount ? chunks * problem.devices : maxOrderCount + 1;
  if (!microbatches)
    problem.microbatches = most;
}

namespace {

/// A problem, and which of its sizes the text gave.
struct ReadProblem {
  OrderTableProblem problem;
  bool schedule = false, stages = false, microbatches = false;

  void statement(ProblemText &text, StringRef key);
  void complete();
};

} // namespace

void ReadProblem::statement(ProblemText &text, StringRef key) {
  std::vector<int64_t> *times = llvm::StringSwitch<std::vector<int64_t> *>(key)
                                    .Case("forward", &problem.forward)
                                    .Case("backward", &problem.backward)
                                    .Case("weight", &problem.weight)
                                    .Case("limit", &problem.limit)
                                    .Default(nullptr);
  if (times)
    *times = text.integers();
  else if (key == "schedule")
    problem.schedule = text.word().str(), schedule = true;
  else if (key == "stages")
    problem.stages = text.integer(), stages = true;
  else if (key == "devices")
    problem.devices = text.integer();
  else if (key == "microbatches")
    problem.microbatches = text.integer(), microbatches = true;
  else if (key == "transfer")
    problem.transfer = text.integer();
  else if (key == "kept")
    problem.kept = text.integer();
  else if (key == "barrier")
    problem.barrier = true;
  else if (key == "placement")
    problem.tablePlacement = parsePlacement(text);
  else if (key == "device")
    parseDevice(text, problem);
  else
    text.fail("unknown statement '" + key + "'");
  if (schedule && !problem.table.empty())
    text.fail("there is a schedule and a table; one of them decides the order");
}

/// Completes a problem: sizes from the table, one time for all stages.
void ReadProblem::complete() {
  completeSizes(problem, stages, microbatches);
  auto spread = [](std::vector<int64_t> &values, size_t count, int64_t otherwise) {
    if (values.size() <= 1 && count <= maxOrderCount)
      values.assign(count, values.empty() ? otherwise : values.front());
  };
  bool whole = problem.weight.empty() && !problem.backward.empty();
  spread(problem.forward, problem.stages, 1);
  spread(problem.backward, problem.stages, 1);
  spread(problem.weight, problem.stages, whole ? 0 : 1);
  if (!problem.limit.empty())
    spread(problem.limit, problem.numDevices(), 0);
}

llvm::Expected<OrderTableProblem> OrderTableProblem::parse(ProblemText &text) {
  ReadProblem read;
  while (text.next())
    read.statement(text, text.word());
  if (Error error = text.takeError())
    return error;
  read.complete();
  return std::move(read.problem);
}

std::string OrderTableProblem::toText() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "problem order_table\n";
  if (table.empty())
    os << "schedule " << schedule << '\n';
  else if (tablePlacement == Placement::V)
    os << "placement v\n";
  os << "stages " << stages << "\ndevices " << numDevices() << "\nmicrobatches " << microbatches << '\n';
  os << statementOf("forward", forward) << statementOf("backward", backward) << statementOf("weight", weight)
     << "transfer " << transfer << '\n'
     << statementOf("limit", limit) << "kept " << kept << '\n'
     << (barrier ? "barrier\n" : "");
  for (auto [device, slots] : llvm::enumerate(table)) {
    os << "device " << device;
    for (const ScheduleSlot &slot : slots)
      os << ' ' << slotName(slot);
    os << '\n';
  }
  return text;
}

//===-- From a plan --------------------------------------------------------------------------===//

bool OrderTableProblem::isPath(StringRef word) { return word.contains('/') || word.contains('.'); }

llvm::Expected<OrderTableProblem> OrderTableProblem::readTable(StringRef path, std::string *content) {
  auto file = format::readPlainFile(path.str());
  if (!file)
    return solverError("cannot open: " + Twine(file.message()));
  if (content)
    *content = *file;
  ProblemText text(*file);
  if (Error error = text.takeError())
    return error;
  if (text.kind() != "order_table")
    return solverError("line 1: expected problem order_table, got '" + text.kind() + "'");
  llvm::Expected<OrderTableProblem> problem = parse(text);
  if (!problem)
    return problem.takeError();
  if (problem->table.empty())
    return solverError("no line says the slots of a device: device 0 F0 ...");
  llvm::Expected<OrderTable> table = problem->solve();
  if (!table)
    return table.takeError();
  return problem;
}

llvm::Expected<OrderTableProblem> OrderTableProblem::make(StringRef nameOrPath, unsigned stages, unsigned devices,
                                                          unsigned microbatches) {
  OrderTableProblem problem;
  if (isPath(nameOrPath)) {
    auto read = readTable(nameOrPath);
    if (!read) {
      std::string reason = llvm::toString(read.takeError());
      StringRef rest = reason;
      return solverError(nameOrPath + (rest.consume_front("line ") ? ":" : ": ") + rest);
    }
    if (read->stages != stages || read->numDevices() != devices || read->microbatches != microbatches)
      return solverError(nameOrPath + ": the table is of " + Twine(read->stages) + " stages on " +
                         Twine(read->numDevices()) + " devices and " + Twine(read->microbatches) +
                         " microbatches, expected " + Twine(stages) + " on " + Twine(devices) + " and " +
                         Twine(microbatches));
    problem = std::move(*read);
  } else {
    problem.schedule = nameOrPath.str();
    problem.stages = stages;
    problem.devices = devices;
    problem.microbatches = microbatches;
  }
  problem.forward.assign(stages, 1);
  problem.backward.assign(stages, 1);
  problem.weight.assign(stages, 1);
  if (Error error = problem.check())
    return error;
  return problem;
}

bool par::runsWeightsApart(StringRef nameOrPath) {
  if (!OrderTableProblem::isPath(nameOrPath)) {
    const Schedule *found = findSchedule(nameOrPath);
    return found && found->weightsApart;
  }
  auto read = OrderTableProblem::readTable(nameOrPath);
  if (read)
    return read->weightsApart();
  llvm::consumeError(read.takeError());
  return false;
}

llvm::Expected<std::vector<unsigned>> par::countInFlight(StringRef nameOrPath, unsigned stages, unsigned devices,
                                                         unsigned microbatches) {
  auto problem = OrderTableProblem::make(nameOrPath, stages, devices, microbatches);
  if (!problem)
    return problem.takeError();
  llvm::Expected<OrderTable> table = problem->solve();
  if (!table)
    return table.takeError();
  std::vector<unsigned> counts;
  for (unsigned stage = 0; stage < stages; ++stage)
    counts.push_back(table->inFlightOf(*problem, stage));
  return counts;
}
