// V1: where ranks stand follows from their coordinates. Member i of a group gets part i of a scatter, and a rank of
// coordinate i holds part i of a tensor. Both are written down for each rank; here they are held against the
// coordinates: members of collectives ascend, groups of one communicator list corresponding ranks in one order (by
// their numbers, or all by their coordinates, where a plan numbers ranks by another order of the axes), a rectangle
// begins further on where a coordinate is larger, and by the same step everywhere. A rank has the same rows of all
// inputs. An immediate that is a coordinate for one instruction is one for all of the kernel.
#include "format/LayoutNumbers.h"
#include "verify/Model.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

using namespace par;
using namespace par::format;
using namespace par::verify;

using Found = std::optional<Counterexample>;

static Counterexample fail(const std::string &message) { return {Property::WellFormed, message, {}}; }

/// Communicators over which some program has collectives, but for those of one number: stages add such up in their own
/// order.
static std::set<std::string> findCollective(const Bundle &bundle) {
  std::set<std::string> names;
  for (const Program &program : bundle.programs)
    for (const Block &block : program.blocks)
      for (const Instruction &it : block.instructions)
        if (it.op == Op::Coll && it.n > 1)
          names.insert(program.comms[it.comm].name);
  return names;
}

/// The order in which groups list ranks.
using RankOrder = std::function<bool(uint32_t, uint32_t)>;

static Found checkGroups(const Communicator &comm, bool collective, const RankOrder &isBefore) {
  for (const std::vector<uint32_t> &group : comm.groups)
    if (collective && !std::is_sorted(group.begin(), group.end(), isBefore))
      return fail("communicator '" + comm.name + "' has collectives, but lists rank " + std::to_string(group[0]) +
                  "'s group in another order than that of ranks");
  std::vector<const std::vector<uint32_t> *> groups;
  for (const std::vector<uint32_t> &group : comm.groups)
    groups.push_back(&group);
  std::sort(groups.begin(), groups.end(),
            [&](const auto *a, const auto *b) { return isBefore(a->front(), b->front()); });
  for (size_t i = 1; i < groups.size(); ++i)
    for (size_t member = 0; member < std::min(groups[i - 1]->size(), groups[i]->size()); ++member)
      if (isBefore((*groups[i])[member], (*groups[i - 1])[member]))
        return fail("communicator '" + comm.name + "' has rank " + std::to_string((*groups[i])[member]) +
                    " beside rank " + std::to_string(groups[i]->front()) + ", but rank " +
                    std::to_string((*groups[i - 1])[member]) + " beside rank " +
                    std::to_string(groups[i - 1]->front()) + ": not in one order");
  return std::nullopt;
}

/// Whether each place of the mesh is one rank's, so that coordinates order all ranks; not where stages have meshes of
/// their own.
static bool isGrid(const Manifest &manifest) {
  uint64_t places = 1;
  for (const MeshAxis &axis : manifest.mesh)
    places *= axis.size;
  return places == manifest.ranks.size();
}

/// All communicators list ranks by their numbers, or all by their coordinates.
static Found checkCommunicators(const Bundle &bundle) {
  const Manifest &manifest = bundle.manifest;
  std::set<std::string> collective = findCollective(bundle);
  auto check = [&](const RankOrder &isBefore) {
    Found found;
    for (const Communicator &comm : manifest.communicators)
      if (!found)
        found = checkGroups(comm, collective.count(comm.name) > 0, isBefore);
    return found;
  };
  Found found = check(std::less<>());
  bool byCoordinates = found && isGrid(manifest) && !check([&](uint32_t a, uint32_t b) {
                         return manifest.ranks[a].coordinate < manifest.ranks[b].coordinate;
                       });
  return byCoordinates ? std::nullopt : found;
}

namespace {
/// Ranks in the order of their coordinates, and the rank that is one further on an axis.
struct Neighbours {
  std::vector<uint32_t> order;
  std::vector<std::vector<uint32_t>> next; ///< [axis][rank]; noIndex: there is none

  explicit Neighbours(const Manifest &manifest) {
    std::map<std::vector<uint32_t>, uint32_t> at;
    for (uint32_t rank = 0; rank < manifest.ranks.size(); ++rank)
      at[manifest.ranks[rank].coordinate] = rank;
    next.assign(manifest.mesh.size(), std::vector<uint32_t>(manifest.ranks.size(), noIndex));
    for (const auto &[coordinate, rank] : at) {
      order.push_back(rank);
      std::vector<uint32_t> further = coordinate;
      for (size_t axis = 0; axis < next.size(); ++axis, further = coordinate) {
        ++further[axis];
        if (auto other = at.find(further); other != at.end())
          next[axis][rank] = other->second;
      }
    }
  }
};
} // namespace

