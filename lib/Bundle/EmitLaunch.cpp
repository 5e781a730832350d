#include "EmitProgram.h"
#include "par/Memory/Arena.h"

using namespace mlir;

namespace par {

static format::Access accessOf(OperandAccess access) {
  if (access == OperandAccess::ReadWrite)
    return format::Access::ReadWrite;
  return access == OperandAccess::Read ? format::Access::Read : format::Access::Write;
}

/// Values of a launch in the order in which a kernel's code takes them: arguments, then results of their own.
static SmallVector<Value> orderedValues(LaunchOp launch, KernelOp kernel) {
  SmallVector<Value> values(launch.getOperands());
  for (OpResult result : launch->getResults())
    if (!kernel.getTied() || (*kernel.getTied())[result.getResultNumber()] < 0)
      values.push_back(result);
  return values;
}

/// A result that is tied must lie where its operand lies: the code writes there.
static LogicalResult checkTied(LaunchOp launch, KernelOp kernel) {
  if (!kernel.getTied())
    return success();
  for (auto [result, argument] : llvm::zip(launch.getResults(), *kernel.getTied()))
    if (argument >= 0 && getBuffer(result) != getBuffer(launch.getOperands()[argument]))
      return launch.emitError() << "puts a result that takes over operand " << argument
                                << " into another buffer; Memory must give both one";
  return success();
}

/// An immediate is the coordinate on one axis, times the sizes of the axes behind it.
static format::Imm immediateOf(const ImmediateInfo &info, MeshAttr mesh) {
  format::Imm imm;
  imm.axis = info.axes[info.which];
  for (StringRef behind : llvm::drop_begin(info.axes, info.which + 1))
    imm.scale *= mesh.getSize(StringAttr::get(mesh.getContext(), behind));
  return imm;
}

LogicalResult ProgramEmitter::emitGenerated(LaunchOp launch, KernelOp kernel) {
  const KernelInfo *info = tables.generated.lookup(kernel.getSymName());
  if (!info)
    return launch.emitError() << "launches @" << kernel.getSymName() << ", which Codegen has not compiled";
  auto [index, fresh] = kernels.try_emplace(info->symbol, out.kernels.size());
  SmallVector<Value> values = orderedValues(launch, kernel);
  if (values.size() + (info->scratchBytes > 0) != info->operands.size())
    return launch.emitError() << "has " << values.size() << " values for the " << info->operands.size()
                              << " operands of the code of @" << kernel.getSymName();
  if (fresh) {
    format::Kernel made;
    made.name = made.symbol = info->symbol;
    made.tiles = info->tiles;
    made.imms = info->immediates.size();
    for (const OperandInfo &operand : info->operands)
      made.operands.push_back({accessOf(operand.access), std::max<uint64_t>(operand.bytes, 1)});
    out.kernels.push_back(std::move(made));
  }
  uint32_t own = info->scratchBytes ? scratch(info->scratchBytes) : 0;
  auto stage = tables.module.lookupSymbol<StageOp>(program.getStage());
  format::Instruction &it = append(launch, format::Op::Kernel);
  it.kernel = index->second;
  for (auto [value, operand] : llvm::zip(values, info->operands))
    it.operands.push_back(this->operand(accessOf(operand.access), getBuffer(value)));
  if (info->scratchBytes)
    it.operands.push_back({format::Access::Write, own, {}});
  for (const ImmediateInfo &immediate : info->immediates)
    it.imms.push_back(immediateOf(immediate, stage.getMesh()));
  return success();
}

LogicalResult ProgramEmitter::emitMatmul(LaunchOp launch, KernelOp kernel) {
  return launch.emitError() << "launches @" << kernel.getSymName() << ", a product of the library: not supported yet";
}

LogicalResult ProgramEmitter::emitBuiltin(LaunchOp launch, KernelOp kernel) {
  return launch.emitError() << "launches @" << kernel.getSymName() << ", a " << kernel.getImplementation()
                            << ": kernels of the runtime are not supported yet";
}

LogicalResult ProgramEmitter::emitLaunch(LaunchOp launch) {
  auto kernel = tables.module.lookupSymbol<KernelOp>(launch.getKernel());
  if (failed(checkTied(launch, kernel)))
    return failure();
  StringRef implementation = kernel.getImplementation();
  if (implementation == "generated")
    return emitGenerated(launch, kernel);
  if (implementation == "library:matmul")
    return emitMatmul(launch, kernel);
  if (implementation.starts_with("builtin:"))
    return emitBuiltin(launch, kernel);
  return kernel.emitError() << "has the unknown implementation \"" << implementation << "\"";
}

} // namespace par
