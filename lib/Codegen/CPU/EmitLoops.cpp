#include "EmitLoops.h"

#include "ElementEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace par::cpu {
namespace {

/// Emits the loops of one kernel into a function whose arguments are the operands' pointers, the immediates
/// and the bounds of the first row dim.
class LoopEmitter {
public:
  LoopEmitter(func::FuncOp function, const KernelPlan &plan, const KernelBuffers &buffers,
              LLVM::LLVMFuncOp target)
      : plan(plan), buffers(buffers), target(target), elements(function, plan, buffers, target) {}

  void emit() {
    elements.builder.setInsertionPointToStart(target.addEntryBlock(elements.builder));
    elements.bindImmediates();
    elements.allocateStack();
    firstRow = target.getArgument(target.getNumArguments() - 2);
    lastRow = target.getArgument(target.getNumArguments() - 1);
    emitRows(0);
    LLVM::ReturnOp::create(elements.builder, elements.loc, ValueRange());
  }

private:
  /// A loop over [from, to) that carries values; the body gives the next ones.
  SmallVector<Value> loop(Value from, Value to, ValueRange carried,
                          function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    auto loop = scf::ForOp::create(elements.builder, elements.loc, from, to, elements.constant(1), carried,
                                   [&](OpBuilder &nested, Location, Value iv, ValueRange args) {
                                     OpBuilder::InsertPoint outside = elements.builder.saveInsertionPoint();
                                     elements.builder.restoreInsertionPoint(nested.saveInsertionPoint());
                                     scf::YieldOp::create(elements.builder, elements.loc, body(iv, args));
                                     elements.builder.restoreInsertionPoint(outside);
                                   });
    return llvm::to_vector(ValueRange(loop.getResults()));
  }

  /// The outer nest; inside it, all nests one after another.
  void emitRows(size_t dim) {
    if (dim == plan.rows.size())
      return emitRow();
    bool tiled = dim == plan.tileLoop;
    if (plan.rowLoops[dim] == 1 && !tiled) {
      rowIndices.push_back(elements.constant(0));
      return emitRows(dim + 1);
    }
    Value from = tiled ? firstRow : elements.constant(0),
          to = tiled ? lastRow : elements.constant(plan.rowLoops[dim]);
    loop(from, to, {}, [&](Value row, ValueRange) {
      rowIndices.push_back(row);
      emitRows(dim + 1);
      return SmallVector<Value>();
    });
  }

  /// Values of one element a row stay in elements.registers; their stores come last, so that every read of a
  /// tied argument in this row precedes them.
  void emitRow() {
    ElementEmitter::Memo rowMemo;
    SmallVector<std::pair<const Nest *, Value>> pending;
    for (const Nest &nest : plan.nests) {
      bool single = plan.bytesPerRow(nest) == elementBytes(getElementTypeOrSelf(nest.value().getType()));
      bool straight = single && !nest.isReduction();
      // What one nest knows of an index is right for the next if the same loops are rows in both.
      bool shares = straight && hasRowsInOrder(nest);
      elements.memo = shares ? std::move(rowMemo) : ElementEmitter::Memo();
      bindLoops(nest);
      if (single) {
        Value value =
            straight ? elements.computeBody(nest.op, iteration, {}) : reduceToRegister(nest, 0, start(nest));
        elements.registers[nest.value()] = value;
        if (!nest.results.empty())
          pending.push_back({&nest, value});
      } else if (nest.isReduction() && llvm::is_contained(nest.resultLoops, nest.innermost)) {
        emitStart(nest, 0);
        emitAccumulation(nest, loopOrder(nest), 0);
      } else {
        emitElements(nest, 0);
      }
      if (shares)
        rowMemo = std::move(elements.memo);
    }
    for (auto &[nest, value] : pending) {
      bindLoops(*nest);
      storeElement(*nest, value);
    }
  }

  bool hasRowsInOrder(const Nest &nest) {
    for (size_t row = 0; row < plan.rows.size(); ++row)
      if (nest.rowLoop(row) != row)
        return false;
    return true;
  }

  /// Row loops of the nest get the rows' indices; the others are set as their loops are opened.
  void bindLoops(const Nest &nest) {
    iteration.clear();
    for (auto [position, size] : llvm::enumerate(nest.loops))
      iteration.push_back(size == 1 ? elements.builder.getAffineConstantExpr(0)
                                    : elements.builder.getAffineDimExpr(position));
    for (size_t dim = 0; dim < plan.rows.size(); ++dim)
      elements.dims[nest.rowLoop(dim)] = rowIndices[dim];
  }

  /// Opens the loop `position` of the nest around `body`; nothing to open for size 1.
  SmallVector<Value> open(const Nest &nest, unsigned position, ValueRange carried,
                          function_ref<SmallVector<Value>(ValueRange)> body) {
    int64_t size = nest.loops[position];
    if (size == 1)
      return body(carried);
    return loop(elements.constant(0), elements.constant(size), carried, [&](Value iv, ValueRange args) {
      elements.dims[position] = iv;
      ElementEmitter::Memo outer = elements.memo;
      SmallVector<Value> next = body(args);
      elements.memo = std::move(outer);
      return next;
    });
  }

