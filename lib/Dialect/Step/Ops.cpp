// Assembly and verifiers of the step ops: stages, variables, steps, fragments, kernels, runs, loops and transfers. A
// loop's slices are one microbatch of their first dim; sums may be wider than their summands.
#include "par/Dialect/Par.h"

#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace par {

//===-- Assembly of step, fragment and kernel: that of functions -----------------------------===//

template <typename Op>
static ParseResult parseFunction(OpAsmParser &parser, OperationState &result) {
  auto type = [](Builder &builder, ArrayRef<Type> inputs, ArrayRef<Type> results, function_interface_impl::VariadicFlag,
                 std::string &) { return builder.getFunctionType(inputs, results); };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false, Op::getFunctionTypeAttrName(result.name), type,
      Op::getArgAttrsAttrName(result.name), Op::getResAttrsAttrName(result.name));
}

template <typename Op>
static void printFunction(OpAsmPrinter &printer, Op op) {
  function_interface_impl::printFunctionOp(printer, op, /*isVariadic=*/false, op.getFunctionTypeAttrName(),
                                           op.getArgAttrsAttrName(), op.getResAttrsAttrName());
}

template <typename Op>
static Block *buildFunction(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type) {
  state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(name));
  state.addAttribute(Op::getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  Block *block = new Block;
  state.addRegion()->push_back(block);
  for (Type input : type.getInputs())
    block->addArgument(input, state.location);
  return block;
}

ParseResult StepOp::parse(OpAsmParser &parser, OperationState &result) { return parseFunction<StepOp>(parser, result); }
void StepOp::print(OpAsmPrinter &printer) { printFunction(printer, *this); }
void StepOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type) {
  buildFunction<StepOp>(builder, state, name, type);
}

ParseResult FragmentOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseFunction<FragmentOp>(parser, result);
}
void FragmentOp::print(OpAsmPrinter &printer) { printFunction(printer, *this); }
void FragmentOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type, StringRef stage,
                       FragmentKind kind) {
  buildFunction<FragmentOp>(builder, state, name, type);
  state.addAttribute(getStageAttrName(state.name), FlatSymbolRefAttr::get(builder.getContext(), stage));
  state.addAttribute(getKindAttrName(state.name), FragmentKindAttr::get(builder.getContext(), kind));
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseFunction<KernelOp>(parser, result);
}
void KernelOp::print(OpAsmPrinter &printer) { printFunction(printer, *this); }
void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type,
                     StringRef implementation) {
  buildFunction<KernelOp>(builder, state, name, type);
  state.addAttribute(getImplementationAttrName(state.name), builder.getStringAttr(implementation));
}

LogicalResult ReturnOp::verify() {
  auto function = cast<FunctionOpInterface>((*this)->getParentOp());
  if (getOperandTypes() != function.getResultTypes())
    return emitOpError() << "returns (" << getOperandTypes() << "), the " << (*this)->getParentOp()->getName()
                         << " says (" << function.getResultTypes() << ")";
  return success();
}

//===-- Tables -------------------------------------------------------------------------------===//

LogicalResult StageOp::verify() {
  if (static_cast<int64_t>(getRanks().size()) != getMesh().getRanks())
    return emitOpError() << "lists " << getRanks().size() << " ranks, its mesh has " << getMesh().getRanks();
  llvm::SmallDenseSet<int64_t> seen;
  for (int64_t rank : getRanks())
    if (rank < 0 || !seen.insert(rank).second)
      return emitOpError() << "rank " << rank << " is negative or listed twice";
  return success();
}

