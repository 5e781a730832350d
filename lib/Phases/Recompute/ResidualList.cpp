#include "ResidualList.h"
#include "RecomputeTime.h"

#include "par/Base/Provenance.h"
#include "par/Base/TypeSize.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace par {

/// "h.*.mlp" of `h.3.mlp`; empty if the place is not known.
static std::string placeOf(Value value) {
  std::optional<Provenance> from = getProvenance(value.getLoc());
  if (!from)
    return "";
  SmallVector<StringRef> segments;
  StringRef(from->module).split(segments, '.');
  for (StringRef &segment : segments)
    if (!segment.empty() && llvm::all_of(segment, llvm::isDigit))
      segment = "*";
  return llvm::join(segments, ".");
}

static std::string typeOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  std::string text;
  llvm::raw_string_ostream os(text);
  os << type.getElementType() << "[";
  llvm::interleave(type.getShape(), os, "x");
  os << "]";
  return text;
}

ResidualList::ResidualList(ArrayRef<StagePair> stages, const CostTable &costs) {
  for (const StagePair &stage : stages)
    for (Value value : stage.pair.getResiduals())
      if (Operation *op = value.getDefiningOp())
        residuals.push_back(
            {value,
             {placeOf(value), typeOf(value), 1, stage.inFlight * getByteSize(value), timeInFragment(op, costs)}});
}

std::vector<RecomputedValues> ResidualList::findRecomputed(ArrayRef<StagePair> stages) const {
  llvm::DenseSet<Value> saved;
  for (const StagePair &stage : stages)
    for (Value value : stage.pair.getResiduals())
      saved.insert(value);
  llvm::MapVector<std::pair<StringRef, StringRef>, RecomputedValues> alike;
  for (const Residual &residual : residuals) {
    if (saved.contains(residual.value))
      continue;
    const RecomputedValues &one = residual.described;
    auto [known, fresh] = alike.insert({{one.place, one.type}, one});
    if (fresh)
      continue;
    ++known->second.count;
    known->second.bytes += one.bytes;
    known->second.ns += one.ns;
  }
  std::vector<RecomputedValues> found;
  for (auto &[key, values] : alike)
    found.push_back(std::move(values));
  llvm::stable_sort(found, [](const RecomputedValues &a, const RecomputedValues &b) { return a.bytes > b.bytes; });
  return found;
}

} // namespace par
