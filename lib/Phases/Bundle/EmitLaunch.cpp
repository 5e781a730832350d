// Emits kernel launches: operands in the order of the kernel's ABI, immediates as numbers or rank coordinates, and by
// implementation the generated code, the GEMM call or the builtin with its sizes.
#include "EmitProgram.h"
#include "KernelDependences.h"
#include "Layouts.h"
#include "par/Phases/Kernels/Builtin.h"
#include "par/Phases/Kernels/Matmul.h"

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

/// An immediate is a number, or the coordinate on one axis times the sizes of the axes after it.
static format::Imm immediateOf(const ImmediateInfo &info, MeshAttr mesh) {
  format::Imm imm;
  if (info.axes.empty()) {
    imm.value = info.number;
    return imm;
  }
  imm.axis = info.axes[info.which];
  for (StringRef behind : llvm::drop_begin(info.axes, info.which + 1))
    imm.scale *= mesh.getSize(StringAttr::get(mesh.getContext(), behind));
  return imm;
}

/// Immediates of coordinates on some axes; numbers are the same on all ranks.
static std::vector<uint32_t> immediatesOf(const KernelInfo &info, const ResultDependence &result) {
  std::vector<uint32_t> imms;
  for (auto [number, immediate] : llvm::enumerate(info.immediates))
    for (ArrayAttr axes : result.coordinates)
      if (llvm::equal(axes.getAsValueRange<StringAttr>(), immediate.axes) && (imms.empty() || imms.back() != number))
        imms.push_back(number);
  return imms;
}

/// For each written operand of generated code, the operands on which it depends; empty if each depends on all.
static std::vector<format::Dependence> dependencesOf(KernelOp kernel, const KernelInfo &info,
                                                     const format::Kernel &made) {
  SmallVector<ResultDependence> results = dependencesOf(kernel);
  unsigned arguments = kernel.getFunctionType().getNumInputs(), next = arguments;
  std::map<uint32_t, format::Dependence> byOperand;
  bool partial = false;
  for (auto [number, result] : llvm::enumerate(results)) {
    int64_t tied = kernel.getTied() ? (*kernel.getTied())[number] : -1;
    format::Dependence &own = byOperand[tied >= 0 ? tied : next++];
    for (unsigned argument : result.arguments.set_bits())
      own.operands.push_back(argument);
    own.imms = immediatesOf(info, result);
    partial |= own.operands.size() < arguments || own.imms.size() < info.immediates.size();
  }
  std::vector<format::Dependence> deps;
  for (auto [number, operand] : llvm::enumerate(made.operands))
    if (operand.access != format::Access::Read)
      deps.push_back(byOperand[number]);
  if (!partial || results.size() < 2)
    deps.clear();
  return deps;
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
    made.flops = info->flops;
    if (info->launch)
      made.launch = {{info->launch->grid, 1, 1}, {info->launch->threads, 1, 1}, 0};
    for (const OperandInfo &operand : info->operands)
      made.operands.push_back({accessOf(operand.access), operand.bytes});
    made.deps = dependencesOf(kernel, *info, made);
    out.kernels.push_back(std::move(made));
  }
  uint32_t own = info->scratchBytes ? scratch(info->scratchBytes) : 0;
  auto stage = tables.names.lookup<StageOp>(program.getFirstStage().getAttr());
  format::Instruction &it = append(launch, format::Op::Kernel);
  it.kernel = index->second;
  for (auto [value, operand] : llvm::zip(values, info->operands)) {
    format::Access access = accessOf(operand.access);
    // A value of no elements may have a place in another's buffer: its write changes no byte there.
    bool writesNone = operand.bytes == 0 && operand.access != OperandAccess::Read;
    it.operands.push_back(writesNone ? part(access, bufferOf(value), 0, cast<RankedTensorType>(value.getType()))
                                     : this->operand(access, bufferOf(value)));
  }
  if (info->scratchBytes)
    it.operands.push_back({format::Access::Write, own, {}});
  for (const ImmediateInfo &immediate : info->immediates)
    it.imms.push_back(immediateOf(immediate, stage.getMesh()));
  return success();
}

static std::vector<int64_t> toVector(ArrayRef<int64_t> values) { return {values.begin(), values.end()}; }

static format::Call callOf(const MatmulCall &call) {
  format::Call made;
  made.type = dtypeOf(call.operandType);
  made.typeC = dtypeOf(call.resultType);
  made.batch = toVector(call.batch);
  made.m = call.m, made.n = call.n, made.k = call.k;
  made.transA = call.transA, made.transB = call.transB;
  made.lda = call.lda, made.ldb = call.ldb, made.ldc = call.ldc;
  made.strideA = toVector(call.strideA);
  made.strideB = toVector(call.strideB);
  made.strideC = toVector(call.strideC);
  made.beta = call.getBeta();
  if (call.epilogue) {
    made.bias = call.epilogue->bias.has_value();
    made.epilogue = *format::epilogueOf(std::string_view(call.epilogue->name));
  }
  return made;
}

/// Bytes that cuBLASLt may put partial sums in, where it gives several blocks parts of k: of eight parts, and no more
/// than NVIDIA advises for Hopper (cuBLAS, cublasSetWorkspace: 32 MiB).
static uint64_t workspaceOf(const MatmulCall &call) {
  constexpr uint64_t parts = 8, most = uint64_t(32) << 20;
  uint64_t result = uint64_t(call.m) * uint64_t(call.n) * sizeof(float);
  return result > most / parts ? most : result * parts;
}

