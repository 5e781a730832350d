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

std::string Simulation::describe(llvm::StringRef schedule, unsigned stages, unsigned microbatches) const {
  auto percent = [](int64_t permille) { return (permille + 5) / 10; };
  std::string closedForm;
  if (stages > 1)
    closedForm = llvm::formatv(" ({0}, m = {1}: closed form {2:f1} %)", schedule, microbatches,
                               100.0 * (stages - 1) / (microbatches + stages - 1));
  return llvm::formatv("step {0}: compute {1} %, bubble {2} %{3}, exposed communication {4} %", formatTime(step),
                       percent(computePermille()), percent(bubblePermille()), closedForm,
                       percent(communicationPermille()));
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

void par::writeTrace(const Simulation &simulation, const format::Bundle &bundle, llvm::raw_ostream &os) {
  llvm::json::OStream json(os);
  auto event = [&](llvm::StringRef phase, int64_t rank, auto rest) {
    json.object([&] {
      json.attribute("ph", phase);
      json.attribute("pid", rank);
      rest();
    });
  };
  auto programOf = [&](uint32_t rank) -> const format::Program & {
    return bundle.programs[bundle.manifest.ranks[rank].role];
  };
  json.object([&] {
    json.attribute("displayTimeUnit", "ns");
    json.attributeArray("traceEvents", [&] {
      for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank)
        for (auto [queue, name] : llvm::enumerate(programOf(rank).queues))
          event("M", rank, [&] {
            json.attribute("tid", static_cast<int64_t>(queue));
            json.attribute("name", "thread_name");
            json.attributeObject("args", [&] { json.attribute("name", name); });
          });
      for (const PlayedInstruction &node : simulation.instructions) {
        if (node.duration == 0)
          continue;
        const format::Program &program = programOf(node.rank);
        event("X", node.rank, [&] {
          json.attribute("tid", node.queue);
          json.attribute("name", traceName(program, program.blocks[node.block].instructions[node.instruction]));
          json.attribute("ts", node.start / 1000.0);
          json.attribute("dur", node.duration / 1000.0);
          json.attributeObject("args", [&] {
            json.attribute("at", format::instructionId(program, node.block, node.instruction));
          });
        });
      }
      for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank)
        for (const MemorySample &sample : simulation.memory[bundle.manifest.ranks[rank].role])
          event("C", rank, [&] {
            json.attribute("name", "live bytes");
            json.attribute("ts", sample.time / 1000.0);
            json.attributeObject("args", [&] { json.attribute("bytes", sample.bytes); });
          });
    });
  });
  os << '\n';
}
