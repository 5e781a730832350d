// Steps that train through one op with the batch along one of its dims, sliced into microbatches and sharded over
// ranks: gradients are sums in the loop, declared unreduced and reduced after it. They equal one device.
#include "ShardedCase.h"

#include "par/Dialect/Interfaces/ShardingRule.h"
#include "par/Phases/Partition/Passes.h"
#include "par/Phases/Propagate/Passes.h"
#include "par/Phases/Split/Passes.h"

using namespace mlir;
using namespace par;
using namespace par::test;

namespace {

constexpr unsigned batchedSeed = 41;

/// The dim of a tensor that consists only of this factor, or -1.
int64_t dimOf(ArrayRef<DimFactors> dims, unsigned factor) {
  for (auto [dim, factors] : llvm::enumerate(dims))
    if (factors.size() == 1 && factors.front() == factor)
      return dim;
  return -1;
}

/// The step: operands that have the batch are data times parameters, the others parameters.
class BatchedOp {
public:
  BatchedOp(Session &session, const MakeCase &make, ArrayRef<int64_t> sizes, unsigned round)
      : session(session),
        choose(batchedSeed + 64 * sizes.size() + 7 * sizes.front() + round, round % 4, 4 + 2 * sizes.front()),
        made(make(choose)), mesh(makeMesh(&session.context, sizes)) {
    findBatch();
    if (batch < 0)
      return;
    build();
    microbatches = batch % 2 || choose.number(0, 2) == 0 ? 1 : 2;
  }

  /// The op has a factor that can be the batch.
  explicit operator bool() const { return batch > 0; }

  std::string findFault() {
    return test::findFault([&](const ::testing::TestPartResultArray &faults) {
      ASSERT_TRUE(module);
      constrainStep(*module, mesh, choose);
      differentiateStep(session, *module);
      Outcome whole = evaluate(*module, "train", parameters, inputs);
      llvm::raw_string_ostream(text) << microbatches << " microbatches\n" << *module;
      session.run(*module, [&](OpPassManager &manager) {
        buildSplitPipeline(manager, {microbatches});
        PropagateOptions options;
        options.batchAxes = {"dp"};
        buildPropagatePipeline(manager, options);
      });
      if (faults.size())
        return;
      module->walk([&](LoopOp loop) {
        for (Value result : loop.getResults())
          isUnreduced |= !cast<DistType>(result.getType()).getSharding().getUnreduced().empty();
      });
      llvm::raw_string_ostream(text) << *module;
      session.run(*module, [](OpPassManager &manager) { buildPartitionPipeline(manager); });
      Outcome parts = evaluate(*module, "train", parameters, inputs);
      expectSame(parts.outputs, whole.outputs);
      expectSame(parts.written, whole.written);
    });
  }

  bool isUnreduced = false; ///< a gradient is a sum of parts that is reduced after the loop
  std::string text;

private:
  /// Parses only the op, for its rule.
  void findBatch() {
    std::string arguments;
    for (auto [i, input] : llvm::enumerate(made.inputs))
      arguments += llvm::formatv("{0}%a{1}: {2}", i ? ", " : "", i, typeOf(input.shape, input.element));
    auto parsed = session.parse(llvm::formatv("par.step @op({0}) -> ({1}) {{\n{2}\npar.return %y : {1}\n}", arguments,
                                              typeOf(made.result), renamed(made.text))
                                    .str());
    Block &block = parsed->lookupSymbol<StepOp>("op").getBlock();
    auto op = dyn_cast<ShardingRuleOpInterface>(block.front());
    if (!op || op->getNextNode() != block.getTerminator() || op->getNumOperands() != made.inputs.size())
      return;
    ShardingRule rule = op.getShardingRule();
    SmallVector<unsigned> able;
    for (auto [index, factor] : llvm::enumerate(rule.factors)) {
      bool cuts = factor.size > 1 && (factor.kind == FactorKind::Parallel || factor.kind == FactorKind::Sum);
      auto stands = [&](ArrayRef<DimFactors> dims) {
        return dimOf(dims, index) >= 0 ||
               llvm::none_of(dims, [&](const DimFactors &dim) { return llvm::is_contained(dim, index); });
      };
      bool ofData = false;
      for (auto [dims, input] : llvm::zip(rule.operands, made.inputs))
        ofData |= input.element == "f64" && dimOf(dims, index) >= 0;
      if (cuts && ofData && llvm::all_of(rule.operands, stands) && llvm::all_of(rule.results, stands))
        able.push_back(index);
    }
    if (able.empty())
      return;
    unsigned factor = able[choose.number(0, able.size() - 1)];
    batch = rule.factors[factor].size;
    for (const SmallVector<DimFactors> &dims : rule.operands)
      batchDims.push_back(dimOf(dims, factor));
    auto results = cast<OpResult>(block.getTerminator()->getOperand(0)).getResultNumber();
    batchDims.push_back(dimOf(rule.results[results], factor));
  }

