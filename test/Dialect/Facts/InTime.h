// Whether an op on slices of the batch, one after another on one device, makes the whole.
#pragma once

#include "Factors.h"

namespace par::test {

/// Elements [start, start + type's size) along one dim.
inline Tensor slice(const Tensor &whole, int64_t dim, int64_t start, mlir::RankedTensorType type) {
  llvm::SmallVector<int64_t> strides = interp::getStrides(whole.getShape());
  return interp::pick(whole, type, strides, start * strides[dim]);
}

/// The dim that begins with the factor, or -1; nothing where it stands in the middle of one.
inline std::optional<int64_t> dimThatBegins(llvm::ArrayRef<DimFactors> dims, unsigned factor) {
  for (auto [dim, factors] : llvm::enumerate(dims))
    if (const auto *at = llvm::find(factors, factor); at != factors.end())
      return at == factors.begin() ? std::optional<int64_t>(dim) : std::nullopt;
  return -1;
}

/// One factor cut in time: parts of operands go through localize without shardings; results with the factor are joined,
/// sums are added.
class TimeCut {
public:
  TimeCut(const Instance &instance, const ShardingRule &rule, unsigned factor, int64_t parts)
      : instance(instance), rule(rule), factor(factor), parts(parts) {}

  std::optional<std::string> check() {
    const Factor &cut = rule.factors[factor];
    bool sums = cut.kind == FactorKind::Sum;
    if ((!sums && cut.kind != FactorKind::Parallel) || cut.size < 2 || cut.size % parts || !findDims())
      return std::nullopt;
    llvm::SmallVector<Tensor> sum;
    for (int64_t part = 0; part < parts; ++part) {
      auto results = run(part);
      if (!results)
        return claim() + "the op on a slice fails";
      for (auto [number, result] : llvm::enumerate(*results)) {
        Tensor whole = instance.results[number];
        if (resultDims[number] >= 0)
          whole = sliceOf(whole, resultDims[number], part);
        else if (sums && part + 1 < parts)
          whole = {};
        if (sums && resultDims[number] < 0) {
          if (part == 0)
            sum.resize(results->size());
          if (part)
            interp::combineInto(ReduceKind::sum, sum[number], result);
          else
            sum[number] = result;
        }
        if (!whole)
          continue;
        const Tensor &made = sums && resultDims[number] < 0 ? sum[number] : result;
        if (std::string difference = findDifference(made, whole); !difference.empty())
          return claim() + difference;
      }
    }
    return "";
  }

private:
  std::string claim() const { return llvm::formatv("cut in time along factor {0} of {1}: ", factor, rule.str()); }

  bool findDims() {
    for (auto [all, dims] : {std::pair(&rule.operands, &operandDims), {&rule.results, &resultDims}})
      for (llvm::ArrayRef<DimFactors> tensor : *all) {
        std::optional<int64_t> dim = dimThatBegins(tensor, factor);
        if (!dim)
          return false;
        dims->push_back(*dim);
      }
    return true;
  }

  mlir::RankedTensorType partType(mlir::RankedTensorType whole, int64_t dim) const {
    llvm::SmallVector<int64_t> shape(whole.getShape());
    if (dim >= 0)
      shape[dim] /= parts;
    return whole.clone(shape);
  }
  Tensor sliceOf(const Tensor &whole, int64_t dim, int64_t part) const {
    mlir::RankedTensorType type = partType(whole.getType(), dim);
    return dim < 0 ? whole : slice(whole, dim, part * type.getDimSize(dim), type);
  }

  std::optional<llvm::SmallVector<Tensor>> run(int64_t part) {
    LooseBlock block;
    llvm::SmallVector<mlir::Value> operands;
    llvm::SmallVector<mlir::RankedTensorType> types;
    std::vector<interp::RankValues> values(1);
    for (auto [dim, whole] : llvm::zip_equal(operandDims, instance.operands)) {
      Tensor mine = sliceOf(whole, dim, part);
      operands.push_back(block.addArgument(mine.getType(), instance.op->getLoc()));
      values[0][operands.back()] = mine;
    }
    for (auto [dim, whole] : llvm::zip_equal(resultDims, instance.results))
      types.push_back(partType(whole.getType(), dim));
    mlir::OpBuilder builder = block.builder(instance.op->getContext());
    auto built =
        llvm::cast<ShardingRuleOpInterface>(instance.op).localize(builder, {MeshAttr(), operands, types, {}, {}});
    if (mlir::failed(built))
      return std::nullopt;
    for (mlir::Operation &op : block)
      if (mlir::failed(interp::runOp(op, values, MeshAttr())))
        return std::nullopt;
    llvm::SmallVector<Tensor> results;
    for (mlir::Value value : *built)
      results.push_back(values[0].at(value));
    return results;
  }

  const Instance &instance;
  const ShardingRule &rule;
  unsigned factor;
  int64_t parts;
  llvm::SmallVector<int64_t> operandDims, resultDims; ///< -1: without the factor
};

inline std::optional<std::string> checkInTime(const Instance &instance, const ShardingRule &rule) {
  std::optional<std::string> found;
  for (auto [index, factor] : llvm::enumerate(rule.factors))
    for (int64_t parts : partsOf(factor)) {
      std::optional<std::string> fault = TimeCut(instance, rule, index, parts).check();
      if (fault && !fault->empty())
        return fault;
      if (fault)
        found = fault;
    }
  return found;
}

} // namespace par::test
