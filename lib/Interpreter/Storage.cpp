#include "Storage.h"
#include "par/Dialect/Space.h"

using namespace mlir;

namespace par::interp {

Storage::Storage(ProgramOp program) : program(program) {
  for (auto buffer : program.getOps<BufferOp>())
    byName[buffer.getSymName()] = buffer;
}

static int64_t slotNumber(BufferOp buffer, int64_t microbatch) {
  return buffer.getIndex() == SlotIndex::none ? 0 : microbatch % static_cast<int64_t>(buffer.getDepth());
}

Storage::Slot &Storage::slotOf(BufferOp buffer, int64_t microbatch) {
  return slots[{buffer, slotNumber(buffer, microbatch)}];
}

/// The first elements of every shard under the shape of `type`.
static SmallVector<Tensor> seenAs(ArrayRef<Tensor> shards, RankedTensorType type) {
  return llvm::map_to_vector(shards, [&](const Tensor &shard) { return seeAs(shard, type); });
}

FailureOr<SmallVector<Tensor>> Storage::load(LoadOp load, int64_t microbatch) {
  BufferOp buffer = byName.lookup(load.getBuffer());
  Slot &slot = slotOf(buffer, microbatch);
  if (!slot.overwritten.empty())
    return load.emitError() << "reads bytes of slot " << slotNumber(buffer, microbatch) << " of @"
                            << load.getBuffer() << " that @" << slot.overwritten
                            << " has overwritten, at microbatch " << microbatch;
  if (slot.shards.empty())
    return load.emitError() << "reads slot " << slotNumber(buffer, microbatch) << " of @" << load.getBuffer()
                            << " before anything was stored there, at microbatch " << microbatch;
  if (buffer.getIndex() == SlotIndex::mb && slot.microbatch != microbatch)
    return load.emitError() << "reads slot " << slotNumber(buffer, microbatch) << " of @" << load.getBuffer()
                            << " for microbatch " << microbatch << ", which holds microbatch "
                            << slot.microbatch;
  loaded[load] = slot.version;
  return seenAs(slot.shards, load.getType());
}

/// Whatever lies in the bytes of this slot is gone.
void Storage::takeBytes(BufferOp buffer, int64_t slot) {
  if (!buffer.getAt())
    return;
  auto bytes = [](BufferOp of) {
    RankedTensorType type = of.getTensorType();
    return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
  };
  int64_t begin = (*buffer.getAt())[slot], end = begin + bytes(buffer);
  for (auto &[key, other] : slots) {
    auto owner = cast<BufferOp>(key.first);
    if (isOnHost(owner) != isOnHost(buffer) || !owner.getAt() || (owner == buffer && key.second == slot) || other.shards.empty())
      continue;
    int64_t from = (*owner.getAt())[key.second];
    if (from >= end || from + bytes(owner) <= begin)
      continue;
    other.shards.clear();
    other.overwritten = buffer.getSymName().str();
    ++other.version;
  }
}

void Storage::put(BufferOp buffer, int64_t microbatch, ArrayRef<Tensor> shards) {
  takeBytes(buffer, slotNumber(buffer, microbatch));
  Slot &slot = slotOf(buffer, microbatch);
  slot.shards = seenAs(shards, buffer.getTensorType());
  slot.microbatch = microbatch;
  slot.overwritten.clear();
  ++slot.version;
}

void Storage::fill(BufferOp buffer, int64_t microbatch, ArrayRef<Tensor> shards) {
  put(buffer, microbatch, shards);
}

void Storage::store(StoreOp store, int64_t microbatch, ArrayRef<Tensor> shards) {
  BufferOp buffer = byName.lookup(store.getBuffer());
  put(buffer, microbatch, shards);
  slotOf(buffer, microbatch).stored = true;
}

SmallVector<Tensor> Storage::peek(BufferOp buffer, int64_t slot, RankedTensorType type) {
  return seenAs(slotOf(buffer, slot).shards, type);
}

LogicalResult Storage::checkStillThere(Operation *user, LoadOp load, int64_t microbatch) {
  BufferOp buffer = byName.lookup(load.getBuffer());
  Slot &slot = slotOf(buffer, microbatch);
  if (!buffer.getAt() || slot.version == loaded.lookup(load))
    return success();
  InFlightDiagnostic error = user->emitError()
                             << "uses what stood in @" << load.getBuffer() << ", but its bytes now hold "
                             << (slot.overwritten.empty() ? "a later value" : "@" + slot.overwritten);
  error.attachNote(load.getLoc()) << "loaded here";
  return error;
}

SmallVector<BufferOp> Storage::stored() {
  SmallVector<BufferOp> result;
  for (auto buffer : program.getOps<BufferOp>())
    if (slotOf(buffer, 0).stored)
      result.push_back(buffer);
  return result;
}

} // namespace par::interp
