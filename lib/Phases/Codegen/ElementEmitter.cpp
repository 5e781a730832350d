// Emits the code of one element: follows reads through generics that are computed in place, and keeps each value by
// (value, index) so that it is computed once. Addresses are affine expressions of the loops, expanded with divisions by
// constants.
#include "ElementEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace par::codegen {

ElementEmitter::ElementEmitter(func::FuncOp function, const KernelPlan &plan, const KernelBuffers &buffers,
                               LLVM::LLVMFuncOp target)
    : builder(function.getContext()), loc(function.getLoc()), function(function), plan(plan), buffers(buffers),
      target(target) {
  dims.resize(maxLoops);
  bounds.resize(maxLoops);
}

void ElementEmitter::setLoops(ArrayRef<int64_t> sizes) {
  for (auto [position, size] : llvm::enumerate(sizes))
    bounds[position] = IndexBounds::below(size);
}

Value ElementEmitter::constant(int64_t value) {
  return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
}

Value ElementEmitter::pointer(unsigned operand) { return target.getArgument(operand); }

void ElementEmitter::bindImmediates() {
  unsigned next = buffers.count;
  for (BlockArgument argument : function.getArguments())
    if (argument.getType().isInteger(64))
      immediates[argument] = target.getArgument(next++);
}

void ElementEmitter::allocateStack() {
  auto type = LLVM::LLVMPointerType::get(builder.getContext());
  for (const Nest &nest : plan.nests)
    if (nest.place == Place::Stack)
      stack[nest.value()] = LLVM::AllocaOp::create(builder, loc, type, builder.getI8Type(),
                                                   constant(plan.bytesPerRow(nest)), /*alignment=*/64);
}

Type ElementEmitter::memoryType(Type element) {
  return element.isInteger(1) ? IntegerType::get(element.getContext(), 8) : element;
}

Value ElementEmitter::elementPointer(Value base, Type element, Value address) {
  return LLVM::GEPOp::create(builder, loc, base.getType(), memoryType(element), base, ArrayRef<LLVM::GEPArg>{address});
}

Value ElementEmitter::load(Value base, Type element, Value address) {
  Value value = LLVM::LoadOp::create(builder, loc, memoryType(element), elementPointer(base, element, address));
  if (element.isInteger(1))
    value = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, value,
                                  arith::ConstantOp::create(builder, loc, builder.getI8IntegerAttr(0)));
  return value;
}

void ElementEmitter::store(Value value, Value base, Value address) {
  Type element = value.getType();
  if (element.isInteger(1))
    value = arith::ExtUIOp::create(builder, loc, builder.getI8Type(), value);
  LLVM::StoreOp::create(builder, loc, value, elementPointer(base, element, address));
}

Value ElementEmitter::expand(AffineExpr expr) {
  if (auto constantExpr = dyn_cast<AffineConstantExpr>(expr))
    return constant(constantExpr.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  if (expr.getKind() == AffineExprKind::Add || expr.getKind() == AffineExprKind::Mul) {
    Value lhs = expand(binary.getLHS()), rhs = expand(binary.getRHS());
    if (expr.getKind() == AffineExprKind::Add)
      return arith::AddIOp::create(builder, loc, lhs, rhs, arith::IntegerOverflowFlags::nsw);
    return arith::MulIOp::create(builder, loc, lhs, rhs, arith::IntegerOverflowFlags::nsw);
  }
  int64_t divisor = cast<AffineConstantExpr>(binary.getRHS()).getValue();
  if (expr.getKind() == AffineExprKind::CeilDiv)
    return divide(binary.getLHS() + (divisor - 1), divisor, /*remainder=*/false);
  return divide(binary.getLHS(), divisor, /*remainder=*/expr.getKind() == AffineExprKind::Mod);
}

Value ElementEmitter::divide(AffineExpr dividend, int64_t divisor, bool remainder) {
  int64_t low = boundsOf(dividend, [&](unsigned dim) { return bounds[dim]; }).low;
  // An index is at most as far from 0 as a tensor is large: a lower bound beyond that is unknown, and not moved.
  if (low < -(int64_t(1) << 62))
    return divideAny(expand(dividend), divisor, remainder);
  int64_t up = low < 0 ? llvm::divideCeil(static_cast<uint64_t>(-low), static_cast<uint64_t>(divisor)) : 0;
  Value raised = expand(dividend + up * divisor), by = constant(divisor);
  if (remainder)
    return arith::RemUIOp::create(builder, loc, raised, by);
  Value quotient = arith::DivUIOp::create(builder, loc, raised, by);
  if (up == 0)
    return quotient;
  return arith::SubIOp::create(builder, loc, quotient, constant(up), arith::IntegerOverflowFlags::nsw);
}

Value ElementEmitter::divideAny(Value dividend, int64_t divisor, bool remainder) {
  Value by = constant(divisor), cut = arith::RemSIOp::create(builder, loc, dividend, by);
  Value isNegative = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, cut, constant(0));
  Value rest = arith::SelectOp::create(builder, loc, isNegative, arith::AddIOp::create(builder, loc, cut, by), cut);
  if (remainder)
    return rest;
  return arith::DivSIOp::create(builder, loc, arith::SubIOp::create(builder, loc, dividend, rest), by);
}

