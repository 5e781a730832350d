// Parses the plan's rules for one parameter's gradient or states. An option has the form
// `NAME=DIM:axis+axis;DIM:axis;closed`, with the dims of the stored shape; `partial:axis+axis` are axes over which a
// gradient stays unreduced, `priority:N` is for states.
#include "Propagation.h"

using namespace mlir;

namespace par {

/// The variable's own dim for a rule's dim: if Import unfolded it, the first own dim counts parts, which are sharded.
static int64_t ownDim(VariableOp variable, int64_t stored) {
  if (!variable.getStored())
    return stored;
  ArrayRef<int64_t> own = variable.getTensorType().getShape();
  ArrayRef<int64_t> folded = cast<RankedTensorType>(*variable.getStored()).getShape();
  int64_t first = 0, next = 0;
  for (int64_t size : folded.take_front(stored + 1)) {
    first = next;
    for (int64_t product = 1; next < int64_t(own.size()) && (product < size || next == first); ++next)
      product *= own[next];
  }
  return next - first > 1 ? first + 1 : first;
}

llvm::StringMap<StringRef> rulesByName(ArrayRef<std::string> rules) {
  llvm::StringMap<StringRef> named;
  for (StringRef rule : rules) {
    auto [name, text] = rule.rsplit('=');
    named.try_emplace(name, text);
  }
  return named;
}

ShardingAttr Propagation::ruleOf(const llvm::StringMap<StringRef> &rules, VariableOp parameter) {
  auto found = rules.find(parameter.getSymName());
  if (found == rules.end())
    return {};
  SmallVector<Axes> dims(parameter.getTensorType().getRank());
  Axes partial;
  bool closed = false;
  SmallVector<StringRef> parts;
  found->second.split(parts, ';', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    auto [number, axes] = part.split(':');
    int64_t dim = 0;
    closed |= part == "closed";
    bool ofDim = !number.getAsInteger(10, dim);
    if (!ofDim && number != "partial")
      continue;
    Axes &said = ofDim ? dims[ownDim(parameter, dim)] : partial;
    SmallVector<StringRef> list;
    axes.split(list, '+', -1, /*KeepEmpty=*/false);
    for (StringRef axis : list)
      said.push_back(StringAttr::get(step.getContext(), axis));
  }
  SmallVector<DimShardingAttr> entries;
  for (const Axes &axes : dims)
    entries.push_back(DimShardingAttr::get(step.getContext(), axes, !closed));
  return ShardingAttr::get(step.getContext(), entries, partial);
}

int64_t priorityOfRule(StringRef text) {
  int64_t priority = 1;
  StringRef number = text.split("priority:").second.split(';').first;
  return number.getAsInteger(10, priority) ? 1 : priority;
}

SmallVector<Axes> layRule(ArrayRef<Axes> dims, ShardingAttr rule) {
  SmallVector<Axes> laid;
  for (auto [dim, said] : llvm::zip(dims, rule.getDims())) {
    Axes axes(said.getAxes());
    if (axes.empty() && said.getOpen())
      llvm::copy_if(dim, std::back_inserter(axes), [&](StringAttr axis) { return !rule.uses(axis); });
    laid.push_back(axes);
  }
  return laid;
}

} // namespace par
