// V5: state is written wholly, and once a batch. An entry that updates a parameter updates all that have a state or are
// written by some rank, with their optimizer states, copies and counters; each byte is computed at most once a batch,
// and is computed, gathered, received or copied. State that calls carry on for each microbatch is written completely,
// too, if any of it is.
#include "JointRun.h"

#include <algorithm>

using namespace par;
using namespace par::format;
using namespace par::verify;

namespace {
/// A state buffer of a player, and the written bytes of a slot.
struct Slot {
  const Cursor &player;
  uint32_t buffer, slot;
  const Tensor &tensor;
};
} // namespace

static bool isTrained(const Tensor &tensor) {
  return tensor.kind == TensorKind::Parameter || tensor.kind == TensorKind::State || tensor.kind == TensorKind::Copy;
}

static bool isCarried(const Cursor &player, const Tensor &tensor, uint32_t buffer) {
  return tensor.kind == TensorKind::Counter && player.program->buffers[buffer].index == Index::Mb;
}

/// Whether an entry that trains is to write a tensor: not a parameter without a gradient, nor a loss scale that stays.
static bool isMoved(const Tensor &tensor, const std::set<std::string> &moved) {
  bool counts = tensor.kind == TensorKind::Counter;
  return (isTrained(tensor) || counts) && moved.count(tensor.kind == TensorKind::Copy ? tensor.of : tensor.name);
}

static uint64_t bytesWritten(const std::vector<Written> &list) {
  uint64_t bytes = 0;
  for (const Written &it : list)
    bytes += it.end - it.begin;
  return bytes;
}

static std::optional<Counterexample> checkSlot(const JointRun &joint, const Slot &it, bool wanted) {
  auto known = it.player.state.find({it.buffer, it.slot});
  static const std::vector<Written> none;
  const std::vector<Written> &list = known == it.player.state.end() ? none : known->second;
  uint64_t bytes = it.player.program->buffers[it.buffer].bytes(), written = bytesWritten(list);
  std::string rank = "rank " + std::to_string(it.player.ranks.front());
  if (written < bytes && (wanted || written > 0))
    return Counterexample{Property::Value,
                          "written: entry " + joint.entry + " writes " + std::to_string(written) + " of " +
                              std::to_string(bytes) + " bytes of tensor '" + it.tensor.name + "' on " + rank,
                          {}};
  for (const Written &part : list)
    if (isTrained(it.tensor) && part.computed > joint.bundle.manifest.calls)
      return Counterexample{Property::Value,
                            "written: entry " + joint.entry + " computes tensor '" + it.tensor.name + "' " +
                                std::to_string(part.computed) + " times on " + rank + ", for " +
                                std::to_string(joint.bundle.manifest.calls) + " batches",
                            {}};
  for (const Piece &piece : it.player.slots[it.buffer][it.slot])
    if (wanted && piece.made && isTrained(it.tensor) && joint.initial.count(piece.term.name))
      return Counterexample{Property::Value,
                            "written: entry " + joint.entry + " leaves tensor '" + it.tensor.name + "' on " + rank +
                                " as it was, other parameters are updated",
                            {joint.line(it.player, *it.player.made[piece.made].run, it.player.made[piece.made].n)}};
  return std::nullopt;
}

std::optional<Counterexample> par::verify::checkUpdates(const JointRun &joint) {
  std::vector<Slot> slots;
  std::set<std::string> moved; // tensors that are written somewhere, or have a state of their own
  bool trains = false, carries = false;
  for (const Tensor &tensor : joint.bundle.manifest.tensors)
    if (tensor.kind == TensorKind::State)
      moved.insert(tensor.of), moved.insert(tensor.name);
  for (const Cursor &player : joint.players)
    for (uint32_t i = 0; i < player.program->buffers.size(); ++i) {
      const Buffer &buffer = player.program->buffers[i];
      const Tensor *tensor = buffer.of == noIndex && buffer.kind == BufferKind::State
                                 ? joint.bundle.manifest.findTensor(buffer.tensor)
                                 : nullptr;
      uint32_t depth = !tensor ? 0 : buffer.index == Index::Mb ? uint32_t(buffer.at.size()) : 1;
      for (uint32_t slot = 0; slot < depth; ++slot) {
        slots.push_back({player, i, slot, *tensor});
        bool written = player.state.count({i, slot}) > 0;
        trains |= written && tensor->kind == TensorKind::Parameter;
        carries |= written && isCarried(player, *tensor, i);
        if (written)
          moved.insert(tensor->kind == TensorKind::Copy ? tensor->of : tensor->name);
      }
    }
  for (const Slot &it : slots)
    if (auto found =
            checkSlot(joint, it,
                      (trains && isMoved(it.tensor, moved)) || (carries && isCarried(it.player, it.tensor, it.buffer))))
      return found;
  return std::nullopt;
}
