// The state of sharding propagation through one step: classes of values that share a layout, their seeds and borders,
// and the sums that are carried on. Its methods are in several files, one a part of the algorithm.
#pragma once

#include "par/Phases/Propagate/Spread.h"

#include "par/Phases/Propagate/Masters.h"
#include "par/Phases/Propagate/Passes.h"

#include "llvm/ADT/StringMap.h"

namespace par {

/// A change of a parameter's layout, which no axis crosses.
struct Border {
  enum Kind { ReadToUse, ReadToUpdate, AccumulatedToUpdate, UpdateToWrite };
  Kind kind;
  ReshardOp reshard;
  ReadOp read = {}; ///< of ReadToUse: the read whose value is used after it
};

ShardingAttr makeSharding(mlir::MLIRContext *context, llvm::ArrayRef<Axes> dims,
                          llvm::ArrayRef<mlir::StringAttr> unreduced);

bool isOfUpdate(const Border &border);
/// The side of a border on which the parameter's new value is made.
mlir::Value updateSide(Border &border);

/// Overlays a rule on a sharding: a dim without axes keeps its own unless it is closed, and the rule's axes are removed
/// from the kept dims.
llvm::SmallVector<Axes> layRule(llvm::ArrayRef<Axes> dims, ShardingAttr rule);

/// The priority in such a rule; 1 if it has none.
int64_t priorityOfRule(llvm::StringRef text);

/// The rules of an option by parameter: the text after the `=`.
llvm::StringMap<llvm::StringRef> rulesByName(llvm::ArrayRef<std::string> rules);

/// How far one sum is carried: values up to those that their users reduce, and the bytes that these reductions move.
struct CarriedSum {
  Axes axes;
  llvm::SmallVector<mlir::Value> values;
  int64_t bytes = 0;
};

/// Propagation through one step and the fragments that it runs.
class Propagation {
public:
  /// `inputs` holds the shardings of earlier steps' inputs by name, and receives this one's.
  Propagation(StepOp step, const PropagateOptions &options, llvm::StringMap<ShardingAttr> &inputs)
      : step(step), module(step->getParentOfType<mlir::ModuleOp>()), inputs(inputs), options(options),
        batch(axesOf(options.batchAxes)), gradientRules(rulesByName(options.gradientRules)),
        stateRules(rulesByName(options.stateRules)), priorities(rulesByName(options.priorities)),
        parameterAxes(axesOf(options.parameterAxes)) {}

  void run();

private:
  Axes axesOf(llvm::ArrayRef<std::string> names) {
    Axes axes;
    for (const std::string &name : names)
      axes.push_back(mlir::StringAttr::get(step.getContext(), name));
    return axes;
  }

  // Layouts that differ between stored, accumulated and updated (Borders.cpp).
  void placeBorders();
  void addBorder(Border::Kind kind, VariableOp parameter, mlir::OpOperand &use, ReadOp read = {});
  void addUseBorder(VariableOp parameter, ReadOp read, mlir::OpOperand &use);
  VariableOp ownerOf(llvm::StringRef variable) { return ownerOfVariable(variable, symbols); }
  llvm::SmallVector<mlir::Value> usesOf(ReadOp read);
  void spreadParameters();
  void spreadParameter(VariableOp parameter, mlir::Value stored);
  void extendAll(mlir::Value value, llvm::ArrayRef<Axes> dims);
  void seedUpdates(int64_t priority);
  void placeGradients();
  // Values that are the same in all microbatches, if parameters are gathered once a step (Unchanged.cpp).
  bool isReadWhole(mlir::Value value);
  void keepGathered(mlir::Value value);
  void keepUnchangedGathered();
  ShardingAttr ruleOf(const llvm::StringMap<llvm::StringRef> &rules, VariableOp parameter);
  ShardingAttr accumulatedRule(VariableOp parameter) { return ruleOf(gradientRules, parameter); }
  ShardingAttr updatedRule(VariableOp parameter) { return ruleOf(stateRules, parameter); }

  void join();
  void joinRun(RunOp run);
  void seedBatch();
  void seed(mlir::Value value, ShardingAttr sharding);
  llvm::StringRef inputName(unsigned number);
  void seedInputs();
  ShardingAttr placeOf(ReadOp read);
  void seedPlaces();
  llvm::SmallVector<int64_t> planPriorities();
  int64_t priorityOf(VariableOp variable);
  void seedPlan(int64_t priority);
  void seedVariable(ReadOp read, int64_t priority);
  /// Carries axes along rules to the fixpoint.
  void spread() { spreading->run(); }

  // Writes the fixpoint into the IR (FinishShardings.cpp).
  void finish();
  void finishFragment(FragmentOp fragment);
  void finishResults(FragmentOp fragment);
  // Carries sums to where they have become small (CarrySums.cpp).
  std::optional<llvm::SmallVector<mlir::Value>> readersOf(FragmentOp fragment, unsigned result);
  bool carryUse(mlir::OpOperand &use, CarriedSum &carried);
  bool carry(mlir::Value value, CarriedSum &carried);
  llvm::SmallVector<std::pair<mlir::Value, Axes>> listReducedSums();
  void carrySums();
  void setStepType(mlir::Value value, llvm::ArrayRef<mlir::StringAttr> unreduced);
  void finishStep();
  void reduceBehind(LoopOp loop);
  void placeVariables();
  bool isLinearIn(mlir::OpOperand &use, bool &joint);
  bool staysUnreduced(mlir::Value value, bool alone = false);
  bool isAccumulated(FragmentOp fragment, unsigned result);
  void keepPartial(mlir::Value value, Axes &sums);
  llvm::SmallVector<mlir::Operation *> traceSum(mlir::Value value, Axes &axes);
  void meetSums(mlir::Operation &op);
  void deferReductions(mlir::Operation &op);
  llvm::ArrayRef<Axes> dimsOf(mlir::Value value);
  Axes sumAxes(mlir::Operation *op, mlir::Value result, bool summand = false);
  bool isSumOver(mlir::Value value, mlir::StringAttr axis);
  bool meetsSums(mlir::Value value, mlir::StringAttr axis);
  Axes bareSummand(mlir::Operation *op, mlir::Value result);

  StepOp step;
  mlir::ModuleOp module;
  mlir::SymbolTable symbols{module};
  llvm::StringMap<ShardingAttr> &inputs;
  const PropagateOptions &options;
  Axes batch;
  llvm::StringMap<llvm::StringRef> gradientRules, stateRules, priorities; ///< by the parameter's name
  Axes parameterAxes;
  llvm::StringSet<> masters{findMasters(step, symbols, options)};               ///< names of parameters
  llvm::StringMap<llvm::SmallVector<Border>> borders;                           ///< by the parameter's name
  llvm::SmallVector<std::pair<mlir::Value, llvm::SmallVector<Axes>>> gradients; ///< accumulators that the plan lays
  Layouts layouts{module, symbols, parameterAxes};
  std::optional<Spread> spreading; ///< once the values are joined
  llvm::SmallVector<std::pair<RunOp, FragmentOp>> runs;
  llvm::DenseMap<mlir::Operation *, ShardingRule> rules;     ///< of fragment ops, made once
  llvm::DenseMap<mlir::Value, Axes> unreduced;               ///< of fragment values that stay sums
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Axes>> bare; ///< of summands with a sharding of their own
};

} // namespace par
