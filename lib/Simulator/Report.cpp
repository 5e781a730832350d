#include "par/Simulator/Simulator.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace par;

/// The sum over ranks of one part of their time, in 1/1000 of all.
static int64_t share(const Simulation &simulation, int64_t RankTime::*part) {
  __int128 sum = 0, all = static_cast<__int128>(simulation.step) * simulation.ranks.size();
  for (const RankTime &rank : simulation.ranks)
    sum += rank.*part;
  return all == 0 ? 0 : static_cast<int64_t>((sum * 1000 + all / 2) / all);
}

int64_t Simulation::computePermille() const { return share(*this, &RankTime::compute); }
int64_t Simulation::bubblePermille() const { return share(*this, &RankTime::idle); }
int64_t Simulation::corePermille() const { return share(*this, &RankTime::core); }
int64_t Simulation::communicationPermille() const { return share(*this, &RankTime::communication); }

int64_t Simulation::peakLive(uint32_t role) const {
  int64_t most = 0;
  for (const MemorySample &sample : memory[role])
    most = std::max(most, sample.bytes);
  return most;
}

/// "118 ms", "4.2 ms", "730 us": three digits at most.
static std::string formatTime(int64_t ns) {
  double ms = ns * 1e-6;
  if (ms < 1)
    return llvm::formatv("{0} us", (ns + 500) / 1000);
  return ms < 10 ? llvm::formatv("{0:f1} ms", ms).str() : llvm::formatv("{0:f0} ms", ms).str();
}

std::string Simulation::describe(llvm::StringRef expected) const {
  auto percent = [](int64_t permille) { return (permille + 5) / 10; };
  std::string behind = expected.empty() ? "" : " (" + expected.str() + ")";
  std::string shared;
  if (cores > 0)
    shared = llvm::formatv(", waiting for one of {0} cores {1} %", cores, percent(corePermille()));
  return llvm::formatv("step {0}: compute {1} %, bubble {2} %{3}, exposed communication {4} %{5}",
                       formatTime(step / calls), percent(computePermille()), percent(bubblePermille()), behind,
                       percent(communicationPermille()), shared);
}

/// The name of an instruction in the trace: "matmul qkv", "coll all_reduce".
static std::string traceName(const format::Program &program, const format::Instruction &instruction) {
  std::string name(format::toString(instruction.op));
  if (instruction.op == format::Op::Kernel)
    name += " " + program.kernels[instruction.kernel].name;
  else if (instruction.op == format::Op::Call)
    name += " " + program.calls[instruction.call].name;
  else if (instruction.op == format::Op::Coll)
    name += " " + std::string(format::toString(instruction.coll));
  return name;
}

namespace {

/// Writes the events of a trace one by one.
class TraceWriter {
public:
  TraceWriter(const format::Bundle &bundle, llvm::json::OStream &json) : bundle(bundle), json(json) {}

  const format::Program &programOf(uint32_t rank) const { return bundle.programs[bundle.manifest.ranks[rank].role]; }

  void queueName(uint32_t rank, uint32_t queue) {
    event("M", rank, "thread_name", [&] {
      json.attribute("tid", queue);
      json.attributeObject("args", [&] { json.attribute("name", programOf(rank).queues[queue]); });
    });
  }

  void interval(const PlayedInstruction &node) {
    const format::Program &program = programOf(node.rank);
    const auto &instruction = program.blocks[node.block].instructions[node.instruction];
    event("X", node.rank, traceName(program, instruction), [&] {
      json.attribute("tid", node.queue);
      json.attribute("ts", node.start / 1000.0);
      json.attribute("dur", node.duration / 1000.0);
      json.attributeObject("args",
                           [&] { json.attribute("at", format::instructionId(program, node.block, node.instruction)); });
    });
  }

  void memory(uint32_t rank, const MemorySample &sample) {
    event("C", rank, "live bytes", [&] {
      json.attribute("ts", sample.time / 1000.0);
      json.attributeObject("args", [&] { json.attribute("bytes", sample.bytes); });
    });
  }

private:
  void event(llvm::StringRef phase, uint32_t rank, llvm::StringRef name, llvm::function_ref<void()> rest) {
    json.object([&] {
      json.attribute("ph", phase);
      json.attribute("pid", rank);
      json.attribute("name", name);
      rest();
    });
  }

  const format::Bundle &bundle;
  llvm::json::OStream &json;
};

} // namespace

void par::writeTrace(const Simulation &simulation, const format::Bundle &bundle, llvm::raw_ostream &os) {
  llvm::json::OStream json(os);
  TraceWriter writer(bundle, json);
  json.object([&] {
    json.attribute("displayTimeUnit", "ns");
    json.attributeArray("traceEvents", [&] {
      for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank) {
        for (uint32_t queue = 0; queue < writer.programOf(rank).queues.size(); ++queue)
          writer.queueName(rank, queue);
        for (const MemorySample &sample : simulation.memory[bundle.manifest.ranks[rank].role])
          writer.memory(rank, sample);
      }
      for (const PlayedInstruction &node : simulation.instructions)
        if (node.duration > 0)
          writer.interval(node);
    });
  });
  os << '\n';
}
