#include "DimClasses.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace par {

/// Numbers the dims of all values. All reads of a variable are one value.
void DimClasses::number(StepOp step) {
  llvm::StringMap<unsigned> variables;
  auto add = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return;
    auto read = value.getDefiningOp<ReadOp>();
    unsigned begin = read ? variables.try_emplace(read.getVariable(), numbers).first->second : numbers;
    first[value] = begin;
    if (begin == numbers)
      numbers += type.getRank();
  };
  for (BlockArgument argument : step.getBlock().getArguments())
    add(argument);
  for (Operation &op : step.getBlock())
    for (Value result : op.getResults())
      add(result);
}

/// Constants and broadcast scalars are made in any sharding at each use, and join nothing.
bool DimClasses::isUniform(Value value) const {
  auto interface = value.getDefiningOp() ? dyn_cast<ShardingRuleOpInterface>(value.getDefiningOp()) : nullptr;
  return interface && llvm::all_of(interface.getShardingRule().operands, [](ArrayRef<DimFactors> dims) {
           return llvm::all_of(dims, [](const DimFactors &factors) { return factors.empty(); });
         });
}

void DimClasses::visit(Operation &op, int64_t degree) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface)
    return;
  OpDims visit{&op, interface.getShardingRule(), {}, {}};
  const ShardingRule &rule = visit.rule;
  SmallVector<std::optional<unsigned>> joined(rule.factors.size());
  auto side = [&](ValueRange values, ArrayRef<SmallVector<DimFactors>> sides) {
    for (auto [value, dims] : llvm::zip(values, sides)) {
      if (!knows(value) || isUniform(value))
        continue;
      for (auto [dim, factors] : llvm::enumerate(dims)) {
        if (factors.empty())
          continue;
        const Factor &major = rule.factors[factors.front()];
        unsigned number = numberOf(value, dim);
        if (factors.size() > 1 && major.size % degree != 0) {
          visit.whole.push_back({value, number});
          continue;
        }
        if (major.kind == FactorKind::NeedReplication)
          visit.whole.push_back({value, number});
        std::optional<unsigned> &known = joined[factors.front()];
        if (known)
          classes.join(*known, number);
        else
          known = number;
      }
    }
  };
  side(op.getOperands(), rule.operands);
  side(op.getResults(), rule.results);
  // A part that is minor in one dim and major in another is whole where it is minor.
  auto minors = [&](ValueRange values, ArrayRef<SmallVector<DimFactors>> sides) {
    for (auto [value, dims] : llvm::zip(values, sides))
      for (const DimFactors &factors : dims)
        for (unsigned factor : llvm::drop_begin(factors, factors.empty() ? 0 : 1))
          if (joined[factor])
            visit.whole.push_back({value, *joined[factor]});
  };
  minors(op.getOperands(), rule.operands);
  minors(op.getResults(), rule.results);
  for (auto [factor, number] : llvm::enumerate(joined))
    if (number)
      visit.parts.push_back({static_cast<unsigned>(factor), *number});
  visits.push_back(std::move(visit));
}

DimClasses::DimClasses(StepOp step, int64_t degree) {
  number(step);
  classes.grow(numbers);
  for (Operation &op : step.getBlock())
    visit(op, degree);
  classes.compress();
  for (const OpDims &visit : visits) {
    llvm::SmallDenseSet<unsigned> seen;
    for (const OpDims::Part &part : visit.parts)
      if (!seen.insert(classOf(part.dim)).second)
        crossed.insert(classOf(part.dim));
  }
}

} // namespace par