  /// What a reduction begins with, at the current result index.
  Value start(const Nest &nest) {
    linalg::GenericOp op = nest.op;
    OpOperand *init = op.getDpsInitOperand(0);
    return elements.readElement(init->get(), applyMap(op.getMatchingIndexingMap(init), iteration));
  }

  /// The reduced loops from `number` on, with the value in a register.
  Value reduceToRegister(const Nest &nest, size_t number, Value value) {
    if (number == nest.reducedLoops.size())
      return elements.computeBody(nest.op, iteration, value);
    return open(nest, nest.reducedLoops[number], value, [&](ValueRange carried) {
      return SmallVector<Value>{reduceToRegister(nest, number + 1, carried[0])};
    })[0];
  }

  /// The result's loops from free loop `number` on, the element in the middle.
  void emitElements(const Nest &nest, size_t number) {
    SmallVector<unsigned> free = nest.freeLoops();
    if (number == free.size()) {
      storeElement(nest, nest.isReduction() ? reduceToRegister(nest, 0, start(nest))
                                            : elements.computeBody(nest.op, iteration, {}));
      return;
    }
    open(nest, free[number], {}, [&](ValueRange) {
      emitElements(nest, number + 1);
      return SmallVector<Value>();
    });
  }

  void emitStart(const Nest &nest, size_t number) {
    SmallVector<unsigned> free = nest.freeLoops();
    if (number == free.size())
      return storeElement(nest, start(nest));
    open(nest, free[number], {}, [&](ValueRange) {
      emitStart(nest, number + 1);
      return SmallVector<Value>();
    });
  }

  /// Reduced loops outside, the result's inside, the innermost one last.
  SmallVector<unsigned> loopOrder(const Nest &nest) {
    SmallVector<unsigned> order;
    for (unsigned position : nest.freeLoops())
      if (position < nest.innermost)
        order.push_back(position);
    llvm::append_range(order, nest.reducedLoops);
    for (unsigned position : nest.freeLoops())
      if (position > nest.innermost)
        order.push_back(position);
    order.push_back(nest.innermost);
    return order;
  }

  /// Adds to the elements in memory.
  void emitAccumulation(const Nest &nest, ArrayRef<unsigned> order, size_t number) {
    if (number == order.size()) {
      auto [base, address] = resultElement(nest);
      Value before = elements.load(base, getElementTypeOrSelf(nest.value().getType()), address);
      elements.store(elements.computeBody(nest.op, iteration, before), base, address);
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
      return {elements.baseOf(nest), elements.expand(elements.simplify(nest.addressInRow(index)))};
    AffineExpr address = linearize(index, shapeOf(nest.value()), elements.builder.getContext());
    return {elements.pointer(buffers.results[nest.results.front()]),
            elements.expand(elements.simplify(address))};
  }

  void storeElement(const Nest &nest, Value value) {
    auto [base, address] = resultElement(nest);
    elements.store(value, base, address);
  }

  const KernelPlan &plan;
  const KernelBuffers &buffers;
  LLVM::LLVMFuncOp target;
  ElementEmitter elements;
  Value firstRow, lastRow;
  SmallVector<Value> rowIndices;
  /// Of the nest that is being emitted.
  Index iteration;
};

} // namespace

/// The private function: a pointer an operand, an i64 an immediate, and the bounds of the first row dim.
static LLVM::LLVMFuncOp declareBody(func::FuncOp function, const KernelBuffers &buffers, StringRef symbol) {
  OpBuilder builder(function);
  unsigned immediates =
      llvm::count_if(function.getArgumentTypes(), [](Type type) { return type.isInteger(64); });
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
static void emitEntry(LLVM::LLVMFuncOp body, const KernelPlan &plan, const KernelBuffers &buffers,
                      StringRef symbol) {
  OpBuilder builder(body->getContext());
  builder.setInsertionPointAfter(body);
  Location loc = body.getLoc();
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext()), i32 = builder.getI32Type(),
       i64 = builder.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()),
                                          {pointer, pointer, i32, i32});
  auto entry = LLVM::LLVMFuncOp::create(builder, loc, symbol, type);
  builder.setInsertionPointToStart(entry.addEntryBlock(builder));
  SmallVector<Value> arguments;
  auto loadEach = [&](Value array, Type element, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      arguments.push_back(
          LLVM::LoadOp::create(builder, loc, element,
                               LLVM::GEPOp::create(builder, loc, pointer, element, array,
                                                   ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)})));
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
        arith::MinSIOp::create(builder, loc, row, constant(plan.rows.empty() ? 1 : plan.rowLoops[plan.tileLoop])));
  }
  LLVM::CallOp::create(builder, loc, body, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
}

void emitLoops(func::FuncOp function, const KernelPlan &plan, const KernelBuffers &buffers,
               StringRef symbol) {
  LLVM::LLVMFuncOp body = declareBody(function, buffers, symbol);
  LoopEmitter(function, plan, buffers, body).emit();
  emitEntry(body, plan, buffers, symbol);
}

} // namespace par::cpu
