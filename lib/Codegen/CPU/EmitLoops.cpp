#include "EmitLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <map>

using namespace mlir;

namespace par::cpu {
namespace {

constexpr size_t maxLoops = 32;

/// Emits the loops of one kernel into a function whose arguments are the operands' pointers, the immediates and the
/// bounds of the first row dim.
class LoopEmitter {
public:
  LoopEmitter(func::FuncOp function, const KernelPlan &plan, const KernelBuffers &buffers, LLVM::LLVMFuncOp target)
      : function(function), plan(plan), buffers(buffers), builder(function.getContext()), loc(function.getLoc()),
        target(target) {
    dims.resize(maxLoops);
  }

  void emit() {
    Block *entry = target.addEntryBlock(builder);
    builder.setInsertionPointToStart(entry);
    bindImmediates();
    allocateStack();
    emitRows(0);
    LLVM::ReturnOp::create(builder, loc, ValueRange());
  }

private:
  using MemoKey = std::pair<void *, std::vector<void *>>;
  using Memo = std::map<MemoKey, Value>;

  //===-- Values ------------------------------------------------------------------------------------------------===//

  Value constant(int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
  }

  Value pointer(unsigned operand) { return target.getArgument(operand); }

  void bindImmediates() {
    unsigned next = buffers.count;
    for (BlockArgument argument : function.getArguments())
      if (argument.getType().isInteger(64))
        immediates[argument] = target.getArgument(next++);
    firstRow = target.getArgument(next);
    lastRow = target.getArgument(next + 1);
  }

  void allocateStack() {
    auto type = LLVM::LLVMPointerType::get(builder.getContext());
    for (const Nest &nest : plan.nests)
      if (nest.place == Place::Stack)
        stack[nest.value()] = LLVM::AllocaOp::create(
            builder, loc, type, builder.getI8Type(), constant(plan.bytesPerRow(nest)), /*alignment=*/64);
  }

  static Type memoryType(Type element) {
    return element.isInteger(1) ? IntegerType::get(element.getContext(), 8) : element;
  }

  Value elementPointer(Value base, Type element, Value address) {
    return LLVM::GEPOp::create(builder, loc, base.getType(), memoryType(element), base,
                               ArrayRef<LLVM::GEPArg>{address});
  }

  Value load(Value base, Type element, Value address) {
    Value value = LLVM::LoadOp::create(builder, loc, memoryType(element), elementPointer(base, element, address));
    if (element.isInteger(1))
      value = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, value,
                                    arith::ConstantOp::create(builder, loc, builder.getI8IntegerAttr(0)));
    return value;
  }

  void store(Value value, Value base, Value address) {
    Type element = value.getType();
    if (element.isInteger(1))
      value = arith::ExtUIOp::create(builder, loc, builder.getI8Type(), value);
    LLVM::StoreOp::create(builder, loc, value, elementPointer(base, element, address));
  }

  /// Indices and sizes are never negative: division is unsigned.
  Value expand(AffineExpr expr) {
    if (auto constantExpr = dyn_cast<AffineConstantExpr>(expr))
      return constant(constantExpr.getValue());
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      return dims[dim.getPosition()];
    auto binary = cast<AffineBinaryOpExpr>(expr);
    Value lhs = expand(binary.getLHS()), rhs = expand(binary.getRHS());
    switch (expr.getKind()) {
    case AffineExprKind::Add:
      return arith::AddIOp::create(builder, loc, lhs, rhs, arith::IntegerOverflowFlags::nsw);
    case AffineExprKind::Mul:
      return arith::MulIOp::create(builder, loc, lhs, rhs, arith::IntegerOverflowFlags::nsw);
    case AffineExprKind::Mod:
      return arith::RemUIOp::create(builder, loc, lhs, rhs);
    default:
      return arith::DivUIOp::create(builder, loc, lhs, rhs);
    }
  }

  AffineExpr simplify(AffineExpr expr) { return simplifyAffineExpr(expr, dims.size(), 0); }

  static MemoKey makeKey(Value value, ArrayRef<AffineExpr> index) {
    std::vector<void *> key;
    for (AffineExpr expr : index)
      key.push_back(const_cast<void *>(expr.getAsOpaquePointer()));
    return {value.getAsOpaquePointer(), key};
  }