ElementEmitter::MemoKey ElementEmitter::makeKey(Value value, ArrayRef<AffineExpr> index) {
  std::vector<void *> key;
  for (AffineExpr expr : index)
    key.push_back(const_cast<void *>(expr.getAsOpaquePointer()));
  return {value.getAsOpaquePointer(), key};
}

Value ElementEmitter::readElement(Value tensor, ArrayRef<AffineExpr> index) {
  Value source = stripReshapes(tensor);
  Index sourceIndex = reshapeIndex(index, shapeOf(tensor), shapeOf(source), builder.getContext());
  MemoKey key = makeKey(source, sourceIndex);
  if (auto known = memo.find(key); known != memo.end())
    return known->second;
  Value value = computeElement(source, sourceIndex, linearize(index, shapeOf(tensor), builder.getContext()));
  memo[key] = value;
  return value;
}

Value ElementEmitter::computeElement(Value source, ArrayRef<AffineExpr> index, AffineExpr address) {
  Type element = getElementTypeOrSelf(source.getType());
  int64_t elements = ShapedType::getNumElements(shapeOf(source));
  if (auto argument = dyn_cast<BlockArgument>(source))
    return loadAt(pointer(buffers.arguments[argument.getArgNumber()]), element, address, elements);
  if (auto nest = plan.nestOf.find(source); nest != plan.nestOf.end())
    return readNest(plan.nests[nest->second], index, address);
  if (auto generic = genericOf(source))
    return computeBody(generic, index, {});
  if (auto fill = source.getDefiningOp<linalg::FillOp>())
    return clone(fill.getInputs()[0]);
  if (auto scalar = source.getDefiningOp<tensor::FromElementsOp>())
    return scalarOf(scalar.getElements()[0]);
  auto dense = cast<DenseElementsAttr>(source.getDefiningOp<arith::ConstantOp>().getValue());
  if (dense.isSplat())
    return arith::ConstantOp::create(builder, loc, dense.getSplatValue<TypedAttr>());
  return loadAt(addressOf(dense), element, address, elements);
}

Value ElementEmitter::loadAt(Value base, Type element, AffineExpr address, int64_t elements) {
  address = simplifyAddress(address);
  if (!guard)
    return load(base, element, expand(address));
  auto choose = [&](AffineExpr place) -> Value {
    return arith::SelectOp::create(builder, loc, guard, expand(place), constant(0));
  };
  if (!step || strideAlong(address, step->dim) != 1 || elements < step->run)
    return load(base, element, choose(address));
  AffineExpr along = builder.getAffineDimExpr(step->dim);
  AffineExpr first = simplifyAddress(address.replace(along, along * step->run));
  if (!first.isMultipleOf(step->run))
    return load(base, element, choose(address));
  // The same for all of a run but for the last offset, and plainly a multiple of its bytes.
  Value here = std::exchange(dims[step->dim], step->number);
  Value run = choose(simplifyAddress(first.floorDiv(step->run)));
  dims[step->dim] = here;
  Value begin = arith::MulIOp::create(builder, loc, run, constant(step->run), arith::IntegerOverflowFlags::nsw);
  return load(elementPointer(base, element, begin), element, constant(step->offset));
}

