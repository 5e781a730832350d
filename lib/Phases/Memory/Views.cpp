#include "Views.h"

using namespace mlir;

namespace par {

/// The kernel that an op launches; null if it is no launch.
static KernelOp kernelOf(Operation *op, const SymbolTable &kernels) {
  auto launch = dyn_cast<LaunchOp>(op);
  return launch ? cast<KernelOp>(kernels.lookup(launch.getKernelAttr().getAttr())) : KernelOp();
}

/// A slice of the elements that come first in memory.
static bool isFront(SliceOp slice) {
  bool single = true; // one element of each dim so far
  ArrayRef<int64_t> shape = getTensorType(slice.getOperand().getType()).getShape();
  for (auto [size, start, limit, stride] : llvm::zip(shape, slice.getStarts(), slice.getLimits(), slice.getStrides())) {
    if (start != 0 || stride != 1 || (limit != size && !single))
      return false;
    single &= limit == 1;
  }
  return true;
}

bool isView(Operation *op, const SymbolTable &kernels) {
  KernelOp kernel = kernelOf(op, kernels);
  return kernel && op->getNumOperands() == 1 && op->getNumResults() == 1 &&
         llvm::all_of(kernel.getBlock().without_terminator(), [](Operation &inner) {
           auto slice = dyn_cast<SliceOp>(inner);
           return slice ? isFront(slice) : isa<ReshapeOp>(inner);
         });
}

bool isFill(Operation *op, const SymbolTable &kernels) {
  KernelOp kernel = kernelOf(op, kernels);
  return kernel && kernel.getImplementation() == "fill";
}

/// The type of a buffer of state with as many rows as a value has of which it holds the first; null if it is no such
/// buffer.
static RankedTensorType grownTo(BufferOp buffer, Value rows) {
  auto dist = buffer.getDist() ? cast<DistType>(*buffer.getDist()) : DistType();
  RankedTensorType held = buffer.getTensorType(), more = getTensorType(rows.getType());
  // Shards of a state whose rows are sharded already begin at multiples of their size.
  if (buffer.getKind() != BufferKind::state || !dist || held.getRank() == 0 || more.getRank() != held.getRank() ||
      more.getDimSize(0) <= dist.getTensor().getDimSize(0) || held.getDimSize(0) != dist.getTensor().getDimSize(0) ||
      more.getShape().drop_front() != held.getShape().drop_front())
    return {};
  return more;
}

/// The buffer of state that the launch fills up, or stores the first rows of its operand to, and the value with these
/// rows.
static std::pair<BufferOp, Value> findRows(LaunchOp launch, const SymbolTable &names, const SymbolTable &kernels) {
  if (isFill(launch, kernels)) {
    auto load = launch.getOperand(0).getDefiningOp<LoadOp>();
    return {load ? names.lookup<BufferOp>(load.getBuffer()) : BufferOp(), launch.getResult(0)};
  }
  if (isView(launch, kernels))
    for (Operation *user : launch->getUsers())
      if (auto store = dyn_cast<StoreOp>(user))
        return {names.lookup<BufferOp>(store.getBuffer()), launch.getOperand(0)};
  return {};
}

llvm::DenseSet<Operation *> growBuffersOfState(ModuleOp module, const SymbolTable &kernels) {
  llvm::StringMap<RankedTensorType> wanted; // by variable: all programs hold it alike
  SymbolTable variables(module);
  auto isWritten = [&](BufferOp buffer) { // no op writes a constant, not even zeros after its rows
    auto variable = variables.lookup<VariableOp>(*buffer.getOf());
    return !variable || variable.getKind() != VariableKind::constant;
  };
  for (ProgramOp program : module.getOps<ProgramOp>()) {
    SymbolTable names(program);
    program.walk([&](LaunchOp launch) {
      auto [buffer, rows] = findRows(launch, names, kernels);
      RankedTensorType type =
          buffer && buffer.getOf() && isWritten(buffer) ? grownTo(buffer, rows) : RankedTensorType();
      RankedTensorType &known = type ? wanted[*buffer.getOf()] : type;
      if (type && (!known || known.getDimSize(0) < type.getDimSize(0)))
        known = type;
    });
  }
  llvm::DenseSet<Operation *> grown;
  for (ProgramOp program : module.getOps<ProgramOp>())
    for (BufferOp buffer : program.getOps<BufferOp>())
      if (RankedTensorType type = buffer.getOf() ? wanted.lookup(*buffer.getOf()) : RankedTensorType();
          type && buffer.getKind() == BufferKind::state) {
        buffer.setTypeAttr(TypeAttr::get(type));
        grown.insert(buffer);
      }
  return grown;
}

} // namespace par