LogicalResult VariableOp::verify() {
  RankedTensorType type = getTensorType();
  if (getStored()) {
    auto stored = cast<RankedTensorType>(*getStored());
    if (stored.getNumElements() != type.getNumElements() || stored.getElementType() != type.getElementType())
      return emitOpError() << "is stored as " << stored << ", which has other elements than " << type;
  }
  if (getSharding() && getSharding()->getRank() != type.getRank())
    return emitOpError() << "sharding has " << getSharding()->getRank() << " dims, the variable " << type.getRank();
  if (getAt())
    for (Type place : getAt()->getAsValueRange<TypeAttr>()) {
      auto dist = dyn_cast<DistType>(place);
      if (!dist || dist.getTensor() != type)
        return emitOpError() << "is at " << place << ", expected a !par.dist of " << type;
    }
  bool derived = getKind() == VariableKind::state || getKind() == VariableKind::copy;
  if (derived != getOf().has_value())
    return emitOpError() << "is a " << stringifyVariableKind(getKind()) << (derived ? " and needs" : " and cannot have")
                         << " `of`";
  if (getKind() == VariableKind::constant && !getValue())
    return emitOpError() << "is a constant and needs `value`";
  return success();
}

//===-- Steps --------------------------------------------------------------------------------===//

LogicalResult StepOp::verify() {
  if (getBody().empty())
    return emitOpError() << "needs a body";
  auto count = [&](std::optional<ArrayAttr> names, unsigned many, StringRef what) -> LogicalResult {
    if (names && names->size() != many)
      return emitOpError() << "names " << names->size() << " " << what << ", it has " << many;
    return success();
  };
  if (getBatchDims() && getBatchDims()->size() != getNumArguments())
    return emitOpError() << "names " << getBatchDims()->size() << " batch dims, it has " << getNumArguments()
                         << " inputs";
  return success(succeeded(count(getInputs(), getNumArguments(), "inputs")) &&
                 succeeded(count(getOutputs(), getNumResults(), "outputs")));
}

/// The variable of a read or write, whose tensor type must be the value's.
static LogicalResult verifyVariable(Operation *op, FlatSymbolRefAttr name, Type type, SymbolTableCollection &symbols) {
  auto variable = symbols.lookupNearestSymbolFrom<VariableOp>(op, name);
  if (!variable)
    return op->emitOpError() << "names " << name << ", which is no variable";
  if (getTensorType(type) != variable.getTensorType()) {
    InFlightDiagnostic diagnostic = op->emitOpError()
                                    << "has type " << type << ", the variable " << variable.getTensorType();
    diagnostic.attachNote(variable.getLoc()) << "variable declared here";
    return diagnostic;
  }
  return success();
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyVariable(*this, getVariableAttr(), getType(), symbols);
}
LogicalResult WriteOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyVariable(*this, getVariableAttr(), getOperand().getType(), symbols);
}

/// The type of one of `count` microbatches that are stacked along dim 0; null if dim 0 is not `count`.
static Type sliceOf(Type type, int64_t count) {
  RankedTensorType tensor = getTensorType(type);
  if (tensor.getRank() == 0 || tensor.getDimSize(0) != count)
    return {};
  RankedTensorType rest = RankedTensorType::get(tensor.getShape().drop_front(), tensor.getElementType());
  auto dist = dyn_cast<DistType>(type);
  if (!dist)
    return rest;
  ShardingAttr sharding = dist.getSharding();
  if (sharding)
    sharding = ShardingAttr::get(type.getContext(), sharding.getDims().drop_front(), sharding.getUnreduced());
  return DistType::get(type.getContext(), rest, dist.getStage(), sharding);
}

/// A sum may have another element type than its summands.
static bool liesAs(Type type, Type other) {
  auto shardingOf = [](Type of) { return isa<DistType>(of) ? cast<DistType>(of).getSharding() : ShardingAttr(); };
  return getTensorType(type).getShape() == getTensorType(other).getShape() && shardingOf(type) == shardingOf(other);
}

