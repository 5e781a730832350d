#include "par/Report/Trace.h"

#include "llvm/Support/JSON.h"

namespace par {

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
  TraceWriter(const format::Bundle &bundle, llvm::json::OStream &json, const RunTrace *run)
      : bundle(bundle), json(json), run(run) {}

  const format::Program &programOf(uint32_t rank) const { return bundle.programs[bundle.manifest.ranks[rank].role]; }

  /// Beside a run: "rank 0, predicted", above the rank's process of the run, whose number is the rank's.
  void processName(uint32_t rank) {
    if (!run)
      return;
    event("M", rank, "process_name", [&] {
      json.attributeObject("args", [&] { json.attribute("name", "rank " + std::to_string(rank) + ", predicted"); });
    });
    sortIndex(processOf(rank), 2 * rank);
    sortIndex(rank, 2 * rank + 1);
  }

  void queueName(uint32_t rank, uint32_t queue) {
    event("M", rank, "thread_name", [&] {
      json.attribute("tid", queue);
      json.attributeObject("args", [&] { json.attribute("name", programOf(rank).queues[queue]); });
    });
  }

  void interval(uint32_t rank, const PlayedInstruction &node) {
    const format::Program &program = programOf(rank);
    const auto &instruction = program.blocks[node.block].instructions[node.instruction];
    event("X", rank, traceName(program, instruction), [&] {
      json.attribute("tid", node.queue);
      json.attribute("ts", timeOf(node.start));
      json.attribute("dur", node.duration / 1000.0);
      json.attributeObject("args",
                           [&] { json.attribute("at", format::instructionId(program, node.block, node.instruction)); });
    });
  }

  void memory(uint32_t rank, const MemorySample &sample) {
    event("C", rank, "live bytes", [&] {
      json.attribute("ts", timeOf(sample.time));
      json.attributeObject("args", [&] { json.attribute("bytes", sample.bytes); });
    });
  }

private:
  uint32_t processOf(uint32_t rank) const { return run ? bundle.manifest.ranks.size() + rank : rank; }
  double timeOf(int64_t ns) const { return ns / 1000.0 + (run ? run->begin : 0); }
  void sortIndex(uint32_t process, uint32_t index) {
    json.object([&] {
      json.attribute("ph", "M");
      json.attribute("pid", process);
      json.attribute("name", "process_sort_index");
      json.attributeObject("args", [&] { json.attribute("sort_index", index); });
    });
  }
  void event(llvm::StringRef phase, uint32_t rank, llvm::StringRef name, llvm::function_ref<void()> rest) {
    json.object([&] {
      json.attribute("ph", phase);
      json.attribute("pid", processOf(rank));
      json.attribute("name", name);
      rest();
    });
  }

  const format::Bundle &bundle;
  llvm::json::OStream &json;
  const RunTrace *run; ///< null: no run is in the file
};

} // namespace

void writeTrace(const Simulation &simulation, const format::Bundle &bundle, llvm::raw_ostream &os,
                const RunTrace *run) {
  llvm::json::OStream json(os);
  TraceWriter writer(bundle, json, run);
  json.object([&] {
    json.attribute("displayTimeUnit", "ns");
    json.attributeArray("traceEvents", [&] {
      if (run)
        for (const llvm::json::Value &event : run->events)
          json.value(event);
      for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank) {
        writer.processName(rank);
        for (uint32_t queue = 0; queue < writer.programOf(rank).queues.size(); ++queue)
          writer.queueName(rank, queue);
        for (const MemorySample &sample : simulation.memory[bundle.manifest.ranks[rank].role])
          writer.memory(rank, sample);
      }
      for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank)
        for (const PlayedInstruction &node : simulation.instructionsOf(rank))
          if (node.duration > 0)
            writer.interval(rank, node);
    });
  });
  os << '\n';
}

} // namespace par
