// Whether sharding an op along a factor of its rule gives the op's results.
#pragma once

#include "Instances.h"

#include "par/Base/Indexing.h"
#include "par/Dialect/Combine.h"
#include "par/Interpreter/Interpreter.h"
#include "par/Phases/Propagate/FactorAxes.h"

#include "mlir/IR/Diagnostics.h"

namespace par::test {

/// How parts of a result that lacks a cut factor make the whole; nothing for a kind whose ranks all hold it.
inline std::optional<ReduceKind> reductionOf(FactorKind kind) {
  switch (kind) {
  case FactorKind::Sum:
  case FactorKind::Indexed:
    return ReduceKind::sum;
  case FactorKind::Max:
    return ReduceKind::max;
  case FactorKind::Min:
    return ReduceKind::min;
  case FactorKind::And:
    return ReduceKind::bitAnd;
  case FactorKind::Or:
    return ReduceKind::bitOr;
  default:
    return std::nullopt;
  }
}

/// True if the factor may be sharded: replicated ones may not, decomposed ones are decomposed before.
inline bool isCuttable(const Factor &factor) {
  return factor.kind != FactorKind::NeedReplication && factor.kind != FactorKind::Decompose && factor.size > 1;
}

/// One factor cut into parts on a mesh; the factors before it in a dim are cut completely, as they must be.
class FactorCut {
public:
  FactorCut(const Instance &instance, const ShardingRule &rule, unsigned factor, int64_t parts)
      : instance(instance), rule(rule), factor(factor), parts(parts) {}

  /// Empty: holds; nothing: the factor cannot be cut so.
  std::optional<std::string> check() {
    if (!findAxes())
      return std::nullopt;
    mlir::MLIRContext *context = instance.op->getContext();
    std::string errors;
    mlir::ScopedDiagnosticHandler handler(context, [&](mlir::Diagnostic &diagnostic) { errors += diagnostic.str(); });
    if (!localize())
      return claim() + "localize fails: " + errors;
    if (!run())
      return claim() + "the local op fails: " + errors;
    for (unsigned result = 0; result < instance.results.size(); ++result)
      if (std::string fault = checkResult(result, errors); !fault.empty())
        return claim() + fault;
    return "";
  }
  /// The op on shards; after check().
  mlir::Block &local() { return block; }

private:
  using Dims = llvm::SmallVector<DimFactors>;

  std::string claim() const {
    return llvm::formatv("cut along {0} of {1} into {2}: ",
                         rule.factors[factor].name.empty() ? std::string(1, char('a' + factor))
                                                           : rule.factors[factor].name,
                         rule.str(), parts);
  }

  /// Gives axes to the factor and to those before it; false where it cannot be cut.
  bool findAxes() {
    bool compound = false, ofIntegers = false;
    std::set<unsigned> wanted{factor}, majors;
    // Factors before one that is sharded completely are sharded completely, too.
    while (wanted.size() > majors.size()) {
      majors = wanted;
      auto see = [&](const Dims &dims, mlir::Value value) {
        for (const DimFactors &dim : dims)
          for (auto [place, each] : llvm::enumerate(dim))
            if (majors.count(each)) {
              wanted.insert(dim.begin(), dim.begin() + place);
              compound |= dim.size() > 1;
              ofIntegers |= !llvm::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(value.getType()));
            }
      };
      for (auto [dims, operand] : llvm::zip_equal(rule.operands, instance.op->getOperands()))
        see(dims, operand);
      for (auto [dims, result] : llvm::zip_equal(rule.results, instance.op->getResults()))
        see(dims, result);
    }
    majors.erase(factor);
    const Factor &cut = rule.factors[factor];
    // Padding is masked by who reduces and by who addresses: Partition's work.
    if (cut.size % parts && (compound || ofIntegers || cut.kind != FactorKind::Parallel))
      return false;
    if (cut.size < parts || llvm::any_of(majors, [&](unsigned major) { return !isCuttable(rule.factors[major]); }))
      return false;
    axes.resize(rule.factors.size());
    llvm::SmallVector<mlir::StringAttr> names;
    llvm::SmallVector<int64_t> sizes;
    auto give = [&](unsigned to, int64_t size) {
      names.push_back(mlir::StringAttr::get(instance.op->getContext(), "x" + std::to_string(names.size())));
      sizes.push_back(size);
      axes[to].push_back(names.back());
    };
    give(factor, parts);
    for (unsigned major : majors)
      give(major, rule.factors[major].size);
    mesh = MeshAttr::get(instance.op->getContext(), names, sizes);
    return mesh.getRanks() <= 64;
  }

  ShardingAttr shardingOf(const Dims &dims) {
    ShardingAttr sharding = ShardingAttr::getReplicated(instance.op->getContext(), dims.size());
    for (auto [dim, factors] : llvm::enumerate(dims))
      sharding = sharding.withDim(dim, axesOfDim(rule, factors, axes, mesh));
    return sharding;
  }

