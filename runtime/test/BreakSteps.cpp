// Faults of what ranks compute, and of what a bundle says of it.
#include "Breaker.h"

#include <algorithm>

using namespace par::format;
using namespace par::toy;

static bool computes(const Instruction &it) { return it.op == Op::Kernel || it.op == Op::Call; }

bool Breaker::drop(const Wanted &wanted) {
  if (!choose(wanted))
    return false;
  for (const Spot &place : alike())
    erase(place);
  what += " left out";
  return true;
}

/// Drops a run. If it communicates, all roles drop the runs of the block of that name.
bool Breaker::dropRun() {
  uint32_t role = only.value_or(uint32_t(random.below(bundle.programs.size())));
  Program &program = bundle.programs[role];
  size_t entry = random.below(program.entries.size());
  if (program.entries[entry].runs.empty())
    return false;
  Run run = program.entries[entry].runs[random.below(program.entries[entry].runs.size())];
  std::string name = program.blocks[run.block].name;
  what = "entry " + program.entries[entry].name + ": " + name + " of microbatch " + std::to_string(run.microbatch) +
         " left out";
  for (uint32_t other = 0; other < bundle.programs.size(); ++other)
    if (!only || other == role)
      std::erase_if(bundle.programs[other].entries[entry].runs, [&](const Run &it) {
        return bundle.programs[other].blocks[it.block].name == name && it.microbatch == run.microbatch &&
               it.version == run.version;
      });
  return true;
}

bool Breaker::otherOperand() {
  if (!choose([](const Instruction &it) { return !it.operands.empty() && it.op != Op::Feed; }))
    return false;
  Program &program = bundle.programs[spot.role];
  Operand &operand = at(spot).operands[random.below(at(spot).operands.size())];
  const Buffer &before = program.buffers[operand.buffer];
  std::vector<uint32_t> others;
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer &other = program.buffers[i];
    if (i != operand.buffer && other.type == before.type && other.shape == before.shape &&
        other.index == before.index && other.space == before.space &&
        (other.kind == before.kind || operand.access == Access::Read))
      others.push_back(i);
  }
  if (others.empty())
    return false;
  operand.buffer = others[random.below(others.size())];
  what += ": '" + before.name + "' became '" + program.buffers[operand.buffer].name + "'";
  return true;
}

bool Breaker::oneSlot() {
  uint32_t role = only.value_or(uint32_t(random.below(bundle.programs.size())));
  std::vector<Buffer *> slotted;
  for (Buffer &buffer : bundle.programs[role].buffers)
    if (buffer.of == noIndex && buffer.index == Index::Mb && buffer.kind == BufferKind::Temp && buffer.at.size() > 1)
      slotted.push_back(&buffer);
  if (slotted.empty())
    return false;
  Buffer &buffer = *slotted[random.below(slotted.size())];
  uint32_t number = uint32_t(&buffer - bundle.programs[role].buffers.data());
  buffer.index = Index::None;
  buffer.at.resize(1);
  for (Buffer &alias : bundle.programs[role].buffers)
    if (alias.of == number)
      alias.index = Index::None;
  for (Block &block : bundle.programs[role].blocks)
    for (Instruction &it : block.instructions)
      for (Operand &operand : it.operands) {
        const Buffer &of = bundle.programs[role].buffers[operand.buffer];
        if (operand.buffer == number || of.of == number)
          operand.slot = {};
      }
  what = "'" + buffer.name + "' of " + bundle.programs[role].name + " has one slot";
  return true;
}

bool Breaker::stepTwice() {
  if (!choose(computes))
    return false;
  Instruction again = at(spot);
  what += " twice";
  return insert(spot, again);
}

bool Breaker::coordinate() {
  if (!choose([](const Instruction &it) {
        return std::ranges::any_of(it.imms, [](const Imm &imm) { return !imm.axis.empty(); });
      }))
    return false;
  for (Imm &imm : at(spot).imms) {
    if (imm.axis.empty())
      continue;
    std::vector<std::string> others;
    for (const MeshAxis &axis : bundle.manifest.mesh)
      if (axis.name != imm.axis && axis.size > 1)
        others.push_back(axis.name);
    if (random.below(2) || others.empty())
      imm = {int64_t(random.below(2)), "", 1};
    else
      imm.axis = others[random.below(others.size())];
    what += ": a coordinate became " + (imm.axis.empty() ? std::to_string(imm.value) : imm.axis + "'s");
    return true;
  }
  return false;
}

bool Breaker::callNumbers() {
  if (!choose([](const Instruction &it) { return it.op == Op::Call; }))
    return false;
  Call &call = bundle.programs[spot.role].calls[at(spot).call];
  bool square = call.m == call.n && call.n == call.k && call.lda == call.ldb;
  if (square && random.below(2))
    call.transB = !call.transB;
  else
    call.alpha = 0.5;
  what += ": another alpha or transpose";
  return true;
}

bool Breaker::tradeTensors() {
  uint32_t role = only.value_or(uint32_t(random.below(bundle.programs.size())));
  std::vector<std::pair<Buffer *, Buffer *>> pairs;
  auto &buffers = bundle.programs[role].buffers;
  for (Buffer &one : buffers)
    for (Buffer &other : buffers)
      if (&one < &other && one.kind == BufferKind::State && other.kind == BufferKind::State && one.of == noIndex &&
          other.of == noIndex && one.shape == other.shape && one.type == other.type && one.tensor != other.tensor)
        pairs.push_back({&one, &other});
  if (pairs.empty())
    return false;
  auto [one, other] = pairs[random.below(pairs.size())];
  what = "buffers of tensors '" + one->tensor + "' and '" + other->tensor + "' traded";
  std::swap(one->tensor, other->tensor);
  return true;
}

bool Breaker::rectangles() {
  std::vector<Layout *> layouts;
  for (Tensor &tensor : bundle.manifest.tensors)
    layouts.push_back(&tensor.layout);
  for (Input &input : bundle.manifest.inputs)
    layouts.push_back(&input.layout);
  std::erase_if(layouts, [](const Layout *layout) { return layout->parts.size() < 2; });
  if (only || layouts.empty())
    return false;
  Layout &layout = *layouts[random.below(layouts.size())];
  size_t a = random.below(layout.parts.size()), b = random.below(layout.parts.size());
  if (a == b || layout.parts[a].ranks.size() != layout.parts[b].ranks.size())
    return false;
  std::swap(layout.parts[a].ranks, layout.parts[b].ranks);
  what = "ranks of two rectangles of a layout traded";
  for (const Tensor &tensor : bundle.manifest.tensors)
    if (&tensor.layout == &layout)
      what += ", of tensor '" + tensor.name + "'";
  return true;
}

bool Breaker::otherOutput() {
  if (!choose([](const Instruction &it) { return it.op == Op::Fetch; }))
    return false;
  const Output &before = *bundle.manifest.findOutput(at(spot).name);
  std::vector<std::string> others;
  for (const Output &output : bundle.manifest.outputs)
    if (output.name != before.name && output.type == before.type && output.shape == before.shape)
      others.push_back(output.name);
  if (others.empty())
    return false;
  at(spot).name = others[random.below(others.size())];
  what += ": '" + before.name + "' became '" + at(spot).name + "'";
  return true;
}