LogicalResult ProgramEmitter::emitMatmul(LaunchOp launch, KernelOp kernel) {
  std::optional<MatmulCall> call = describeMatmul(kernel);
  if (!call)
    return kernel.emitError() << "is to be a library matmul, but its body is not a matmul";
  auto [index, fresh] = calls.try_emplace(kernel.getSymName(), out.calls.size());
  if (fresh) {
    out.calls.push_back(callOf(*call));
    out.calls.back().name = tableName(kernel.getSymName());
    out.calls.back().workspace = tables.gpu ? workspaceOf(*call) : 0;
  }
  uint64_t workspace = out.calls[index->second].workspace;
  uint32_t own = workspace ? scratch(workspace) : 0;
  format::Instruction &it = append(launch, format::Op::Call);
  it.call = index->second;
  auto read = [&](unsigned argument) {
    it.operands.push_back(operand(format::Access::Read, bufferOf(launch.getOperands()[argument])));
  };
  read(call->lhs);
  read(call->rhs);
  MatmulEpilogue epilogue = call->epilogue.value_or(MatmulEpilogue());
  if (epilogue.bias)
    read(*epilogue.bias);
  if (epilogue.auxArgument)
    read(*epilogue.auxArgument);
  if (epilogue.auxResult)
    it.operands.push_back(operand(format::Access::Write, bufferOf(launch.getResult(*epilogue.auxResult))));
  it.operands.push_back(operand(call->accumulator ? format::Access::Accumulate : format::Access::Write,
                                bufferOf(launch.getResult(epilogue.result))));
  if (workspace)
    it.operands.push_back({format::Access::Write, own, {}});
  return success();
}

static format::Access accessOf(kernels::Access access) {
  switch (access) {
  case kernels::Access::Read:
    return format::Access::Read;
  case kernels::Access::Write:
    return format::Access::Write;
  case kernels::Access::Update:
    return format::Access::ReadWrite;
  case kernels::Access::Accumulate:
    return format::Access::Accumulate;
  }
  llvm_unreachable("all accesses are handled");
}

/// The launch's value for an operand of a builtin.
static Value valueOf(LaunchOp launch, const BuiltinValue &operand) {
  return operand.result ? Value(launch.getResult(*operand.result)) : launch.getOperands()[*operand.argument];
}

LogicalResult ProgramEmitter::emitBuiltin(LaunchOp launch, KernelOp kernel) {
  std::optional<BuiltinCall> call = describeBuiltin(kernel);
  if (!call)
    return kernel.emitError() << "is to be a " << kernel.getImplementation() << ", but its body is none";
  auto [index, fresh] = kernels.try_emplace(kernel.getSymName(), out.kernels.size());
  if (fresh) {
    format::Kernel made;
    made.name = tableName(kernel.getSymName());
    made.symbol = call->kernel->name;
    made.builtin = true;
    made.tiles = call->getTiles();
    made.imms = call->immediates.size();
    for (const BuiltinValue &operand : call->operands) {
      auto bytes = getByteSize(cast<RankedTensorType>(valueOf(launch, operand).getType()));
      made.operands.push_back({accessOf(operand.access), static_cast<uint64_t>(bytes)});
    }
    out.kernels.push_back(std::move(made));
  }
  for (const BuiltinValue &operand : call->operands)
    if (call->zeroFirst && operand.access == kernels::Access::Accumulate && !operand.argument) {
      Value sum = valueOf(launch, operand);
      auto type = cast<RankedTensorType>(sum.getType());
      format::Instruction &fill = append(launch, format::Op::Fill);
      fill.operands = {part(format::Access::Write, bufferOf(sum), 0, type)};
      fill.n = type.getNumElements();
    }
  format::Instruction &it = append(launch, format::Op::Kernel);
  it.kernel = index->second;
  for (const BuiltinValue &operand : call->operands)
    it.operands.push_back(this->operand(accessOf(operand.access), bufferOf(valueOf(launch, operand))));
  for (uint64_t immediate : call->immediates)
    it.imms.push_back({static_cast<int64_t>(immediate), "", 1});
  return success();
}

/// Writes only the appended part: the operand is in the buffer already.
void ProgramEmitter::emitFill(LaunchOp launch) {
  RankedTensorType before = getTensorType(launch.getOperand(0).getType()),
                   after = getTensorType(launch.getResult(0).getType());
  int64_t added = after.getNumElements() - before.getNumElements();
  format::Instruction &fill = append(launch, format::Op::Fill);
  fill.operands = {
      part(format::Access::Write, bufferOf(launch.getResult(0)), getByteSize(before), after.clone({added}))};
  fill.n = added;
}

LogicalResult ProgramEmitter::emitLaunch(LaunchOp launch) {
  auto kernel = tables.names.lookup<KernelOp>(launch.getKernel());
  StringRef implementation = kernel.getImplementation();
  if (implementation == "generated")
    return emitGenerated(launch, kernel);
  if (implementation == "library:matmul")
    return emitMatmul(launch, kernel);
  if (implementation.starts_with("builtin:"))
    return emitBuiltin(launch, kernel);
  if (implementation == "fill") {
    emitFill(launch);
    return success();
  }
  return kernel.emitError() << "has the unknown implementation \"" << implementation << "\"";
}

} // namespace par