  /// An input with the batch first, as %name.
  void addData(const std::string &name, const Input &input, int64_t dim, unsigned number) {
    Shape shape = input.shape;
    std::vector<int64_t> permutation(shape.size());
    std::iota(permutation.begin(), permutation.end(), 0);
    if (dim >= 0) {
      shape.erase(shape.begin() + dim);
      shape.insert(shape.begin(), batch);
      permutation.erase(permutation.begin());
      permutation.insert(permutation.begin() + dim, 0);
    }
    std::string type = typeOf(shape, input.element), to = typeOf(input.shape, input.element);
    arguments += llvm::formatv("{0}%in_{1}: {2}", names.empty() ? "" : ", ", name, type);
    names += llvm::formatv("{0}\"{1}\"", names.empty() ? "" : ", ", name);
    dims.push_back(dim >= 0 ? 0 : -1);
    body += llvm::formatv("%{0} = par.transpose %in_{0} {1} : {2} to {3}\n", name, listOf(permutation), type, to);
    Input drawn = input;
    drawn.shape = shape;
    inputs[name] = drawTensor(session.parseType(type), drawn, choose, number);
  }

  void addOperand(unsigned number) {
    const Input &input = made.inputs[number];
    std::string name = "a" + std::to_string(number), parameter = "p" + std::to_string(number);
    if (input.element != "f64")
      return addData(name, input, batchDims[number], number);
    Shape shape = input.shape;
    std::string type = typeOf(shape);
    if (batchDims[number] >= 0) {
      // Times a parameter near 1, which keeps the range.
      Input near = input;
      near.low += 0.1 * (input.high - input.low);
      near.high -= 0.1 * (input.high - input.low);
      addData("d" + name, near, batchDims[number], number);
      shape[batchDims[number]] = 1;
    }
    variables += llvm::formatv("par.variable @{0} parameter : {1}\n", parameter, typeOf(shape));
    body += llvm::formatv("%{0} = par.read @{0} : {1}\n", parameter, typeOf(shape));
    if (batchDims[number] < 0) {
      parameters[parameter] = drawTensor(session.parseType(type), input, choose, number);
      renames.emplace_back(name, parameter);
      return;
    }
    parameters[parameter] = drawTensor(session.parseType(typeOf(shape)), {shape, 0.98, 1.02}, choose, number);
    std::vector<int64_t> all(shape.size());
    std::iota(all.begin(), all.end(), 0);
    body += llvm::formatv("%b{0} = par.broadcast_in_dim %{1} dims {2} : {3} to {4}\n"
                          "%{0} = par.multiply %d{0}, %b{0} : {4}\n",
                          name, parameter, listOf(all), typeOf(shape), type);
    through = llvm::formatv("%through = par.reduce sum %{0} dims {1} : {2} to tensor<f64>\n", name, listOf(all), type);
  }

  void build() {
    for (unsigned number = 0; number < made.inputs.size(); ++number)
      addOperand(number);
    addData("weight", {made.result, 0.5, 1.5}, batchDims.back(), 0);
    std::string type = typeOf(made.result), text = renamed(made.text);
    for (auto &[from, to] : renames)
      for (size_t at; (at = text.find("%" + from)) != std::string::npos;)
        text.replace(at, from.size() + 1, "%" + to);
    std::vector<int64_t> all(made.result.size());
    std::iota(all.begin(), all.end(), 0);
    module =
        session.parse(llvm::formatv("{0}par.step @eval({1}) -> tensor<f64> attributes {{inputs = [{2}], "
                                    "outputs = [\"loss\"]} {{\n{3}{4}\n%yw = par.multiply %y, %weight : {5}\n"
                                    "%l = par.reduce sum %yw dims {6} : {5} to tensor<f64>\n"
                                    "{7}%loss = par.add %l, %through : tensor<f64>\npar.return %loss : tensor<f64>\n}",
                                    variables, arguments, names, body, text, type, listOf(all), through)
                          .str());
    if (module)
      module->lookupSymbol<StepOp>("eval").setBatchDimsAttr(Builder(&session.context).getDenseI64ArrayAttr(dims));
  }

  Session &session;
  Chooser choose;
  OpCase made;
  MeshAttr mesh;
  int64_t batch = -1, microbatches = 1;
  SmallVector<int64_t> batchDims; ///< of each operand, and of the result
  OwningOpRef<ModuleOp> module;
  interp::Named parameters, inputs;
  std::string variables, arguments, names, body;
  std::string
      through; ///< the sum of an operand, which the loss holds too: there is something to train where the op is a step
  SmallVector<int64_t> dims;
  std::vector<std::pair<std::string, std::string>> renames;
};

class BatchedOps : public ::testing::TestWithParam<std::vector<int64_t>> {};

TEST_P(BatchedOps, TrainAsOneDevice) {
  Session session;
  unsigned kinds = 0, cases = 0, unreduced = 0;
  for (auto &[name, make] : differentiableCases()) {
    unsigned before = cases;
    for (unsigned round = 0; round < countShardings(4); ++round) {
      BatchedOp op(session, make, GetParam(), round);
      if (!op)
        continue;
      ++cases;
      std::string fault = op.findFault();
      unreduced += op.isUnreduced;
      if (fault.empty())
        continue;
      ADD_FAILURE() << name << ", round " << round << ": " << fault << "\n" << op.text;
      break;
    }
    kinds += cases > before;
  }
  llvm::outs() << kinds << " kinds of cases with a batch on " << listOf(GetParam()) << ": " << cases << " cases, "
               << unreduced << " with a gradient reduced behind the loop\n";
  EXPECT_GT(unreduced, cases / 4);
}

INSTANTIATE_TEST_SUITE_P(Meshes, BatchedOps, ::testing::ValuesIn(meshes), meshName);

} // namespace
