// V5: ranks that hold the same end with the same.
#include "JointRun.h"

#include <algorithm>
#include <span>

using namespace par;
using namespace par::format;
using namespace par::verify;

namespace {
/// Buffers of tensors, by program.
class Holders {
public:
  explicit Holders(const JointRun &joint) : joint(joint) {
    for (const Cursor &player : joint.players) {
      buffers.emplace_back();
      for (uint32_t i = 0; i < player.program->buffers.size(); ++i)
        if (player.program->buffers[i].kind == BufferKind::State && player.program->buffers[i].of == noIndex)
          buffers.back()[player.program->buffers[i].tensor] = i;
    }
  }
  const std::vector<Content> &slotsOf(const std::string &tensor, uint32_t rank) const {
    uint32_t player = joint.playerOf[rank];
    return joint.players[player].slots[buffers[player].at(tensor)];
  }

private:
  const JointRun &joint;
  std::vector<std::unordered_map<std::string_view, uint32_t>> buffers; ///< [player]: by tensor
};

/// Which ranks of its player hold a content, or several, with the values of one of them: those with its classes in all
/// of the spreads, of which there are few.
class SameClasses {
public:
  SameClasses(const JointRun &joint, uint32_t rank) : joint(joint), rank(rank) {}
  void add(const Content &content) {
    for (const Piece &piece : content)
      if (!std::ranges::count(spreads, piece.term.spread))
        spreads.push_back(piece.term.spread);
  }
  bool operator()(uint32_t other) const {
    return joint.playerOf[other] == joint.playerOf[rank] && std::ranges::all_of(spreads, [&](auto spread) {
             return joint.classes.classOf(spread, other) == joint.classes.classOf(spread, rank);
           });
  }

private:
  const JointRun &joint;
  uint32_t rank;
  std::vector<RankClasses::Spread> spreads;
};
} // namespace

/// The instruction that has written the first byte, if one of the entry has.
static void noteMaker(const JointRun &joint, uint32_t rank, const Content &content, std::vector<std::string> &notes) {
  const Cursor &player = joint.players[joint.playerOf[rank]];
  for (const Piece &piece : content)
    if (piece.made)
      return notes.push_back(describeStep(joint.bundle, rank, *player.made[piece.made].run, player.made[piece.made].n));
}

static std::optional<Counterexample> compare(const JointRun &joint, const std::string &what, uint32_t a,
                                             const Content &one, uint32_t b, const Content &other) {
  if (sameContent(one, a, other, b, joint.classes))
    return std::nullopt;
  Counterexample found{Property::Value,
                       "replicas: ranks " + std::to_string(a) + " and " + std::to_string(b) + " " + what +
                           " of entry " + joint.entry + " with different values",
                       {}};
  noteMaker(joint, a, one, found.notes);
  noteMaker(joint, b, other, found.notes);
  return found;
}

/// Whether a value is received or gathered, a copy of such a value (to host memory), or a kernel has computed it from
/// such values without reading state (the gathered shards in the order of the whole).
static bool wasSent(const JointRun &joint, const Cursor &player, uint32_t made) {
  const Instruction &it = joint.instruction(player, player.made[made]);
  auto isSent = [](const Instruction &one) { return one.op == Op::Recv || one.op == Op::Coll; };
  if (isSent(it))
    return true;
  bool readsState = std::ranges::any_of(it.operands, [&](const Operand &operand) {
    const Buffer &buffer = player.program->buffers[operand.buffer];
    const Buffer &base = buffer.of == noIndex ? buffer : player.program->buffers[buffer.of];
    return operand.access != Access::Write && base.kind == BufferKind::State;
  });
  if ((it.op != Op::Kernel && it.op != Op::Copy) || readsState)
    return false;
  bool any = false, all = true;
  for (const Use &use : player.uses)
    if (use.first <= made && made < use.end) {
      any = true;
      all &= it.op == Op::Copy ? wasSent(joint, player, use.from)
                               : isSent(joint.instruction(player, player.made[use.from]));
    }
  return any && all;
}

