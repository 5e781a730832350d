// Emits a kernel for a CPU: an exported function that unpacks the ABI's arrays and splits the rows into tiles, and a
// private one with the loops over one tile's rows.
#include "EmitLoops.h"

#include "../RowEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace par::cpu {

using namespace codegen;

namespace {

/// Emits the loops of one kernel into a function whose arguments are the operands' pointers, the immediates
/// and the bounds of the first row dim.
class LoopEmitter {
public:
  LoopEmitter(func::FuncOp function, const KernelPlan &plan, const KernelBuffers &buffers, LLVM::LLVMFuncOp target)
      : plan(plan), target(target), row(function, plan, buffers, target) {}

  void emit() {
    across = plan.rowsAcross();
    ElementEmitter &elements = row.elements;
    elements.builder.setInsertionPointToStart(target.addEntryBlock(elements.builder));
    elements.bindImmediates();
    elements.allocateStack();
    emitRows(0);
    LLVM::ReturnOp::create(elements.builder, elements.loc, ValueRange());
  }

private:
  /// The outer nest; inside it, all nests one after another.
  void emitRows(size_t dim) {
    if (dim == plan.rows.size())
      return row.emitRow();
    bool tiled = dim == plan.tileLoop;
    ElementEmitter &elements = row.elements;
    if (plan.rowLoops[dim] == 1 && !tiled) {
      row.rowIndices.push_back(elements.constant(0));
      return emitRows(dim + 1);
    }
    unsigned bounds = target.getNumArguments() - 2;
    Value from = tiled ? Value(target.getArgument(bounds)) : elements.constant(0),
          to = tiled ? Value(target.getArgument(bounds + 1)) : elements.constant(plan.rowLoops[dim]);
    if (across && dim == *across)
      return emitSquares(dim, from, to, !tiled && plan.rowLoops[dim] % KernelPlan::square == 0);
    if (across && dim + 1 == plan.rows.size())
      return emitSquare(from, to, plan.rowLoops[dim] % KernelPlan::square == 0);
    if (dim + 1 == plan.rows.size() && plan.rowsShareReads())
      from = emitBlocks(from, to);
    row.loop(from, to, elements.constant(1), {}, [&](Value index, ValueRange) {
      row.rowIndices.push_back(index);
      emitRows(dim + 1);
      row.rowIndices.pop_back();
      return SmallVector<Value>();
    });
  }

  /// Parts of the row loop `dim`; its indices come within those of the last one.
  void emitSquares(size_t dim, Value from, Value to, bool whole) {
    row.openParts(from, to, whole, [&](Value begin, Value end) {
      top = begin;
      bottom = end;
      row.rowIndices.push_back(begin);
      emitRows(dim + 1);
      row.rowIndices.pop_back();
    });
  }
  void emitSquare(Value from, Value to, bool whole) {
    Value one = row.elements.constant(1);
    row.openParts(from, to, whole, [&](Value left, Value right) {
      row.loop(top, bottom, one, {}, [&](Value outer, ValueRange) {
        row.rowIndices[*across] = outer;
        row.loop(left, right, one, {}, [&](Value inner, ValueRange) {
          row.rowIndices.push_back(inner);
          row.emitRow();
          row.rowIndices.pop_back();
          return SmallVector<Value>();
        });
        return SmallVector<Value>();
      });
    });
  }

  /// Emits rows in blocks that load their shared operand once; returns the first remaining row.
  Value emitBlocks(Value from, Value to) {
    ElementEmitter &elements = row.elements;
    Value rows = arith::SubIOp::create(elements.builder, elements.loc, to, from),
          size = elements.constant(KernelPlan::blockRows);
    Value left = arith::RemSIOp::create(elements.builder, elements.loc, rows, size);
    Value end = arith::SubIOp::create(elements.builder, elements.loc, to, left);
    row.loop(from, end, size, {}, [&](Value index, ValueRange) {
      SmallVector<Value> indices;
      for (int64_t i = 0; i < KernelPlan::blockRows; ++i)
        indices.push_back(arith::AddIOp::create(elements.builder, elements.loc, index, elements.constant(i)));
      row.emitRowsTogether(indices);
      return SmallVector<Value>();
    });
    return end;
  }

  const KernelPlan &plan;
  LLVM::LLVMFuncOp target;
  RowEmitter row;
  /// The row loop that goes in squares with the last one, and the bounds of its part.
  std::optional<size_t> across;
  Value top, bottom;
};

} // namespace

/// The private function: a pointer an operand, an i64 an immediate, and the bounds of the first row dim.
static LLVM::LLVMFuncOp declareBody(func::FuncOp function, const KernelBuffers &buffers, StringRef symbol) {
  OpBuilder builder(function);
  unsigned immediates = llvm::count_if(function.getArgumentTypes(), [](Type type) { return type.isInteger(64); });
  SmallVector<Type> types(buffers.count, LLVM::LLVMPointerType::get(builder.getContext()));
  types.append(immediates + 2, builder.getI64Type());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), types);
  auto body =
      LLVM::LLVMFuncOp::create(builder, function.getLoc(), (symbol + ".body").str(), type, LLVM::Linkage::Internal);
  body.setNoInline(true);
  for (unsigned operand = 0; operand < buffers.count; ++operand)
    body.setArgAttr(operand, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
  return body;
}

/// The exported function: loads arguments from the ABI's arrays, and makes rows of tiles.
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
        arith::MinSIOp::create(builder, loc, row, constant(plan.rows.empty() ? 1 : plan.rowLoops[plan.tileLoop])));
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
