// A bundle of one rank sends nothing, and nothing computes beside it. Measured twice at once, it tells what processes
// of a host cost each other, and what they send: its file then serves other plans of the model.
#include "MadeEntry.h"
#include "par/calibrate/Calibrate.h"

#include <algorithm>

namespace par::calibrate {

using format::Instruction;
using format::Op;

namespace {

constexpr const char *communicatorName = "calibrate";
constexpr uint64_t elements[] = {256, 8192, 262144, 2097152}; ///< of f32: 1 KiB to 8 MiB

/// Instructions of a communication; no entry runs them.
format::Block communicationOf(uint32_t comm, uint32_t queue) {
  format::Block block;
  block.name = communicatorName;
  for (uint64_t n : elements)
    for (Op op : {Op::Coll, Op::Send}) {
      Instruction &it = block.instructions.emplace_back();
      it.op = op;
      it.queue = queue;
      it.comm = comm;
      it.n = n;
      if (op == Op::Send)
        it.peer = {1};
    }
  return block;
}

void addRank(format::Layout &layout) {
  for (size_t part = 0; part < layout.parts.size(); ++part)
    layout.parts[part].ranks.push_back(1);
}

} // namespace

format::Bundle besideItself(const format::Bundle &bundle) {
  format::Bundle wider = bundle;
  format::Manifest &manifest = wider.manifest;
  manifest.ranks.push_back(manifest.ranks.front());
  manifest.communicators.push_back({communicatorName, {{0, 1}}});
  for (format::Tensor &tensor : manifest.tensors)
    addRank(tensor.layout);
  for (format::Input &input : manifest.inputs) {
    addRank(input.layout);
    std::for_each(input.more.begin(), input.more.end(), addRank);
  }
  format::Program &program = wider.programs.front();
  uint32_t queue = computeQueue(program);
  program.comms.push_back({communicatorName, queue});
  program.blocks.push_back(communicationOf(static_cast<uint32_t>(program.comms.size() - 1), queue));
  return wider;
}

} // namespace par::calibrate