/// If two ranks differ by one on only one axis, their parts are the same number of parts apart, for every such pair.
static Found checkLayout(const Manifest &manifest, const Neighbours &ranks, const Layout &layout,
                         const std::string &what) {
  std::vector<const Rectangle *> parts(manifest.ranks.size());
  for (const Rectangle &part : layout.parts)
    if (std::ranges::all_of(part.size, [](int64_t size) { return size > 0; }))
      for (uint32_t rank : part.ranks)
        parts[rank] = &part;
  for (size_t dim = 0; dim < layout.local.size(); ++dim) {
    std::vector<std::optional<int64_t>> steps(manifest.mesh.size());
    for (uint32_t rank : ranks.order)
      for (size_t axis = 0; parts[rank] && axis < steps.size(); ++axis) {
        uint32_t other = ranks.next[axis][rank];
        if (other == noIndex || !parts[other])
          continue;
        int64_t step = (parts[other]->start[dim] - parts[rank]->start[dim]) / layout.local[dim];
        if (step < 0 || steps[axis].value_or(step) != step)
          return fail(what + " has its rectangles in another order than coordinates of axis '" +
                      manifest.mesh[axis].name + "' in dim " + std::to_string(dim));
        steps[axis] = step;
      }
  }
  return std::nullopt;
}

/// Inputs of one batch are cut alike.
static Found checkRows(const Manifest &manifest) {
  std::map<uint32_t, std::pair<const Input *, const Rectangle *>> first;
  auto rowsOf = [](const Input &input, const Rectangle &part) {
    return std::pair(double(part.start[0]) / double(input.shape[0]), double(part.size[0]) / double(input.shape[0]));
  };
  for (const Input &input : manifest.inputs)
    for (uint32_t rank = 0;
         input.microbatched && !input.shape.empty() && input.shape[0] > 0 && rank < manifest.ranks.size(); ++rank) {
      const Rectangle *part = rectangleOf(layoutFor(input, rank), rank);
      if (!part)
        continue;
      auto [known, fresh] = first.try_emplace(rank, &input, part);
      if (!fresh && rowsOf(*known->second.first, *known->second.second) != rowsOf(input, *part))
        return fail("rank " + std::to_string(rank) + " has other rows of input '" + input.name + "' than of input '" +
                    known->second.first->name + "'");
    }
  return std::nullopt;
}

/// Generated code has an immediate for a coordinate of one axis, or for a number: of which, all its instructions say
/// alike.
static Found checkImmediates(const Bundle &bundle) {
  std::map<std::pair<std::string, uint32_t>, std::string> known;
  auto said = [](const std::string &axis) {
    return axis.empty() ? "a number" : "the coordinate on axis '" + axis + "'";
  };
  for (const Program &program : bundle.programs)
    for (uint32_t block = 0; block < program.blocks.size(); ++block)
      for (uint32_t n = 0; n < program.blocks[block].instructions.size(); ++n) {
        const Instruction &it = program.blocks[block].instructions[n];
        for (uint32_t i = 0; i < it.imms.size(); ++i) {
          const Kernel &kernel = program.kernels[it.kernel];
          auto [first, fresh] = known.try_emplace({kernel.symbol, i}, it.imms[i].axis);
          if (!fresh && first->second != it.imms[i].axis)
            return fail("kernel '" + kernel.name + "' takes " + said(first->second) + " as immediate " +
                        std::to_string(i) + " in one instruction, and " + said(it.imms[i].axis) + " in " +
                        instructionId(program, block, n));
        }
      }
  return std::nullopt;
}

std::optional<Counterexample> par::verify::checkCoordinates(const Bundle &bundle) {
  const Manifest &manifest = bundle.manifest;
  if (Found found = checkCommunicators(bundle))
    return found;
  Neighbours neighbours(manifest);
  LayoutNumbers layouts;
  std::set<uint32_t> known;
  for (const Tensor &tensor : manifest.tensors)
    if (known.insert(layouts.of(tensor.layout)).second)
      if (Found found = checkLayout(manifest, neighbours, tensor.layout, "tensor '" + tensor.name + "'"))
        return found;
  for (const Input &input : manifest.inputs)
    if (known.insert(layouts.of(input.layout)).second)
      if (Found found = checkLayout(manifest, neighbours, input.layout, "input '" + input.name + "'"))
        return found;
  if (Found found = checkRows(manifest))
    return found;
  return checkImmediates(bundle);
}
