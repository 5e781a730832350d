// Keeps the state of a rank in memory that outlives its process, and gives it back.
#include "KeptState.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace par::core {

namespace {

constexpr uint64_t page = 4096;
constexpr size_t identityBytes = 160;

uint64_t wholePages(uint64_t bytes) { return (bytes + page - 1) / page * page; }

/// A buffer that a copy holds: it lies by itself, and training changes its tensor.
const format::Tensor *keptTensor(const format::Manifest &manifest, const format::Buffer &buffer) {
  if (buffer.kind != format::BufferKind::State || buffer.of != format::noIndex)
    return nullptr;
  const format::Tensor *tensor = manifest.findTensor(buffer.tensor);
  return tensor && changesInTraining(*tensor) ? tensor : nullptr;
}

} // namespace

bool changesInTraining(const format::Tensor &tensor) {
  return tensor.kind != format::TensorKind::Constant && tensor.kind != format::TensorKind::Frozen;
}

std::string Boundary::encode() const {
  char text[192];
  snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %a %" PRIu64 " %d;", step, rows, skipped, lastLoss,
           resident, saidIgnored ? 1 : 0);
  return text;
}

Boundary Boundary::decode(std::string &text) {
  Boundary boundary;
  char *at = text.data();
  for (uint64_t *value : {&boundary.step, &boundary.rows, &boundary.skipped})
    *value = strtoull(at, &at, 10);
  boundary.lastLoss = strtod(at, &at);
  boundary.resident = strtoull(at, &at, 10);
  boundary.saidIgnored = strtoull(at, &at, 10) != 0;
  text.erase(0, static_cast<size_t>(at - text.data()) + 1);
  return boundary;
}

std::vector<KeptPart> keptParts(const format::Bundle &bundle, uint32_t rank) {
  const format::Program &program = bundle.programs[bundle.manifest.ranks[rank].role];
  std::vector<KeptPart> parts;
  uint64_t at = 0;
  for (uint32_t i = 0; i < program.buffers.size(); ++i)
    if (const format::Tensor *tensor = keptTensor(bundle.manifest, program.buffers[i])) {
      uint64_t bytes = program.buffers[i].bytes(), step = format::arenaAlignment;
      parts.push_back({tensor, i, at, bytes});
      at += (bytes + step - 1) / step * step;
    }
  return parts;
}

/// A copy is whole while both numbers are the same and not 0: one is written before its bytes, the other one after
/// them. A process ends between two of its instructions, so that memory then is as it has written it.
struct KeptState::Copy {
  std::atomic<uint64_t> begun, whole;
  Boundary boundary;

  bool isWhole() const { return begun != 0 && begun == whole; }
};

struct KeptState::Header {
  char identity[identityBytes];
  bool begun; ///< with the initial values, as all ranks did
  Copy copies[KeptState::copies];
  alignas(16) std::byte notes[notesBytes];
};

KeptState::Header &KeptState::header() const { return *reinterpret_cast<Header *>(memory.bytes.data()); }

std::byte *KeptState::notesAt() { return keeps() ? header().notes : ownNotes.data(); }

KeptState::Copy &KeptState::copyAt(size_t index) const { return header().copies[index]; }

std::span<std::byte> KeptState::bytesAt(size_t index) const {
  return memory.bytes.subspan(page + index * wholePages(total), total);
}

KeptState::KeptState(const Session &session, const format::Bundle &bundle, const std::string &place, int descriptor,
                     bool goesOn)
    : session(session), all(keptParts(bundle, session.rank())) {
  total = all.empty() ? 0 : all.back().at + all.back().bytes;
  const format::Manifest &manifest = bundle.manifest;
  if (descriptor >= 0)
    open(place,
         "kept state 1 of rank " + std::to_string(session.rank()) + " " + manifest.bundleHash + manifest.planHash,
         descriptor, goesOn);
}

void KeptState::open(const std::string &place, const std::string &identity, int descriptor, bool goesOn) {
  static_assert(sizeof(Header) <= page);
  uint64_t size = page + copies * wholePages(total);
  struct stat file{};
  bool sized = fstat(descriptor, &file) == 0 && static_cast<uint64_t>(file.st_size) == size;
  bool keepsIt = goesOn && sized;
  // The memory is taken now: a page that is lacking later would end the process.
  if (!keepsIt && (ftruncate(descriptor, 0) != 0 || ftruncate(descriptor, static_cast<off_t>(size)) != 0 ||
                   fallocate(descriptor, 0, 0, static_cast<off_t>(size)) != 0))
    throw Failure::at(place, Message::cannotKeep, session.rank(), grouped(size), std::strerror(errno));
  comm::SharedFile shared(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  memory = shared.map(size);
  if (keepsIt && identity.compare(0, identityBytes - 1, header().identity) == 0)
    return;
  std::memset(memory.bytes.data(), 0, page);
  identity.copy(header().identity, identityBytes - 1);
  header().begun = !goesOn;
}

bool KeptState::lost() const { return keeps() && !header().begun && boundaries().empty(); }

void KeptState::beginAgain() {
  if (keeps())
    header().begun = true;
}

std::vector<Boundary> KeptState::boundaries() const {
  std::vector<Boundary> found;
  for (size_t i = 0; keeps() && i < copies; ++i)
    if (copyAt(i).isWhole())
      found.push_back(copyAt(i).boundary);
  std::sort(found.begin(), found.end(), [](const Boundary &a, const Boundary &b) { return a.step < b.step; });
  return found;
}

size_t KeptState::find(uint64_t step) const {
  size_t index = 0;
  while (index < copies && !(copyAt(index).isWhole() && copyAt(index).boundary.step == step))
    ++index;
  return index;
}

std::span<std::byte> KeptState::begin() {
  size_t index = newest == 0 ? 1 : 0;
  copyAt(index).begun = std::max(copyAt(0).begun.load(), copyAt(1).begun.load()) + 1;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return bytesAt(index);
}

void KeptState::end(const Boundary &boundary) {
  size_t index = newest == 0 ? 1 : 0;
  copyAt(index).boundary = boundary;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  copyAt(index).whole = copyAt(index).begun.load();
  newest = index;
}

void KeptState::copy(const Boundary &boundary) {
  std::span<std::byte> to = begin();
  for (const KeptPart &part : all)
    session.onDevice().read(to.subspan(part.at, part.bytes), session.onProgram().address(part.buffer, 0));
  end(boundary);
}

std::span<const std::byte> KeptState::copyOf(uint64_t step) const { return bytesAt(find(step)); }

void KeptState::restore(uint64_t step) {
  newest = find(step);
  const LoadedProgram &program = session.onProgram();
  for (const KeptPart &part : all)
    for (uint32_t slot = 0; slot < format::depthOf(program.program(), part.buffer); ++slot)
      session.onDevice().write(program.address(part.buffer, slot), bytesAt(newest).subspan(part.at, part.bytes));
}

} // namespace par::core
