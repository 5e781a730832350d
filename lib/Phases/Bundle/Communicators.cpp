#include "Communicators.h"

#include "par/format/Printable.h"
#include "par/format/Sha256.h"

using namespace mlir;

namespace par {

std::string tableName(StringRef name) {
  // A reader takes 256 characters, and a part of a buffer adds its place and size to the buffer's name.
  constexpr size_t longest = 200, kept = 160, digits = 16;
  if (name.size() <= longest)
    return name.str();
  std::string sum = format::sha256(std::string_view(name)).substr(0, digits);
  return name.take_front(format::characterAt(name, kept)).str() + "~" + sum;
}

Communicators::Communicators(ModuleOp module) {
  for (ArrayRef<StageOp> alike : getStagesByRanks(module))
    stages.push_back(alike.front());
}

bool Communicators::has(StringRef name) const {
  return llvm::any_of(table, [&](const format::Communicator &known) { return known.name == name; });
}

StageOp Communicators::stageOf(ArrayRef<int64_t> ranks) {
  for (StageOp stage : stages)
    if (stage.getRanks() == ranks)
      return stage;
  return {};
}

/// How many of the axes from `first` on are X.0, X.1, ...
static size_t countFactors(ArrayRef<StringAttr> axes, size_t first, StringRef whole) {
  size_t count = 0;
  while (first + count < axes.size() && axes[first + count].getValue() == (whole + "." + Twine(count)).str())
    ++count;
  return count;
}

/// The axes as users know them: "tp.0", "tp.1" are the factors of "tp", which the name says where it is all
/// of them on every stage.
std::string Communicators::nameOf(ArrayRef<StringAttr> axes) {
  std::string name;
  for (size_t i = 0; i < axes.size();) {
    StringRef whole = axes[i].getValue().rsplit('.').first;
    size_t here = countFactors(axes, i, whole);
    bool merged = here > 1 && llvm::none_of(stages, [&](StageOp stage) {
                    return stage.getMesh().getSize(StringAttr::get(stage.getContext(), whole + "." + Twine(here))) > 0;
                  });
    name += (name.empty() ? "" : "+") + (merged ? whole : axes[i].getValue()).str();
    i += merged ? here : 1;
  }
  return name;
}

std::string Communicators::overAxes(ArrayRef<StringAttr> axes, StringRef queue) {
  std::string name = nameOf(axes);
  if (!queue.empty())
    name += "." + queue.str();
  name = tableName(name);
  if (has(name))
    return name;
  Groups groups;
  for (StageOp stage : stages) {
    if (!llvm::all_of(axes, [&](StringAttr axis) { return stage.getMesh().getSize(axis) > 0; }))
      continue;
    for (const SmallVector<int64_t> &members : stage.getMesh().getGroups(axes)) {
      std::vector<uint32_t> ranks;
      for (int64_t member : members)
        ranks.push_back(stage.getRanks()[member]);
      groups.push_back(std::move(ranks));
    }
  }
  table.push_back({name, std::move(groups)});
  return name;
}

FailureOr<std::string> Communicators::between(Operation *op, ArrayRef<int64_t> own, ArrayRef<int64_t> peers,
                                              bool sends) {
  StageOp here = stageOf(own), there = stageOf(peers);
  if (!here || !there || own.size() != peers.size()) {
    op->emitError() << "talks to ranks that are not those of a stage as large as its own: not supported yet";
    return failure();
  }
  StageOp from = sends ? here : there, to = sends ? there : here;
  Groups groups;
  for (auto [sender, receiver] : llvm::zip(from.getRanks(), to.getRanks()))
    groups.push_back({static_cast<uint32_t>(sender), static_cast<uint32_t>(receiver)});
  return named((from.getSymName() + ">" + to.getSymName()).str(), std::move(groups));
}

/// World ranks as an op lists them.
static std::vector<std::vector<uint32_t>> listedBy(ArrayAttr groups) {
  std::vector<std::vector<uint32_t>> ranks;
  for (auto group : groups.getAsRange<DenseI64ArrayAttr>())
    ranks.push_back({group.asArrayRef().begin(), group.asArrayRef().end()});
  return ranks;
}

std::string Communicators::overGroups(ArrayAttr groups) { return named("stages", listedBy(groups)); }

std::string Communicators::overParts(ArrayAttr groups) {
  auto stageWith = [&](int64_t rank) {
    return StageOp(*llvm::find_if(stages, [&](StageOp stage) { return llvm::is_contained(stage.getRanks(), rank); }))
        .getSymName();
  };
  ArrayRef<int64_t> first = cast<DenseI64ArrayAttr>(groups[0]).asArrayRef();
  std::string stem = (stageWith(first.front()) + ">" + stageWith(first.back())).str();
  return named(stem, listedBy(groups));
}

std::string Communicators::named(const std::string &stem, Groups groups) {
  std::string name = stem;
  for (unsigned index = 1;; name = stem + "." + std::to_string(index++)) {
    auto known = llvm::find_if(table, [&](const format::Communicator &other) { return other.name == name; });
    if (known == table.end())
      break;
    if (known->groups.lists() == groups)
      return name;
  }
  table.push_back({name, std::move(groups)});
  return name;
}

uint64_t Communicators::tagOf(Scope scope, int64_t tag, unsigned operand) {
  auto [found, fresh] = tags.try_emplace({scope, tag, operand}, nextTag);
  nextTag += fresh;
  return found->second;
}

} // namespace par