  //===-- Elements ----------------------------------------------------------------------------------------------===//

  /// One element of a tensor, computed on the spot or read from where it lies.
  Value readElement(Value tensor, ArrayRef<AffineExpr> index) {
    Value source = stripReshapes(tensor);
    Index sourceIndex = reshapeIndex(index, shapeOf(tensor), shapeOf(source), builder.getContext());
    MemoKey key = makeKey(source, sourceIndex);
    if (auto known = memo.find(key); known != memo.end())
      return known->second;
    Value value = computeElement(source, sourceIndex, linearize(index, shapeOf(tensor), builder.getContext()));
    memo[key] = value;
    return value;
  }

  Value computeElement(Value source, ArrayRef<AffineExpr> index, AffineExpr address) {
    Type element = getElementTypeOrSelf(source.getType());
    if (auto argument = dyn_cast<BlockArgument>(source))
      return load(pointer(buffers.arguments[argument.getArgNumber()]), element, expand(simplify(address)));
    if (auto nest = plan.nestOf.find(source); nest != plan.nestOf.end())
      return readNest(plan.nests[nest->second], index, address);
    if (auto generic = genericOf(source))
      return computeBody(generic, index, {});
    if (auto fill = source.getDefiningOp<linalg::FillOp>())
      return clone(fill.getInputs()[0]);
    if (auto elements = source.getDefiningOp<tensor::FromElementsOp>())
      return scalarOf(elements.getElements()[0]);
    auto dense = cast<DenseElementsAttr>(source.getDefiningOp<arith::ConstantOp>().getValue());
    if (dense.isSplat())
      return arith::ConstantOp::create(builder, loc, dense.getSplatValue<TypedAttr>());
    return load(addressOf(dense), element, expand(simplify(address)));
  }

  Value readNest(const Nest &nest, ArrayRef<AffineExpr> index, AffineExpr address) {
    Value value = nest.value();
    if (auto known = registers.find(value); known != registers.end())
      return known->second;
    Type element = getElementTypeOrSelf(value.getType());
    if (nest.place == Place::Result)
      return load(pointer(buffers.results[nest.results.front()]), element, expand(simplify(address)));
    return load(baseOf(nest), element, expand(simplify(addressInRow(nest, index))));
  }

  Value baseOf(const Nest &nest) {
    if (nest.place == Place::Stack)
      return stack.lookup(nest.value());
    return elementPointer(pointer(buffers.scratch), builder.getI8Type(), constant(nest.offset));
  }

  AffineExpr addressInRow(const Nest &nest, ArrayRef<AffineExpr> index) {
    size_t rows = plan.rows.size();
    return linearize(index.drop_front(rows), shapeOf(nest.value()).drop_front(rows), builder.getContext());
  }

  Value clone(Value scalar) { return builder.clone(*scalar.getDefiningOp())->getResult(0); }

  /// A scalar of the function's own level: an immediate, or arithmetic on some.
  Value scalarOf(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return immediates.lookup(argument);
    Operation *op = value.getDefiningOp();
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, scalarOf(operand));
    return builder.clone(*op, mapping)->getResult(0);
  }

  /// Address of a constant that is no splat, which becomes data of the object.
  Value addressOf(DenseElementsAttr dense) {
    Type element = dense.getElementType();
    DenseElementsAttr stored = dense;
    if (element.isInteger(1)) {
      SmallVector<int8_t> bytes;
      for (bool value : dense.getValues<bool>())
        bytes.push_back(value);
      stored = DenseElementsAttr::get(RankedTensorType::get(dense.getType().getShape(), builder.getI8Type()),
                                      ArrayRef<int8_t>(bytes));
    }
    auto flat = cast<DenseElementsAttr>(stored).reshape(
        RankedTensorType::get({stored.getNumElements()}, memoryType(element)));
    OpBuilder outside(target);
    std::string name = (target.getName() + ".data" + Twine(globals++)).str();
    auto type = LLVM::LLVMArrayType::get(memoryType(element), stored.getNumElements());
    auto global =
        LLVM::GlobalOp::create(outside, loc, type, true, LLVM::Linkage::Internal, name, flat, /*alignment=*/64);
    return LLVM::AddressOfOp::create(builder, loc, global);
  }