Value ElementEmitter::readNest(const Nest &nest, ArrayRef<AffineExpr> index, AffineExpr address) {
  Value value = nest.value();
  if (auto known = registers.find(value); known != registers.end())
    return known->second;
  Type element = getElementTypeOrSelf(value.getType());
  if (nest.place == Place::Result)
    return loadAt(pointer(buffers.results[nest.results.front()]), element, address,
                  ShapedType::getNumElements(shapeOf(value)));
  return loadAt(baseOf(nest), element, nest.addressInRow(index), plan.bytesPerRow(nest) / getElementBytes(element));
}

Value ElementEmitter::baseOf(const Nest &nest) {
  if (nest.place == Place::Stack)
    return stack.lookup(nest.value());
  Value offset = constant(nest.offset);
  if (scratchBegin)
    offset = arith::AddIOp::create(builder, loc, scratchBegin, offset);
  return elementPointer(pointer(buffers.scratch), builder.getI8Type(), offset);
}

Value ElementEmitter::clone(Value scalar) { return builder.clone(*scalar.getDefiningOp())->getResult(0); }

Value ElementEmitter::scalarOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return immediates.lookup(argument);
  Operation *op = value.getDefiningOp();
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, scalarOf(operand));
  return builder.clone(*op, mapping)->getResult(0);
}

Value ElementEmitter::addressOf(DenseElementsAttr dense) {
  Type element = dense.getElementType();
  DenseElementsAttr stored = dense;
  if (element.isInteger(1)) {
    SmallVector<int8_t> bytes;
    for (bool value : dense.getValues<bool>())
      bytes.push_back(value);
    stored = DenseElementsAttr::get(RankedTensorType::get(dense.getType().getShape(), builder.getI8Type()),
                                    ArrayRef<int8_t>(bytes));
  }
  auto flat =
      cast<DenseElementsAttr>(stored).reshape(RankedTensorType::get({stored.getNumElements()}, memoryType(element)));
  OpBuilder outside(target);
  std::string name = (target.getName() + ".data" + Twine(globals++)).str();
  auto type = LLVM::LLVMArrayType::get(memoryType(element), stored.getNumElements());
  auto global = LLVM::GlobalOp::create(outside, loc, type, true, LLVM::Linkage::Internal, name, flat, /*alignment=*/64);
  return LLVM::AddressOfOp::create(builder, loc, global);
}

Value ElementEmitter::computeBody(linalg::GenericOp generic, ArrayRef<AffineExpr> iteration, Value combined) {
  IRMapping mapping;
  for (OpOperand *input : generic.getDpsInputOperands()) {
    BlockArgument argument = generic.getMatchingBlockArgument(input);
    if (!argument.use_empty())
      mapping.map(argument, readElement(input->get(), applyMap(generic.getMatchingIndexingMap(input), iteration)));
  }
  if (combined)
    mapping.map(generic.getMatchingBlockArgument(generic.getDpsInitOperand(0)), combined);
  emitBody(*generic.getBody(), iteration, mapping);
  return mapping.lookupOrDefault(generic.getBody()->getTerminator()->getOperand(0));
}

void ElementEmitter::emitBody(Block &block, ArrayRef<AffineExpr> iteration, IRMapping &mapping) {
  Type index = builder.getIndexType();
  for (Operation &op : block.without_terminator()) {
    if (auto dim = dyn_cast<linalg::IndexOp>(op))
      mapping.map(dim.getResult(),
                  arith::IndexCastOp::create(builder, loc, index, expand(iteration[dim.getDim()])).getResult());
    else if (auto extract = dyn_cast<tensor::ExtractOp>(op))
      mapping.map(extract.getResult(), readExtracted(extract, iteration, mapping));
    else if (auto choice = dyn_cast<scf::IfOp>(op))
      emitChoice(choice, iteration, mapping);
    else
      builder.clone(op, mapping);
  }
}

