#include "Storage.h"
#include "par/Base/TypeSize.h"
#include "par/Dialect/Space.h"

using namespace mlir;

namespace par::interp {

Storage::Storage(ProgramOp program) : program(program) {
  for (auto buffer : program.getOps<BufferOp>())
    byName[buffer.getSymName()] = buffer;
}

Storage::Slot &Storage::slotOf(BufferOp buffer, RunIndex run) { return slots[{buffer, run.slotOf(buffer)}]; }

/// The first elements of every shard under the shape of `type`.
static SmallVector<Tensor> seenAs(ArrayRef<Tensor> shards, RankedTensorType type) {
  return llvm::map_to_vector(shards, [&](const Tensor &shard) { return seeAs(shard, type); });
}

FailureOr<SmallVector<Tensor>> Storage::load(LoadOp load, RunIndex run) {
  BufferOp buffer = byName.lookup(load.getBuffer());
  Slot &slot = slotOf(buffer, run);
  if (!slot.overwritten.empty())
    return load.emitError() << "reads bytes of slot " << run.slotOf(buffer) << " of @" << load.getBuffer() << " that @"
                            << slot.overwritten << " has overwritten, at microbatch " << run.microbatch;
  if (slot.shards.empty())
    return load.emitError() << "reads slot " << run.slotOf(buffer) << " of @" << load.getBuffer()
                            << " before anything was stored there, at microbatch " << run.microbatch;
  if (buffer.getIndex() == SlotIndex::version && slot.number != run.version)
    return load.emitError() << "reads slot " << run.slotOf(buffer) << " of @" << load.getBuffer() << " for version "
                            << run.version << ", which holds version " << slot.number;
  if (buffer.getIndex() == SlotIndex::microbatch && slot.number != run.microbatch)
    return load.emitError() << "reads slot " << run.slotOf(buffer) << " of @" << load.getBuffer() << " for microbatch "
                            << run.microbatch << ", which holds microbatch " << slot.number;
  loaded[load] = slot.version;
  return seenAs(slot.shards, load.getType());
}

/// Invalidates the values in the bytes of this slot.
void Storage::takeBytes(BufferOp buffer, int64_t slot) {
  if (!buffer.getAt())
    return;
  auto bytes = [](BufferOp of) { return getByteSize(of.getTensorType()); };
  int64_t begin = (*buffer.getAt())[slot], end = begin + bytes(buffer);
  for (auto &[key, other] : slots) {
    auto owner = cast<BufferOp>(key.first);
    if (isOnHost(owner) != isOnHost(buffer) || !owner.getAt() || (owner == buffer && key.second == slot) ||
        other.shards.empty())
      continue;
    int64_t from = (*owner.getAt())[key.second];
    if (from >= end || from + bytes(owner) <= begin)
      continue;
    other.shards.clear();
    other.overwritten = buffer.getSymName().str();
    ++other.version;
  }
}

void Storage::put(BufferOp buffer, RunIndex run, ArrayRef<Tensor> shards) {
  takeBytes(buffer, run.slotOf(buffer));
  Slot &slot = slotOf(buffer, run);
  slot.shards = seenAs(shards, buffer.getTensorType());
  slot.number = run.of(buffer);
  slot.overwritten.clear();
  ++slot.version;
}

void Storage::fill(BufferOp buffer, RunIndex run, ArrayRef<Tensor> shards) { put(buffer, run, shards); }

void Storage::store(StoreOp store, RunIndex run, ArrayRef<Tensor> shards) {
  BufferOp buffer = byName.lookup(store.getBuffer());
  put(buffer, run, shards);
  slotOf(buffer, run).stored = true;
}

SmallVector<Tensor> Storage::peek(BufferOp buffer, int64_t slot, RankedTensorType type) {
  return seenAs(slotOf(buffer, {slot, slot}).shards, type);
}

LogicalResult Storage::checkStillThere(Operation *user, LoadOp load, RunIndex run) {
  BufferOp buffer = byName.lookup(load.getBuffer());
  Slot &slot = slotOf(buffer, run);
  if (!buffer.getAt() || slot.version == loaded.lookup(load))
    return success();
  InFlightDiagnostic error = user->emitError()
                             << "uses the value of @" << load.getBuffer() << ", but its bytes now hold "
                             << (slot.overwritten.empty() ? "a later value" : "@" + slot.overwritten);
  error.attachNote(load.getLoc()) << "loaded here";
  return error;
}

SmallVector<BufferOp> Storage::stored() {
  SmallVector<BufferOp> result;
  for (auto buffer : program.getOps<BufferOp>())
    if (slotOf(buffer, {}).stored)
      result.push_back(buffer);
  return result;
}

} // namespace par::interp