  /// The body of a generic at an iteration; `combined` is its last argument, for reductions.
  Value computeBody(linalg::GenericOp generic, ArrayRef<AffineExpr> iteration, Value combined) {
    IRMapping mapping;
    for (OpOperand *input : generic.getDpsInputOperands()) {
      BlockArgument argument = generic.getMatchingBlockArgument(input);
      if (!argument.use_empty())
        mapping.map(argument,
                    readElement(input->get(), applyMap(generic.getMatchingIndexingMap(input), iteration)));
    }
    if (combined)
      mapping.map(generic.getMatchingBlockArgument(generic.getDpsInitOperand(0)), combined);
    emitBody(*generic.getBody(), iteration, mapping);
    return mapping.lookupOrDefault(generic.getBody()->getTerminator()->getOperand(0));
  }

  void emitBody(Block &block, ArrayRef<AffineExpr> iteration, IRMapping &mapping) {
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

  /// A branch, which the vectoriser turns into loads under a mask.
  void emitChoice(scf::IfOp choice, ArrayRef<AffineExpr> iteration, IRMapping &mapping) {
    auto emitted = scf::IfOp::create(builder, loc, choice.getResultTypes(), mapping.lookup(choice.getCondition()),
                                     /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    for (auto [from, to] : llvm::zip(choice->getRegions(), emitted->getRegions())) {
      Memo outer = memo;
      builder.setInsertionPointToEnd(&to.front());
      emitBody(from.front(), iteration, mapping);
      scf::YieldOp::create(builder, loc,
                           llvm::map_to_vector(from.front().getTerminator()->getOperands(),
                                               [&](Value value) { return mapping.lookupOrDefault(value); }));
      memo = std::move(outer);
    }
    mapping.map(choice.getResults(), emitted.getResults());
  }

  /// Indices that depend on values become dims of their own.
  Value readExtracted(tensor::ExtractOp extract, ArrayRef<AffineExpr> iteration, IRMapping &mapping) {
    auto makeDim = [&](Value value) {
      dims.push_back(arith::IndexCastOp::create(builder, loc, builder.getI64Type(), mapping.lookup(value)));
      return builder.getAffineDimExpr(dims.size() - 1);
    };
    Index indices;
    for (Value value : extract.getIndices())
      indices.push_back(traceIndex(value, iteration, makeDim));
    return readElement(extract.getTensor(), indices);
  }

  //===-- Loops -------------------------------------------------------------------------------------------------===//

  /// A loop over [from, to) that carries values; the body gives the next ones.
  SmallVector<Value> loop(Value from, Value to, ValueRange carried,
                          function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    auto loop = scf::ForOp::create(builder, loc, from, to, constant(1), carried,
                                   [&](OpBuilder &nested, Location, Value iv, ValueRange args) {
                                     OpBuilder::InsertPoint outside = builder.saveInsertionPoint();
                                     builder.restoreInsertionPoint(nested.saveInsertionPoint());
                                     scf::YieldOp::create(builder, loc, body(iv, args));
                                     builder.restoreInsertionPoint(outside);
                                   });
    return llvm::to_vector(ValueRange(loop.getResults()));
  }

  /// The outer nest; inside it, all nests one after another.
  void emitRows(size_t dim) {
    if (dim == plan.rows.size())
      return emitRow();
    if (plan.rows[dim] == 1 && dim != 0) {
      rowIndices.push_back(constant(0));
      return emitRows(dim + 1);
    }
    Value from = dim == 0 ? firstRow : constant(0), to = dim == 0 ? lastRow : constant(plan.rows[dim]);
    loop(from, to, {}, [&](Value row, ValueRange) {
      rowIndices.push_back(row);
      emitRows(dim + 1);
      return SmallVector<Value>();
    });
  }

  /// Values of one element a row stay in registers; their stores come last, so that every read of a tied argument in
  /// this row precedes them.
  void emitRow() {
    Memo rowMemo;
    SmallVector<std::pair<const Nest *, Value>> pending;
    for (const Nest &nest : plan.nests) {
      bool single = plan.bytesPerRow(nest) == elementBytes(getElementTypeOrSelf(nest.value().getType()));
      bool straight = single && !nest.isReduction();
      memo = straight ? std::move(rowMemo) : Memo();
      bindLoops(nest);
      if (single) {
        Value value = straight ? computeBody(nest.op, iteration, {}) : reduceToRegister(nest, 0, start(nest));
        registers[nest.value()] = value;
        if (!nest.results.empty())
          pending.push_back({&nest, value});
      } else if (nest.isReduction() && llvm::is_contained(nest.resultLoops, nest.innermost)) {
        emitStart(nest, plan.rows.size());
        emitAccumulation(nest, loopOrder(nest), 0);
      } else {
        emitElements(nest, plan.rows.size());
      }
      if (straight)
        rowMemo = std::move(memo);
    }
    for (auto &[nest, value] : pending) {
      bindLoops(*nest);
      storeElement(*nest, value);
    }
  }

  /// Row loops of the nest get the rows' indices; the others are set as their loops are opened.
  void bindLoops(const Nest &nest) {
    linalg::GenericOp op = nest.op;
    iteration.clear();
    for (auto [position, size] : llvm::enumerate(op.getStaticLoopRanges()))
      iteration.push_back(size == 1 ? builder.getAffineConstantExpr(0) : builder.getAffineDimExpr(position));
    for (size_t dim = 0; dim < plan.rows.size(); ++dim)
      dims[nest.resultLoops[dim]] = rowIndices[dim];
  }

  /// Opens the loop `position` of the nest around `body`; nothing to open for size 1.
  SmallVector<Value> open(const Nest &nest, unsigned position, ValueRange carried,
                          function_ref<SmallVector<Value>(ValueRange)> body) {
    linalg::GenericOp op = nest.op;
    int64_t size = op.getStaticLoopRanges()[position];
    if (size == 1)
      return body(carried);
    return loop(constant(0), constant(size), carried, [&](Value iv, ValueRange args) {
      dims[position] = iv;
      Memo outer = memo;
      SmallVector<Value> next = body(args);
      memo = std::move(outer);
      return next;
    });
  }

  /// What a reduction begins with, at the current result index.
  Value start(const Nest &nest) {
    linalg::GenericOp op = nest.op;
    OpOperand *init = op.getDpsInitOperand(0);
    return readElement(init->get(), applyMap(op.getMatchingIndexingMap(init), iteration));
  }

  /// The reduced loops from `number` on, with the value in a register.
  Value reduceToRegister(const Nest &nest, size_t number, Value value) {
    if (number == nest.reducedLoops.size())
      return computeBody(nest.op, iteration, value);
    return open(nest, nest.reducedLoops[number], value, [&](ValueRange carried) {
      return SmallVector<Value>{reduceToRegister(nest, number + 1, carried[0])};
    })[0];
  }

  /// The result's loops from `dim` on, the element in the middle.
  void emitElements(const Nest &nest, size_t dim) {
    if (dim == nest.resultLoops.size()) {
      storeElement(nest, nest.isReduction() ? reduceToRegister(nest, 0, start(nest))
                                            : computeBody(nest.op, iteration, {}));
      return;
    }
    open(nest, nest.resultLoops[dim], {}, [&](ValueRange) {
      emitElements(nest, dim + 1);
      return SmallVector<Value>();
    });
  }

  void emitStart(const Nest &nest, size_t dim) {
    if (dim == nest.resultLoops.size())
      return storeElement(nest, start(nest));
    open(nest, nest.resultLoops[dim], {}, [&](ValueRange) {
      emitStart(nest, dim + 1);
      return SmallVector<Value>();
    });
  }

  /// Reduced loops outside, the result's inside, the innermost one last.
  SmallVector<unsigned> loopOrder(const Nest &nest) {
    SmallVector<unsigned> order;
    for (unsigned position : ArrayRef(nest.resultLoops).drop_front(plan.rows.size()))
      if (position != nest.innermost && position < nest.innermost)
        order.push_back(position);
    llvm::append_range(order, nest.reducedLoops);
    for (unsigned position : ArrayRef(nest.resultLoops).drop_front(plan.rows.size()))
      if (position > nest.innermost)
        order.push_back(position);
    order.push_back(nest.innermost);
    return order;
  }

  /// Adds to the elements in memory.
  void emitAccumulation(const Nest &nest, ArrayRef<unsigned> order, size_t number) {
    if (number == order.size()) {
      auto [base, address] = resultElement(nest);
      Value before = load(base, getElementTypeOrSelf(nest.value().getType()), address);
      store(computeBody(nest.op, iteration, before), base, address);
      return;
    }
    open(nest, order[number], {}, [&](ValueRange) {
      emitAccumulation(nest, order, number + 1);
      return SmallVector<Value>();
    });
  }

  std::pair<Value, Value> resultElement(const Nest &nest) {
    Index index;
    for (unsigned position : nest.resultLoops)
      index.push_back(iteration[position]);
    if (nest.place != Place::Result)
      return {baseOf(nest), expand(simplify(addressInRow(nest, index)))};
    AffineExpr address = linearize(index, shapeOf(nest.value()), builder.getContext());
    return {pointer(buffers.results[nest.results.front()]), expand(simplify(address))};
  }

  void storeElement(const Nest &nest, Value value) {
    auto [base, address] = resultElement(nest);
    store(value, base, address);
  }

  func::FuncOp function;
  const KernelPlan &plan;
  const KernelBuffers &buffers;
  OpBuilder builder;
  Location loc;
  LLVM::LLVMFuncOp target;
  Value firstRow, lastRow;
  SmallVector<Value> rowIndices;
  DenseMap<Value, Value> immediates, stack, registers;
  unsigned globals = 0;
  /// Values of dims: at first the loops of the nest that is being emitted, from maxLoops on indices known when running,
  /// of all nests, so that no two of them are confused.
  SmallVector<Value> dims;
  /// Of the nest that is being emitted: its iteration, and the elements known so far.
  Index iteration;
  Memo memo;
};

} // namespace

/// The private function: a pointer an operand, an i64 an immediate, and the bounds of the first row dim.
static LLVM::LLVMFuncOp declareBody(func::FuncOp function, const KernelBuffers &buffers, StringRef symbol) {
  OpBuilder builder(function);
  unsigned immediates = llvm::count_if(function.getArgumentTypes(), [](Type type) { return type.isInteger(64); });
  SmallVector<Type> types(buffers.count, LLVM::LLVMPointerType::get(builder.getContext()));
  types.append(immediates + 2, builder.getI64Type());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), types);
  auto body = LLVM::LLVMFuncOp::create(builder, function.getLoc(), (symbol + ".body").str(), type,
                                       LLVM::Linkage::Internal);
  body.setNoInline(true);
  for (unsigned operand = 0; operand < buffers.count; ++operand)
    body.setArgAttr(operand, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
  return body;
}