  /// Builds the local op after arguments for the local operands.
  bool localize() {
    llvm::SmallVector<mlir::Value> operands;
    llvm::SmallVector<mlir::RankedTensorType> types;
    llvm::SmallVector<ShardingAttr> resultShardings;
    for (auto [dims, tensor] : llvm::zip_equal(rule.operands, instance.operands)) {
      operandShardings.push_back(shardingOf(dims));
      operands.push_back(
          block.addArgument(operandShardings.back().getLocalType(tensor.getType(), mesh), instance.op->getLoc()));
    }
    for (auto [dims, tensor] : llvm::zip_equal(rule.results, instance.results)) {
      ShardingAttr sharding = shardingOf(dims);
      types.push_back(sharding.getLocalType(tensor.getType(), mesh));
      llvm::SmallVector<mlir::StringAttr> sums;
      for (auto [index, cut] : llvm::enumerate(axes))
        for (mlir::StringAttr axis : cut)
          if (!sharding.uses(axis) && reductionOf(rule.factors[index].kind) == ReduceKind::sum)
            sums.push_back(axis);
      shardings.push_back(sharding);
      resultShardings.push_back(sharding.withUnreduced(sums));
    }
    mlir::OpBuilder builder = block.builder(instance.op->getContext());
    auto built = llvm::cast<ShardingRuleOpInterface>(instance.op)
                     .localize(builder, {mesh, operands, types, operandShardings, resultShardings});
    if (mlir::failed(built))
      return false;
    results.assign(built->begin(), built->end());
    return true;
  }

  bool run() {
    values.resize(mesh.getRanks());
    for (auto [argument, whole, sharding] : llvm::zip_equal(block.getArguments(), instance.operands, operandShardings))
      for (auto [rank, shard] : llvm::zip_equal(values, interp::distribute(whole, sharding, mesh)))
        rank[argument] = shard;
    return llvm::all_of(block, [&](mlir::Operation &op) { return mlir::succeeded(interp::runOp(op, values, mesh)); });
  }

  /// Combines the parts over axes that a result lacks by the kinds of their factors; the other ranks are replicas.
  std::string checkResult(unsigned number, const std::string &errors) {
    llvm::SmallVector<Tensor> shards;
    for (interp::RankValues &rank : values)
      shards.push_back(rank.at(results[number]));
    mlir::RankedTensorType local = shardings[number].getLocalType(instance.results[number].getType(), mesh);
    for (const Tensor &shard : shards)
      if (shard.getType() != local ||
          int64_t(shard.isFloat() ? shard.floats().size() : shard.ints().size()) != local.getNumElements())
        return "the local op has another type, or other elements, than its shard";
    for (auto [index, cut] : llvm::enumerate(axes))
      if (auto kind = reductionOf(rule.factors[index].kind))
        for (mlir::StringAttr axis : cut)
          if (!shardings[number].uses(axis))
            reduce(shards, axis, *kind);
    auto whole = interp::collect(instance.op, shards, instance.results[number].getType(), shardings[number], mesh);
    return mlir::failed(whole) ? errors : findDifference(*whole, instance.results[number]);
  }

  void reduce(llvm::SmallVector<Tensor> &shards, mlir::StringAttr axis, ReduceKind kind) {
    for (llvm::ArrayRef<int64_t> group : mesh.getGroups(axis)) {
      Tensor all = shards[group.front()];
      for (int64_t rank : group.drop_front())
        interp::combineInto(kind, all, shards[rank]);
      for (int64_t rank : group)
        shards[rank] = all;
    }
  }

  const Instance &instance;
  const ShardingRule &rule;
  unsigned factor;
  int64_t parts;
  llvm::SmallVector<Axes> axes; ///< of each factor
  MeshAttr mesh;
  LooseBlock block;
  llvm::SmallVector<ShardingAttr> operandShardings, shardings;
  llvm::SmallVector<mlir::Value> results;
  std::vector<interp::RankValues> values;
};

/// Into how many parts a factor is cut: two, evenly if it can be and unevenly if not, and one part an element.
inline std::set<int64_t> partsOf(const Factor &factor) { return {2, factor.size}; }

/// Cuts along every factor; nothing where none may be cut.
inline std::optional<std::string> checkFactors(const Instance &instance, const ShardingRule &rule) {
  std::optional<std::string> found;
  for (auto [index, factor] : llvm::enumerate(rule.factors))
    if (isCuttable(factor))
      for (int64_t parts : partsOf(factor)) {
        std::optional<std::string> fault = FactorCut(instance, rule, index, parts).check();
        if (fault && !fault->empty())
          return fault;
        if (fault)
          found = fault;
      }
  return found;
}

/// Every dim of operands and results consists of the rule's factors.
inline std::string checkDims(const Instance &instance, const ShardingRule &rule) {
  auto fits = [&](mlir::Value value, llvm::ArrayRef<DimFactors> dims) {
    auto shape = llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
    if (shape.size() != dims.size())
      return false;
    for (auto [size, dim] : llvm::zip(shape, dims)) {
      int64_t product = 1;
      for (unsigned factor : dim)
        product *= rule.factors[factor].size;
      if (product != size)
        return false;
    }
    return true;
  };
  bool all =
      rule.operands.size() == instance.op->getNumOperands() && rule.results.size() == instance.op->getNumResults();
  for (auto [value, dims] : llvm::zip(instance.op->getOperands(), rule.operands))
    all &= fits(value, dims);
  for (auto [value, dims] : llvm::zip(instance.op->getResults(), rule.results))
    all &= fits(value, dims);
  return all ? "" : "its types do not fit " + rule.str();
}

} // namespace par::test
