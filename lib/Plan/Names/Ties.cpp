// Parameters that a plan makes one.
#include "par/Plan/Names/NameTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace par {
namespace {

using Parameter = NameTable::Parameter;

/// The layout in the file of the matrix that PyTorch knows by a parameter's names.
enum class Lies { AsIs, Transposed, Unknown };

Lies liesOf(const Parameter &parameter) {
  if (!parameter.transposed.empty())
    return Lies::Transposed;
  // A matrix that the exporter computed may be either; of vectors and kernels it computes no transpose.
  return parameter.renamed && parameter.shape.size() == 2 ? Lies::Unknown : Lies::AsIs;
}

std::string spellType(const Parameter &parameter) {
  auto sizes = llvm::map_range(parameter.shape, [](int64_t size) { return std::to_string(size); });
  return parameter.type + "[" + llvm::join(sizes, ", ") + "]";
}

/// For every parameter the one that it is tied to, -1: none; these may be tied themselves.
class Ties {
public:
  Ties(const NameTable &names, PlanErrors &errors)
      : names(names), errors(errors), owner(names.parameters.size(), -1), said(names.parameters.size()) {}

  void add(const PlanTie &tie) {
    std::vector<unsigned> copies = resolveParameters(tie.name, names, errors);
    std::vector<unsigned> owners = resolveParameters(tie.owner, names, errors);
    if (owners.size() > 1) {
      auto known = llvm::map_range(owners, [&](unsigned index) { return names.parameters[index].name; });
      errors.error(tie.owner.origin, PlanMessage::tieToSeveral, tie.owner.pattern.text(), owners.size(),
                   llvm::join(known, ", "));
    }
    if (owners.size() != 1)
      return;
    for (unsigned copy : copies)
      join(copy, rootOf(owners.front()), tie.name.origin);
  }

  unsigned rootOf(unsigned index) const {
    while (owner[index] >= 0)
      index = owner[index];
    return index;
  }
  const Origin &originOf(unsigned index) const { return said[index]; }

private:
  void join(unsigned copy, unsigned root, const Origin &origin) {
    if (rootOf(copy) == root)
      return; // itself, or one with it already, also in the file
    if (owner[copy] >= 0)
      return errors.error(origin, PlanMessage::tieTwice, names.parameters[copy].name,
                          names.parameters[rootOf(copy)].name, names.parameters[root].name);
    owner[copy] = root;
    said[copy] = origin;
  }

  const NameTable &names;
  PlanErrors &errors;
  std::vector<int64_t> owner;
  std::vector<Origin> said;
};

/// Whether the copy is the transpose of its owner; nothing, after an error, if the two cannot be tied.
std::optional<bool> isTransposed(const Parameter &copy, const Parameter &owner, const Origin &origin,
                                 PlanErrors &errors) {
  // Files with marks do not mark a matrix that the exporter computed from a parameter.
  bool known = copy.trainable || copy.renamed;
  if (!known || !owner.trainable) {
    const Parameter &none = known ? owner : copy;
    errors.error(origin, PlanMessage::tieNotTrainable, none.name, spellType(none));
    return std::nullopt;
  }
  Lies of = liesOf(copy), as = liesOf(owner);
  bool unknown = of == Lies::Unknown || as == Lies::Unknown;
  bool turned = unknown ? copy.shape != owner.shape : of != as;
  bool fits = turned ? copy.shape.size() == 2 && llvm::equal(copy.shape, llvm::reverse(owner.shape))
                     : copy.shape == owner.shape;
  if (!fits || copy.type != owner.type) {
    errors.error(origin, PlanMessage::tieShapes, copy.name, owner.name, spellType(copy), spellType(owner));
    return std::nullopt;
  }
  if (unknown && copy.shape[0] == copy.shape[1]) {
    errors.error(origin, PlanMessage::tieSquare, copy.name, owner.name, of == Lies::Unknown ? copy.name : owner.name);
    return std::nullopt;
  }
  return turned;
}

/// An error if the plan or a module freezes only one of the two.
void checkTrained(const Parameter &copy, bool trainsCopy, const Parameter &owner, bool trainsOwner,
                  const Origin &origin, PlanErrors &errors) {
  if (copy.trainable && trainsCopy != trainsOwner)
    errors.error(origin, PlanMessage::tieHalfTrained, copy.name, owner.name, trainsCopy ? copy.name : owner.name,
                 trainsCopy ? owner.name : copy.name);
}

/// Gives the owner the names of the copy, except the exporter's name of a matrix that it computed.
void takeNames(Parameter &owner, const Parameter &copy, bool transposed) {
  std::vector<std::string> own = copy.aliases;
  if (!copy.renamed)
    own.insert(own.begin(), copy.name);
  llvm::append_range(transposed ? owner.transposed : owner.aliases, own);
  llvm::append_range(transposed ? owner.aliases : owner.transposed, copy.transposed);
}

} // namespace

std::vector<ParameterTie> tieParameters(const Plan &plan, NameTable &names, PlanErrors &errors) {
  std::vector<ParameterTie> ties;
  if (!plan.train || plan.train->tie.empty())
    return ties;
  Ties found(names, errors);
  for (const PlanTie &tie : plan.train->tie)
    found.add(tie);
  std::vector<bool> trained = resolveTrained(plan, names, errors);
  std::vector<Parameter> kept = names.parameters;
  for (unsigned index = 0; index < kept.size(); ++index) {
    unsigned root = found.rootOf(index);
    if (root == index)
      continue;
    const Parameter &copy = names.parameters[index], &owner = names.parameters[root];
    std::optional<bool> transposed = isTransposed(copy, owner, found.originOf(index), errors);
    if (!transposed)
      continue;
    checkTrained(copy, trained[index], owner, trained[root], found.originOf(index), errors);
    takeNames(kept[root], copy, *transposed);
    ties.push_back({copy.name, owner.name, *transposed, found.originOf(index)});
  }
  names.parameters.clear();
  for (Parameter &parameter : kept)
    if (llvm::none_of(ties, [&](const ParameterTie &tie) { return tie.name == parameter.name; }))
      names.parameters.push_back(std::move(parameter));
  return ties;
}

} // namespace par