/// Whether all of a content came by communication: then the copy of a tensor holds its owner's value, and it is not
/// always known which ranks of another stage hold equal values.
static bool wasSent(const JointRun &joint, uint32_t rank, const Content &content) {
  const Cursor &player = joint.players[joint.playerOf[rank]];
  return std::ranges::all_of(content,
                             [&](const Piece &piece) { return piece.made && wasSent(joint, player, piece.made); });
}

/// The first rank that has the part, of a copy also the owner's, with each other rank.
static std::optional<Counterexample> comparePart(const JointRun &joint, const Holders &holders, const Tensor &tensor,
                                                 const Tensor *of, const Rectangle &part) {
  uint32_t first = part.ranks.front();
  const std::vector<Content> &one = holders.slotsOf(tensor.name, first);
  SameClasses same(joint, first);
  for (const Content &content : one)
    same.add(content);
  for (uint32_t rank : std::span(part.ranks).subspan(1)) {
    if (same(rank))
      continue;
    const std::vector<Content> &other = holders.slotsOf(tensor.name, rank);
    for (size_t slot = 0; slot < std::min(one.size(), other.size()); ++slot)
      if (auto found = compare(joint, "end tensor '" + tensor.name + "'", first, one[slot], rank, other[slot]))
        return found;
  }
  for (const Rectangle &original : of ? of->layout.parts : Rectangles()) {
    if (original.start != part.start || original.size != part.size)
      continue;
    const std::vector<Content> &owned = holders.slotsOf(of->name, original.ranks.front());
    for (size_t slot = 0; slot < std::min(one.size(), owned.size()); ++slot)
      if (!wasSent(joint, first, one[slot]))
        if (auto found = compare(joint, "end tensor '" + of->name + "' and its copy", original.ranks.front(),
                                 owned[slot], first, one[slot]))
          return found;
  }
  return std::nullopt;
}

static std::optional<Counterexample> compareTensor(const JointRun &joint, const Holders &holders,
                                                   const Tensor &tensor) {
  const Tensor *of = tensor.kind == TensorKind::Copy ? joint.bundle.manifest.findTensor(tensor.of) : nullptr;
  for (const Rectangle &part : tensor.layout.parts)
    if (!std::ranges::count(part.size, 0)) // padded: after the end each rank may have its own
      if (auto found = comparePart(joint, holders, tensor, of, part))
        return found;
  return std::nullopt;
}

/// The last fetch of a rank counts.
static std::optional<Counterexample> compareFetched(const JointRun &joint, const Output &output,
                                                    const std::vector<Fetched> &list) {
  std::vector<const Fetched *> of(joint.players.size());
  for (const Fetched &it : list)
    of[it.player] = &it;
  auto sides = [&](const std::vector<uint32_t> &ranks) -> std::optional<Counterexample> {
    if (ranks.empty())
      return std::nullopt;
    SameClasses same(joint, ranks[0]);
    if (const Fetched *one = of[joint.playerOf[ranks[0]]])
      same.add(one->content);
    for (uint32_t rank : ranks) {
      if (same(rank))
        continue;
      const Fetched *one = of[joint.playerOf[ranks[0]]], *other = of[joint.playerOf[rank]];
      if (one && other)
        if (auto found =
                compare(joint, "give output '" + output.name + "'", ranks[0], one->content, rank, other->content))
          return found;
    }
    return std::nullopt;
  };
  std::vector<uint32_t> all;
  for (uint32_t rank = 0; rank < joint.playerOf.size(); ++rank)
    if (of[joint.playerOf[rank]])
      all.push_back(rank);
  if (output.layout.parts.empty())
    return sides(output.metric ? all : output.ranks);
  for (const Rectangle &part : output.layout.parts)
    if (auto found = sides(part.ranks))
      return found;
  return std::nullopt;
}

std::optional<Counterexample> par::verify::checkReplicas(const JointRun &joint) {
  Holders holders(joint);
  for (const Tensor &tensor : joint.bundle.manifest.tensors)
    if (auto found = compareTensor(joint, holders, tensor))
      return found;
  for (const auto &[place, list] : joint.fetched)
    if (auto found = compareFetched(joint, *joint.bundle.manifest.findOutput(place.first), list))
      return found;
  return std::nullopt;
}
