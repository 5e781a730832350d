// Whether an op is linear in the operands that its rule says may stay sums.
#pragma once

#include "Instances.h"

namespace par::test {

/// Two summands. A boolean that lies over ranks in parts is held by one of them.
inline std::pair<Tensor, Tensor> splitSum(const Tensor &whole, Chooser &choose) {
  Tensor first(whole.getType()), rest(whole.getType());
  bool isBool = whole.getType().getElementType().isInteger(1);
  for (int64_t i = 0; i < whole.getSize(); ++i)
    if (whole.isFloat()) {
      first.mutableFloats()[i] = 4 * choose.real() - 2;
      rest.mutableFloats()[i] = whole.floats()[i] - first.floats()[i];
    } else {
      first.mutableInts()[i] = isBool ? (choose.number(0, 1) ? whole.ints()[i] : 0) : choose.number(-7, 7);
      rest.mutableInts()[i] = whole.ints()[i] - first.ints()[i];
    }
  return {first, rest};
}

inline Tensor addTensors(Tensor to, const Tensor &from) {
  interp::combineInto(ReduceKind::sum, to, from);
  return to;
}

/// f(a) + f(b) = f(a + b), where a + b are the operands of one set and the others stay; nothing where no set is
/// claimed.
inline std::optional<std::string> checkLinear(const Instance &instance,
                                              llvm::ArrayRef<llvm::SmallVector<unsigned>> linear, Chooser &choose) {
  if (linear.empty())
    return std::nullopt;
  for (llvm::ArrayRef<unsigned> set : linear) {
    llvm::SmallVector<Tensor> first = instance.operands, rest = instance.operands;
    for (unsigned operand : set)
      std::tie(first[operand], rest[operand]) = splitSum(instance.operands[operand], choose);
    auto ofFirst = interpret(instance.op, first), ofRest = interpret(instance.op, rest);
    std::string claim = "is not linear in operands " + listOf(std::vector<int64_t>(set.begin(), set.end()));
    if (!ofFirst || !ofRest)
      return claim + ": it has no value for some";
    for (auto [x, y, whole] : llvm::zip_equal(*ofFirst, *ofRest, instance.results))
      if (std::string difference = findDifference(addTensors(x, y), whole); !difference.empty())
        return claim + ": parts give " + difference;
  }
  return "";
}

/// Each single float operand, and all of them together: the possible claims of a rule.
inline llvm::SmallVector<llvm::SmallVector<unsigned>> claimable(const Instance &instance) {
  llvm::SmallVector<llvm::SmallVector<unsigned>> sets;
  llvm::SmallVector<unsigned> all;
  for (auto [index, operand] : llvm::enumerate(instance.operands))
    if (operand.isFloat()) {
      sets.push_back({unsigned(index)});
      all.push_back(index);
    }
  if (all.size() > 1)
    sets.push_back(all);
  return sets;
}

} // namespace par::test
