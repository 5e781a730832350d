// Look-ups in a manifest.
#include "par/format/Manifest.h"
#include "Names.h"

#include <algorithm>

using namespace par::format;

std::string_view par::format::toString(TensorKind kind) { return nameOf(kind); }
std::string_view par::format::toString(InitRule::Kind kind) { return nameOf(kind); }
std::string_view par::format::toString(LrSchedule::Decay decay) { return nameOf(decay); }
std::string_view par::format::toString(TextFeed::Mode mode) { return nameOf(mode); }

template <typename T>
static const T *find(const std::vector<T> &table, std::string_view name) {
  for (const T &element : table)
    if (element.name == name)
      return &element;
  return nullptr;
}

const Tensor *Manifest::findTensor(std::string_view name) const { return find(tensors, name); }
const Input *Manifest::findInput(std::string_view name) const { return find(inputs, name); }
const Output *Manifest::findOutput(std::string_view name) const { return find(outputs, name); }
const Communicator *Manifest::findCommunicator(std::string_view name) const { return find(communicators, name); }

std::optional<Membership> par::format::membershipOf(const Communicator &communicator, uint32_t rank) {
  return communicator.groups.find(rank);
}

bool par::format::isSentToNobody(const Communicator &communicator, const Instruction &it, int64_t microbatch,
                                 uint32_t rank) {
  if (it.op != Op::Send)
    return false;
  std::optional<Membership> own = membershipOf(communicator, rank);
  return !own || it.peer[uint64_t(microbatch) % it.peer.size()] >= communicator.groups[own->group].size();
}

const Layout &par::format::layoutFor(const Input &input, uint32_t rank) {
  for (const Layout &layout : input.more)
    if (rectangleOf(layout, rank))
      return layout;
  return input.layout;
}

const Rectangle *par::format::rectangleOf(const Layout &layout, uint32_t rank) {
  for (const Rectangle &part : layout.parts)
    if (std::find(part.ranks.begin(), part.ranks.end(), rank) != part.ranks.end())
      return &part;
  return nullptr;
}

std::optional<uint32_t> par::format::coordinateOf(const Manifest &manifest, uint32_t rank, std::string_view axis) {
  for (size_t i = 0; i < manifest.mesh.size(); ++i)
    if (manifest.mesh[i].name == axis)
      return manifest.ranks[rank].coordinate[i];
  return std::nullopt;
}