/// The exported function: loads what the ABI passes in arrays, and makes rows of tiles.
static void emitEntry(LLVM::LLVMFuncOp body, const KernelPlan &plan, const KernelBuffers &buffers, StringRef symbol) {
  OpBuilder builder(body->getContext());
  builder.setInsertionPointAfter(body);
  Location loc = body.getLoc();
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext()), i32 = builder.getI32Type(),
       i64 = builder.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), {pointer, pointer, i32, i32});
  auto entry = LLVM::LLVMFuncOp::create(builder, loc, symbol, type);
  builder.setInsertionPointToStart(entry.addEntryBlock(builder));
  SmallVector<Value> arguments;
  auto loadEach = [&](Value array, Type element, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      arguments.push_back(LLVM::LoadOp::create(
          builder, loc, element,
          LLVM::GEPOp::create(builder, loc, pointer, element, array, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)})));
  };
  loadEach(entry.getArgument(0), pointer, buffers.count);
  loadEach(entry.getArgument(1), i64, body.getNumArguments() - buffers.count - 2);
  auto constant = [&](int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
  };
  for (unsigned tile : {2, 3}) {
    Value wide = arith::ExtUIOp::create(builder, loc, i64, entry.getArgument(tile));
    Value row = arith::MulIOp::create(builder, loc, wide, constant(plan.tileRows));
    arguments.push_back(
        arith::MinSIOp::create(builder, loc, row, constant(plan.rows.empty() ? 1 : plan.rows.front())));
  }
  LLVM::CallOp::create(builder, loc, body, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
}

void emitLoops(func::FuncOp function, const KernelPlan &plan, const KernelBuffers &buffers, StringRef symbol) {
  LLVM::LLVMFuncOp body = declareBody(function, buffers, symbol);
  LoopEmitter(function, plan, buffers, body).emit();
  emitEntry(body, plan, buffers, symbol);
}

} // namespace par::cpu
