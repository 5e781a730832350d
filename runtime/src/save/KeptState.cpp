// Keeps the state of a rank in memory that outlives its process, and gives it back.
#include "KeptState.h"

#include "par/messages/Failure.h"

#include <cstring>
#include <utility>

namespace par::core {

namespace {

/// The ranks whose memory a rank sees; at least itself.
std::vector<uint32_t> seenBy(uint32_t rank, const std::vector<int> &descriptors) {
  std::vector<uint32_t> seen;
  for (uint32_t other = 0; other < descriptors.size(); ++other)
    if (descriptors[other] >= 0)
      seen.push_back(other);
  return seen.empty() ? std::vector<uint32_t>{rank} : seen;
}

} // namespace

KeptState::KeptState(const Session &session, const format::Bundle &bundle, const std::string &place,
                     std::vector<int> given, bool goesOn)
    : session(session), descriptors(std::move(given)),
      shares(bundle, session.rank(), seenBy(session.rank(), descriptors)),
      isTogether(seenBy(session.rank(), descriptors).size() > 1) {
  if (descriptors.empty())
    return;
  uint32_t rank = session.rank();
  std::string identity = identityOf(bundle, rank);
  uint64_t bytes = shares.copiedBy(rank);
  try {
    memory = CopyMemory(descriptors[rank], bytes, identity, goesOn);
  } catch (const std::runtime_error &error) {
    throw Failure::at(place, Message::cannotKeep, rank, grouped(CopyMemory::sizeFor(bytes)), error.what());
  }
}

std::string KeptState::identityOf(const format::Bundle &bundle, uint32_t rank) {
  const format::Manifest &manifest = bundle.manifest;
  return "kept state 2 of rank " + std::to_string(rank) + " " + manifest.bundleHash + manifest.planHash;
}

void KeptState::beginAgain() {
  if (keeps())
    memory.begin();
}

std::vector<Boundary> KeptState::boundaries() const { return keeps() ? memory.boundaries() : std::vector<Boundary>(); }

std::span<std::byte> KeptState::begin() {
  memory.beginCopy(older());
  return memory.bytesAt(older());
}

void KeptState::end(const Boundary &boundary) {
  newest = older();
  memory.endCopy(newest, boundary);
}

void KeptState::fill(const Boundary &boundary, const FillPart &visit) {
  std::span<std::byte> to = begin();
  std::vector<std::byte> bytes;
  uint32_t filled = ~0U; // the part in `bytes`
  for (const KeptPiece &piece : shares.pieces()) {
    if (piece.holder != session.rank())
      continue;
    const KeptPart &part = shares.parts()[piece.part];
    if (std::exchange(filled, piece.part) != piece.part) {
      bytes.assign(part.bytes, std::byte(0));
      visit(piece.part, *part.tensor, bytes);
    }
    std::memcpy(to.data() + piece.heldAt, bytes.data() + piece.at, piece.bytes);
  }
  end(boundary);
}

void KeptState::readInto(std::span<std::byte> copy) const {
  for (const KeptPiece &piece : shares.pieces())
    if (piece.holder == session.rank())
      session.onDevice().read(copy.subspan(piece.heldAt, piece.bytes),
                              session.onProgram().address(shares.parts()[piece.part].buffer, 0) + piece.at);
}

void KeptState::copy(const Boundary &boundary) {
  readInto(begin());
  end(boundary);
}

std::span<const std::byte> KeptState::heldBy(uint32_t rank, uint64_t step) {
  if (rank == session.rank())
    return copyOf(step);
  auto other = others.find(rank);
  if (other == others.end())
    other = others.emplace(rank, CopyMemory(descriptors[rank], shares.copiedBy(rank))).first;
  return other->second.bytesAt(other->second.find(step));
}

void KeptState::restore(uint64_t step, uint64_t stays) {
  newest = memory.find(stays);
  const LoadedProgram &program = session.onProgram();
  for (const KeptPiece &piece : shares.pieces()) {
    std::span<const std::byte> from = heldBy(piece.holder, step).subspan(piece.heldAt, piece.bytes);
    uint32_t buffer = shares.parts()[piece.part].buffer;
    for (uint32_t slot = 0; slot < format::depthOf(program.program(), buffer); ++slot)
      session.onDevice().write(program.address(buffer, slot) + piece.at, from);
  }
  others.clear();
}

} // namespace par::core
