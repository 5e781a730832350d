// Ops of the dialect with fitting operands, on which the facts about ops are checked. They come from the cases of the
// tests of gradients, decompositions, kernels and shardings, so a new op with a case there is checked here.
#pragma once

#include "../../Phases/Train/OneOp.h"
#include "../../Phases/Train/OtherCases.h"

#include "par/Dialect/Interfaces/Interpretable.h"
#include "par/Dialect/Interfaces/ShardingRule.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/DJB.h"

#include <cmath>
#include <optional>

namespace par::test {

/// One op with operands and its results.
struct Instance {
  mlir::Operation *op;
  llvm::SmallVector<Tensor> operands, results;
  std::string from; ///< for messages: seed, round and text

  mlir::StringRef name() const { return op->getName().getStringRef(); }
};

/// A block of no region. Its ops let go of its arguments before these go.
struct LooseBlock : mlir::Block {
  ~LooseBlock() { dropAllReferences(); }
  mlir::OpBuilder builder(mlir::MLIRContext *context) {
    mlir::OpBuilder at(context);
    at.setInsertionPointToEnd(this);
    return at;
  }
};

/// The interpreter's results; nothing if it fails.
inline std::optional<llvm::SmallVector<Tensor>> interpret(mlir::Operation *op, llvm::ArrayRef<Tensor> operands) {
  auto results = llvm::cast<InterpretableOpInterface>(op).interpret(operands);
  if (mlir::failed(results))
    return std::nullopt;
  return llvm::SmallVector<Tensor>(results->begin(), results->end());
}

/// Ops and forms of ops that no other case has.
inline std::vector<NamedCase> moreCases() {
  auto marker = [](const char *text, int operands) {
    return [=](Chooser &choose) {
      Shape shape = choose.anyShape();
      return OpCase{llvm::formatv(text, typeOf(shape)), std::vector<Input>(operands, {shape}), shape};
    };
  };
  auto partOfRows = [](Chooser &choose) {
    Shape shape{2 * choose.number(1, 3), 5}, result{shape[0], 2};
    return OpCase{llvm::formatv("%y = par.slice %0 [0, 1] to [{0}, 5] by [1, 2] : {1} to {2}", shape[0], typeOf(shape),
                                typeOf(result)),
                  {{shape}},
                  result};
  };
  auto ofRows = [](Chooser &choose) {
    Shape shape{choose.number(1, 4), 3}, rows{shape[0]};
    return OpCase{llvm::formatv("%y = par.gradient %0 rows %1 of @w : {0}, {1}", typeOf(shape), typeOf(rows, "i64")),
                  {{shape}, {rows, -1, 5, "i64"}},
                  shape};
  };
  auto collected = [](Chooser &choose) {
    Shape shape{choose.number(1, 4), 3};
    return OpCase{llvm::formatv("%y = par.collect %0 dims 1 : {0}", typeOf(shape)), {{shape}}, shape};
  };
  return {{"slice", partOfRows},
          {"cotangent", marker("%y = par.cotangent %0, %1 : {0}", 2)},
          {"gradient", marker("%y = par.gradient %0 of @w : {0}", 1)},
          {"gradient", ofRows},
          {"collect", collected}};
}

inline std::vector<NamedCase> factCases() {
  std::vector<NamedCase> all = differentiableCases();
  for (const auto &more : {compositeCases(), otherCases(), retypedCases(), moreCases()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// All ops of all cases, in some rounds of the Chooser.
class Instances {
public:
  static constexpr unsigned seed = 53;

  explicit Instances(std::vector<NamedCase> cases = factCases(), unsigned rounds = 6) {
    llvm::StringMap<unsigned> numbers; // by the cases' names: a new one changes no other one's draws
    for (const NamedCase &named : cases) {
      unsigned number = seed + llvm::djbHash(named.first) + numbers[named.first]++;
      for (unsigned round = 0; round < rounds; ++round)
        add(named.second, number, round);
    }
    llvm::outs() << "seeds from " << seed << ": " << all.size() << " ops\n";
  }

  Session session;
  std::vector<Instance> all;

  /// Names of the ops of the dialect that have a rule and so are tensor ops.
  std::vector<std::string> tensorOps() {
    std::vector<std::string> names;
    for (mlir::RegisteredOperationName name : session.context.getRegisteredOperationsByDialect("par"))
      if (name.hasInterface<ShardingRuleOpInterface>())
        names.push_back(name.getStringRef().str());
    return names;
  }

private:
  void add(const MakeCase &make, unsigned number, unsigned round) {
    Chooser choose(number, round);
    OpCase made = make(choose);
    std::string arguments, type = typeOf(made.result, made.element);
    std::vector<Tensor> drawn;
    for (auto [i, input] : llvm::enumerate(made.inputs)) {
      std::string of = typeOf(input.shape, input.element);
      arguments += llvm::formatv("{0}%a{1}: {2}", i ? ", " : "", i, of);
      drawn.push_back(drawTensor(session.parseType(of), input, choose, i));
    }
    auto module = session.parse(
        llvm::formatv("par.step @op({0}) -> {1} {{\n{2}\npar.return %y : {1}\n}", arguments, type, renamed(made.text))
            .str());
    ASSERT_TRUE(module);
    std::string from = llvm::formatv("seed {0}, round {1}: {2}", number, round, made.text).str();
    llvm::DenseMap<mlir::Value, Tensor> values;
    mlir::Block &block = module->lookupSymbol<StepOp>("op").getBlock();
    for (auto [argument, tensor] : llvm::zip_equal(block.getArguments(), drawn))
      values[argument] = tensor;
    for (mlir::Operation &op : block.without_terminator()) {
      Instance instance{&op, {}, {}, from};
      for (mlir::Value operand : op.getOperands())
        instance.operands.push_back(values.at(operand));
      auto results = interpret(&op, instance.operands);
      ASSERT_TRUE(results) << from;
      instance.results = *results;
      for (auto [result, tensor] : llvm::zip_equal(op.getResults(), instance.results))
        values[result] = tensor;
      all.push_back(instance);
    }
    modules.push_back(std::move(module));
  }

  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
};

/// The place where two tensors differ by more than `bound` of the largest element; empty: none. NaN equals NaN.
/// Integers are compared in the width of their type.
inline std::string findDifference(const Tensor &actual, const Tensor &expected, double bound = 1e-9) {
  if (actual.getType() != expected.getType())
    return "a result has another type than the op's";
  if (!actual.isFloat()) {
    unsigned width = actual.getType().getElementTypeBitWidth();
    auto held = [&](int64_t value) { return width >= 64 ? value : value & ((int64_t(1) << width) - 1); };
    for (auto [x, y] : llvm::zip_equal(actual.ints(), expected.ints()))
      if (held(x) != held(y))
        return llvm::formatv("{0} instead of {1}", x, y);
    return "";
  }
  double largest = 1e-3;
  for (double value : expected.floats())
    if (std::isfinite(value))
      largest = std::max(largest, std::abs(value));
  for (auto [x, y] : llvm::zip_equal(actual.floats(), expected.floats())) {
    bool same = x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= bound * largest;
    if (!same)
      return llvm::formatv("{0} instead of {1}", x, y);
  }
  return "";
}

/// Failures by op, each named once, and the number of checks.
class Findings {
public:
  /// `fault` is empty where all is well; nothing where there was nothing to check.
  void note(const Instance &instance, std::optional<std::string> fault) {
    if (!fault)
      return;
    checked.insert(instance.name());
    if (!fault->empty() && faulty.insert(instance.name()).second)
      texts.push_back(instance.name().str() + ": " + *fault + "\n" + instance.from);
  }
  /// Fails for each op that is at fault, and for each of `names` that was not checked.
  void expectNone(const std::vector<std::string> &names = {}) {
    for (const std::string &text : texts)
      ADD_FAILURE() << text;
    for (const std::string &name : names)
      EXPECT_TRUE(checked.contains(name))
          << name << " has no case in test/Phases/Train/OpCases.h or OtherCases.h that shows it";
    llvm::outs() << checked.size() << " ops checked\n";
  }

  llvm::StringSet<> checked, faulty;
  std::vector<std::string> texts;
};

/// One set of ops for all tests.
inline Instances &instances() {
  static Instances all;
  return all;
}

inline ShardingRule ruleOf(const Instance &instance) {
  return llvm::cast<ShardingRuleOpInterface>(instance.op).getShardingRule();
}

} // namespace par::test
