#include "LowerBody.h"

#include "par/Dialect/Interfaces/Decomposable.h"
#include "par/Dialect/Interfaces/Lowerable.h"
#include "par/Dialect/Lower.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace par {

void loadLoweringDialects(MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect, LLVM::LLVMDialect,
                      math::MathDialect, scf::SCFDialect, tensor::TensorDialect>();
}

static constexpr StringLiteral keyMark = "par.key";

int64_t valueOfKey(ConstantOp key) {
  return cast<DenseElementsAttr>(key.getValue()).getSplatValue<APInt>().getSExtValue();
}

SmallVector<ConstantOp> keysOf(KernelOp kernel) {
  SmallVector<ConstantOp> keys;
  for (ConstantOp constant : kernel.getBody().front().getOps<ConstantOp>()) {
    auto type = cast<RankedTensorType>(constant.getType());
    if (type.getRank() == 0 && type.getElementType().isInteger(64) && isa<DenseElementsAttr>(constant.getValue()) &&
        !llvm::isInt<33>(valueOfKey(constant)))
      keys.push_back(constant);
  }
  return keys;
}

/// Takes composites apart until every op has a lowering or is refused.
static void expandComposites(KernelOp kernel) {
  bool changed = true;
  while (changed) {
    SmallVector<DecomposableOpInterface> composites;
    kernel.getBody().walk([&](DecomposableOpInterface op) {
      if (!isa<LowerableOpInterface>(op.getOperation()))
        composites.push_back(op);
    });
    changed = !composites.empty();
    for (DecomposableOpInterface op : composites) {
      OpBuilder builder(op);
      SmallVector<Value> values = op.decompose(builder);
      op->replaceAllUsesWith(values);
      op->erase();
    }
  }
}

/// One i64 argument for every axis; their sum as a scalar tensor (ImmediateInfo says why this is the index).
static Value lowerAxisIndex(AxisIndexOp op, func::FuncOp function, OpBuilder &builder,
                            std::vector<ImmediateInfo> &immediates) {
  ImmediateInfo info;
  for (StringAttr axis : getAxes(op.getAxes()))
    info.axes.push_back(axis.str());
  Value sum;
  for (unsigned which = 0; which < info.axes.size(); ++which) {
    info.which = which;
    auto known = llvm::find_if(
        immediates, [&](const ImmediateInfo &other) { return other.axes == info.axes && other.which == which; });
    unsigned firstImmediate = function.getNumArguments() - immediates.size(), position = known - immediates.begin();
    if (known == immediates.end()) {
      immediates.push_back(info);
      (void)function.insertArgument(function.getNumArguments(), builder.getI64Type(), {}, op.getLoc());
    }
    Value part = function.getArgument(firstImmediate + position);
    sum = sum ? arith::AddIOp::create(builder, op.getLoc(), sum, part).getResult() : part;
  }
  if (!sum)
    sum = arith::ConstantOp::create(builder, op.getLoc(), builder.getI64IntegerAttr(0));
  return tensor::FromElementsOp::create(builder, op.getLoc(), op.getResult().getType(), sum);
}

/// A scalar tensor of an argument of its own.
static Value lowerKey(ConstantOp key, func::FuncOp function, OpBuilder &builder,
                      std::vector<ImmediateInfo> &immediates) {
  immediates.push_back({{}, 0, valueOfKey(key)});
  (void)function.insertArgument(function.getNumArguments(), builder.getI64Type(), {}, key.getLoc());
  return tensor::FromElementsOp::create(builder, key.getLoc(), key.getType(), function.getArguments().back());
}

FailureOr<func::FuncOp> lowerBody(KernelOp kernel, ModuleOp module, std::vector<ImmediateInfo> &immediates) {
  OwningOpRef<KernelOp> expanded(kernel.clone());
  for (ConstantOp key : keysOf(*expanded)) // keys of the kernel itself, not of decomposed composites
    key->setDiscardableAttr(keyMark, UnitAttr::get(key.getContext()));
  expandComposites(*expanded);

  auto builder = OpBuilder::atBlockEnd(module.getBody());
  auto function = func::FuncOp::create(builder, kernel.getLoc(), kernel.getSymName(), kernel.getFunctionType());
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  IRMapping mapping;
  mapping.map(expanded->getBody().getArguments(), entry->getArguments());
  for (Operation &op : expanded->getBody().front()) {
    SmallVector<Value> operands = llvm::map_to_vector(op.getOperands(), [&](Value v) { return mapping.lookup(v); });
    if (isa<ReturnOp>(op)) {
      func::ReturnOp::create(builder, op.getLoc(), operands);
      continue;
    }
    if (auto index = dyn_cast<AxisIndexOp>(op)) {
      mapping.map(index.getResult(), lowerAxisIndex(index, function, builder, immediates));
      continue;
    }
    if (op.hasAttr(keyMark)) {
      mapping.map(op.getResult(0), lowerKey(cast<ConstantOp>(op), function, builder, immediates));
      continue;
    }
    auto lowerable = dyn_cast<LowerableOpInterface>(op);
    if (!lowerable)
      return op.emitOpError() << "in kernel @" << kernel.getSymName() << " has no lowering: not supported yet";
    Lowered values = lowerable.lower(builder, operands);
    if (failed(values))
      return failure();
    mapping.map(op.getResults(), *values);
  }
  return function;
}

} // namespace par