LogicalResult LoopOp::verify() {
  Block &body = getBody().front();
  int64_t count = getCount();
  if (count < 1)
    return emitOpError() << "runs " << count << " times, expected at least once";
  if (body.getNumArguments() != getSlices().size() + 1)
    return emitOpError() << "body has " << body.getNumArguments() << " arguments, expected the index and "
                         << getSlices().size() << " slices";
  for (auto [operand, argument] : llvm::zip(getSlices(), body.getArguments().drop_front()))
    if (sliceOf(operand.getType(), count) != argument.getType())
      return emitOpError() << "slices " << operand.getType() << " over " << count << " microbatches, the body takes "
                           << argument.getType();
  auto yield = cast<YieldOp>(body.getTerminator());
  if (yield.getKinds().size() != getNumResults() || yield.getNumOperands() != getNumResults())
    return emitOpError() << "has " << getNumResults() << " results, the body yields " << yield.getNumOperands();
  for (auto [result, value, kind] :
       llvm::zip(getResults(), yield.getOperands(), yield.getKinds().getAsRange<YieldKindAttr>())) {
    Type wanted = kind.getValue() == YieldKind::stack ? sliceOf(result.getType(), count) : result.getType();
    if (!wanted || !liesAs(value.getType(), wanted))
      return emitOpError() << "result " << result.getResultNumber() << " is " << result.getType()
                           << ", the body yields " << value.getType() << " to " << stringifyYieldKind(kind.getValue());
  }
  return success();
}

LogicalResult RunOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto fragment = symbols.lookupNearestSymbolFrom<FragmentOp>(*this, getFragmentAttr());
  if (!fragment)
    return emitOpError() << "names " << getFragmentAttr() << ", which is no fragment";
  MeshAttr mesh = getMesh(*this, fragment.getStageAttr());
  auto check = [&](TypeRange values, TypeRange expected, StringRef what) -> LogicalResult {
    if (values.size() != expected.size())
      return emitOpError() << "has " << values.size() << " " << what << "s, the fragment " << expected.size();
    for (auto [i, value, want] : llvm::enumerate(values, expected)) {
      auto dist = dyn_cast<DistType>(value);
      Type got = getTensorType(value);
      if (dist && dist.getStage() != fragment.getStageAttr())
        return emitOpError() << what << " " << i << " lives on " << dist.getStage() << ", the fragment on "
                             << fragment.getStageAttr();
      if (dist && fragment.getLocal()) {
        if (!dist.getSharding() || !mesh)
          return emitOpError() << what << " " << i << " of a local fragment has no sharding";
        got = dist.getSharding().getLocalType(dist.getTensor(), mesh);
      }
      if (got != want)
        return emitOpError() << what << " " << i << " is " << got << " on a rank, the fragment says " << want;
    }
    return success();
  };
  if (failed(check(getOperandTypes(), fragment.getArgumentTypes(), "argument")))
    return failure();
  return check(getResultTypes(), fragment.getResultTypes(), "result");
}

LogicalResult TransferOp::verify() {
  DistType from = getOperand().getType(), to = getType();
  if (from.getTensor() != to.getTensor())
    return emitOpError() << "turns " << from.getTensor() << " into " << to.getTensor();
  if (from.getStage() == to.getStage())
    return emitOpError() << "stays on stage " << to.getStage() << "; use par.reshard";
  return success();
}

LogicalResult ReshardOp::verify() {
  DistType from = getOperand().getType(), to = getType();
  if (from.getTensor() != to.getTensor())
    return emitOpError() << "turns " << from.getTensor() << " into " << to.getTensor();
  if (from.getStage() != to.getStage())
    return emitOpError() << "moves from stage " << from.getStage() << " to " << to.getStage() << "; use par.transfer";
  return success();
}

LogicalResult StageAllReduceOp::verify() {
  if (getOperandTypes() != getResultTypes())
    return emitOpError() << "operand and result types must be equal";
  for (Value operand : getOperands())
    if (getTensorType(operand.getType()).getRank() != 0)
      return emitOpError() << "combines scalars, found " << operand.getType();
  return success();
}

LogicalResult FragmentOp::verify() {
  if (getBody().empty())
    return emitOpError() << "needs a body";
  if (getShardings() && getShardings()->size() != getNumArguments())
    return emitOpError() << "has " << getShardings()->size() << " argument shardings, " << getNumArguments()
                         << " arguments";
  return success();
}

} // namespace par