void ElementEmitter::emitChoice(scf::IfOp choice, ArrayRef<AffineExpr> iteration, IRMapping &mapping) {
  Value condition = mapping.lookup(choice.getCondition());
  auto emitSide = [&](Region &side) {
    Memo outer = memo;
    emitBody(side.front(), iteration, mapping);
    memo = std::move(outer);
    return llvm::map_to_vector(side.front().getTerminator()->getOperands(),
                               [&](Value value) { return mapping.lookupOrDefault(value); });
  };
  if (withoutBranches && llvm::all_of(choice->getRegions(), [&](Region &side) {
        return side.hasOneBlock() && isCheapAnywhere(side.front());
      })) {
    auto guarded = [&](Region &side, Value holds) {
      Value outer = guard;
      guard = outer ? arith::AndIOp::create(builder, loc, outer, holds).getResult() : holds;
      SmallVector<Value> values = emitSide(side);
      guard = outer;
      return values;
    };
    Value yes = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
    SmallVector<Value> inside = guarded(choice.getThenRegion(), condition);
    SmallVector<Value> outside = guarded(choice.getElseRegion(), arith::XOrIOp::create(builder, loc, condition, yes));
    for (auto [result, x, y] : llvm::zip(choice.getResults(), inside, outside))
      mapping.map(result, arith::SelectOp::create(builder, loc, condition, x, y).getResult());
    return;
  }
  auto emitted = scf::IfOp::create(builder, loc, choice.getResultTypes(), condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard keep(builder);
  for (auto [from, to] : llvm::zip(choice->getRegions(), emitted->getRegions())) {
    builder.setInsertionPointToEnd(&to.front());
    scf::YieldOp::create(builder, loc, emitSide(from));
  }
  mapping.map(choice.getResults(), emitted.getResults());
}

bool ElementEmitter::isCheapAnywhere(Block &block) {
  return llvm::all_of(block.without_terminator(), [&](Operation &op) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(op))
      return isCheapAnywhere(extract.getTensor());
    if (auto choice = dyn_cast<scf::IfOp>(op))
      return llvm::all_of(choice->getRegions(),
                          [&](Region &side) { return side.hasOneBlock() && isCheapAnywhere(side.front()); });
    return !isa<arith::DivFOp>(op) && !isa<math::MathDialect>(op.getDialect()) && isSpeculatable(&op);
  });
}

bool ElementEmitter::isCheapAnywhere(Value tensor) {
  Value source = stripReshapes(tensor);
  if (ShapedType::getNumElements(shapeOf(source)) == 0)
    return false;
  linalg::GenericOp generic = genericOf(source);
  if (!generic || plan.nestOf.contains(source))
    return true;
  return llvm::all_of(generic.getDpsInputs(), [&](Value input) { return isCheapAnywhere(input); }) &&
         isCheapAnywhere(*generic.getBody());
}

Value ElementEmitter::readExtracted(tensor::ExtractOp extract, ArrayRef<AffineExpr> iteration, IRMapping &mapping) {
  auto makeDim = [&](Value value) {
    dims.push_back(arith::IndexCastOp::create(builder, loc, builder.getI64Type(), mapping.lookup(value)));
    bounds.emplace_back();
    return builder.getAffineDimExpr(dims.size() - 1);
  };
  Index indices;
  for (auto [value, size] : llvm::zip(extract.getIndices(), shapeOf(extract.getTensor()))) {
    indices.push_back(traceIndex(value, iteration, makeDim));
    // A whole index, not a summand of one, is within the dim where the element is read.
    if (auto dim = dyn_cast<AffineDimExpr>(indices.back()); dim && dim.getPosition() >= maxLoops)
      bounds[dim.getPosition()] = IndexBounds::below(size);
  }
  return readElement(extract.getTensor(), indices);
}

} // namespace par::codegen
