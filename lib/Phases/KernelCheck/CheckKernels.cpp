// Runs each compiled kernel on random operands between guard pages and compares with the interpreter. GPU code runs
// emulated; large kernels are batched by the bytes and elements that one check may use.
#include "par/Phases/KernelCheck/KernelCheck.h"

#include "KernelRun.h"
#include "LoadedCode.h"
#include "Reference.h"

#include "par/Dialect/Interfaces/Cost.h"
#include "par/Phases/Codegen/Emulation.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/xxhash.h"

#include <cstring>

using namespace mlir;

namespace par {

using namespace kernel_check;
using interp::Tensor;

namespace {

/// Bytes of operands, of one kernel or several, that are there at a time; and kernels.
constexpr uint64_t maxBytes = uint64_t(512) << 20;
constexpr size_t maxPending = 64;
/// Share of the interpreted elements that are also interpreted with rounding.
constexpr int64_t oftenShare = 8;
/// Share of the elements that emulated threads compute; and the maximum number of threads, each of which costs as much
/// as some thousand elements.
constexpr int64_t emulatedShare = 16, maxThreads = 1 << 18;
/// Fill of memory before a run.
constexpr int unwritten = 0xa5;

/// A kernel on one set of operands: once at the begin of its memory, once at the end.
struct Draw {
  std::vector<Tensor> operands;
  std::vector<Reference> references; ///< none: addresses only
  KernelRun runs[2];
};

struct Pending {
  KernelOp kernel;
  const KernelInfo *info;
  std::vector<std::unique_ptr<Draw>> draws;
};

class KernelChecker {
public:
  KernelChecker(ModuleOp module, const CompiledKernels &compiled, const KernelCheckOptions &options,
                KernelCheckCounts &counts)
      : module(module), compiled(compiled), options(options), counts(counts) {}

  LogicalResult run();

private:
  LogicalResult load();
  LogicalResult prepare(const KernelInfo &info);
  LogicalResult checkSizes(KernelOp kernel, const KernelInfo &info);
  bool interpret(const Pending &pending, Draw &draw, const Place &place, unsigned roundings, std::string &reason);
  /// Draws numbers and interprets them, with so many roundings; fails if the interpreter can run none of the draws.
  LogicalResult drawValues(Pending &pending, Draw &draw, bool second, std::optional<unsigned> roundings);
  LogicalResult placeOperands(const Pending &pending, Draw &draw, const Place &place);
  LogicalResult finishPending();
  void judge(const Pending &pending, const Draw &draw, const KernelRun &run);
  void reportEnd(const Pending &pending, const KernelRun &run);
  void reportDifference(const Pending &pending, unsigned result, const Difference &difference);

  ModuleOp module;
  const CompiledKernels &compiled;
  const KernelCheckOptions &options;
  KernelCheckCounts &counts;
  CompiledKernels again;
  const CompiledKernels *code = nullptr;
  std::unique_ptr<LoadedCode> loaded;
  std::vector<Pending> waiting;
  uint64_t waitingBytes = 0;
  bool wrong = false;
};

} // namespace

/// Elements that the ops of a body give, all together.
static int64_t countElements(KernelOp kernel) {
  int64_t elements = 0;
  kernel.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      elements += cast<RankedTensorType>(type).getNumElements();
  });
  return elements;
}

static bool hasKnownElements(KernelOp kernel) {
  auto isKnown = [](Type type) { return isKnownElement(getElementTypeOrSelf(type)); };
  return llvm::all_of(kernel.getFunctionType().getInputs(), isKnown) &&
         llvm::all_of(kernel.getFunctionType().getResults(), isKnown);
}

/// Code that runs here: emulated for a GPU, recompiled for another processor.
LogicalResult KernelChecker::load() {
  code = &compiled;
  std::string object = compiled.object, error;
  if (compiled.device == "cuda") {
    FailureOr<std::string> emulated = emulateKernels(compiled.ir, error);
    if (failed(emulated))
      return module.emitError("cannot run kernels of a GPU here: ") << error;
    object = std::move(*emulated);
  } else if (!runsHere(compiled.isa)) {
    CodegenOptions codegen;
    FailureOr<CompiledKernels> here = compileKernels(module, codegen);
    if (failed(here))
      return failure();
    again = std::move(*here);
    code = &again;
    object = again.object;
    counts.otherIsa = again.isa;
  }
  loaded = std::make_unique<LoadedCode>(object, error);
  if (!*loaded)
    return module.emitError("cannot load the kernels that were compiled: ") << error;
  return success();
}

/// False if an op finds an index out of range, or another error.
bool KernelChecker::interpret(const Pending &pending, Draw &draw, const Place &place, unsigned roundings,
                              std::string &reason) {
  ScopedDiagnosticHandler keep(module.getContext(), [&](Diagnostic &diagnostic) {
    reason = diagnostic.str();
    return success();
  });
  FailureOr<std::vector<Reference>> references = interpretKernel(pending.kernel, draw.operands, place, roundings);
  if (failed(references))
    return false;
  draw.references = std::move(*references);
  return true;
}

LogicalResult KernelChecker::drawValues(Pending &pending, Draw &draw, bool second, std::optional<unsigned> roundings) {
  auto [first, last] = placesOf(module, pending.kernel.getSymName());
  const Place &place = second ? last : first;
  int64_t largestDim = 4;
  for (Type type : pending.kernel.getFunctionType().getInputs())
    for (int64_t size : cast<RankedTensorType>(type).getShape())
      largestDim = std::max(largestDim, size);
  std::string reason;
  // If the range of computed indices is unknown, smaller integers are safer: with zeros only, all are in range. Without
  // the interpreter no range is checked.
  int64_t most = roundings ? largestDim : 1;
  for (bool zeros = false; !zeros; most = std::max<int64_t>(most / 4, 1)) {
    zeros = most == 1;
    std::mt19937_64 random(llvm::xxh3_64bits(pending.info->symbol) ^ (options.seed * 2 + second));
    draw.operands = drawOperands(pending.kernel, second, most, random);
    if (!roundings || interpret(pending, draw, place, *roundings, reason))
      return placeOperands(pending, draw, place);
  }
  return pending.kernel.emitError() << "kernel @" << pending.info->kernel
                                    << " cannot be checked: the interpreter fails even with "
                                    << "zeros as integers: " << reason;
}

LogicalResult KernelChecker::placeOperands(const Pending &pending, Draw &draw, const Place &place) {
  const KernelInfo &info = *pending.info;
  LoadedCode::Tiles tiles = loaded->find(info);
  if (!tiles)
    return module.emitError("the code of kernel @") << info.kernel << " has no symbol " << info.symbol;
  for (KernelRun &run : draw.runs) {
    for (auto [number, operand] : llvm::enumerate(info.operands)) {
      // A GPU's operands begin at multiples of 16.
      uint64_t bytes = info.launch ? llvm::alignTo(operand.bytes, 16) : operand.bytes;
      auto &buffer = run.operands.emplace_back(std::make_unique<GuardedBuffer>(bytes, /*atEnd=*/&run == &draw.runs[1]));
      if (!*buffer)
        return module.emitError("no memory for the operands of kernel @") << info.kernel << ": " << bytes << " bytes";
      waitingBytes += bytes;
      std::memset(buffer->as<void>(), unwritten, bytes);
      if (number < draw.operands.size())
        writeElements(draw.operands[number], buffer->as<void>());
      run.readOnly.push_back(operand.access == OperandAccess::Read);
    }
    for (const ImmediateInfo &immediate : info.immediates)
      run.immediates.push_back(place.valueOf(immediate));
    // Tile by tile from the last one: how they are shared must not matter.
    run.call = [tiles, count = info.tiles](void *const *pointers, const uint64_t *immediates) {
      for (uint32_t tile = count; tile-- > 0;)
        if (!tiles(pointers, immediates, tile, tile + 1))
          return false;
      return true;
    };
  }
  return success();
}

/// A kernel's arguments, and its results that are tied to none.
static SmallVector<Type> operandTypes(KernelOp kernel) {
  SmallVector<Type> types(kernel.getFunctionType().getInputs());
  for (auto [result, type] : llvm::enumerate(kernel.getFunctionType().getResults()))
    if (!kernel.getTied() || (*kernel.getTied())[result] < 0)
      types.push_back(type);
  return types;
}

LogicalResult KernelChecker::checkSizes(KernelOp kernel, const KernelInfo &info) {
  for (auto [number, type, operand] : llvm::enumerate(operandTypes(kernel), info.operands))
    if (static_cast<uint64_t>(getByteSize(type)) != operand.bytes)
      return kernel.emitError() << "the code of kernel @" << info.kernel << " has " << operand.bytes
                                << " bytes of operand " << number << ", its type " << type << " has "
                                << getByteSize(type);
  return success();
}

LogicalResult KernelChecker::prepare(const KernelInfo &info) {
  Pending pending{module.lookupSymbol<KernelOp>(info.kernel), &info, {}};
  if (failed(checkSizes(pending.kernel, info)))
    return failure();
  ++counts.kernels;
  int64_t elements = countElements(pending.kernel), most = options.maxElements;
  bool isEmulated = info.launch.has_value();
  if (isEmulated &&
      (elements > most / emulatedShare || int64_t(info.launch->grid) * info.launch->threads > maxThreads)) {
    ++counts.notRun;
    return success();
  }
  bool isInterpreted = elements <= most && hasKnownElements(pending.kernel), often = elements <= most / oftenShare;
  counts.addressesOnly += !isInterpreted;
  for (bool second : {false, true}) {
    if (second && !(isInterpreted && often))
      break;
    pending.draws.push_back(std::make_unique<Draw>());
    std::optional<unsigned> roundings;
    if (isInterpreted)
      roundings = often ? 2 : 1;
    if (failed(drawValues(pending, *pending.draws.back(), second, roundings)))
      return failure();
  }
  waiting.push_back(std::move(pending));
  if (waitingBytes < maxBytes && waiting.size() < maxPending)
    return success();
  return finishPending();
}

/// Runs the prepared kernels, and reports errors.
LogicalResult KernelChecker::finishPending() {
  std::vector<KernelRun *> runs;
  for (Pending &pending : waiting)
    for (auto &draw : pending.draws)
      for (KernelRun &run : draw->runs)
        runs.push_back(&run);
  std::string reason;
  if (!runApart(runs, reason))
    return module.emitError("cannot start a process that runs kernels: ") << reason;
  for (const Pending &pending : waiting) {
    bool before = std::exchange(wrong, false);
    for (const auto &draw : pending.draws)
      for (const KernelRun &run : draw->runs)
        if (!wrong) // one fault of a kernel says enough
          judge(pending, *draw, run);
    wrong |= before;
  }
  waiting.clear();
  waitingBytes = 0;
  return success();
}

void KernelChecker::judge(const Pending &pending, const Draw &draw, const KernelRun &run) {
  if (run.end != KernelRun::Done)
    return reportEnd(pending, run);
  KernelOp kernel = pending.kernel;
  unsigned next = draw.operands.size();
  for (auto [number, reference] : llvm::enumerate(draw.references)) {
    int64_t tied = kernel.getTied() ? (*kernel.getTied())[number] : -1;
    const GuardedBuffer &buffer = *run.operands[tied >= 0 ? tied : next++];
    Tensor computed = readElements(reference.exact.getType(), buffer.as<void>());
    if (std::optional<Difference> found = findDifference(reference, computed, counts.elements))
      return reportDifference(pending, number, *found);
  }
}

/// `operand 1 (tensor<4xf32>)`, of the arguments and results that have a type.
static std::string describeOperand(KernelOp kernel, const KernelInfo &info, unsigned number) {
  SmallVector<Type> types = operandTypes(kernel);
  std::string text = "operand " + std::to_string(number) + " (";
  llvm::raw_string_ostream os(text);
  if (number < types.size())
    os << types[number] << ", ";
  os << info.operands[number].bytes << " bytes)";
  return text;
}

void KernelChecker::reportEnd(const Pending &pending, const KernelRun &run) {
  wrong = true;
  KernelOp kernel = pending.kernel;
  const KernelInfo &info = *pending.info;
  InFlightDiagnostic error = kernel.emitError() << "kernel @" << info.kernel << " ";
  if (run.end == KernelRun::Outside) {
    error << (run.wrote ? "writes " : "reads ");
    for (auto [number, buffer] : llvm::enumerate(run.operands))
      if (buffer->owns(run.address)) {
        error << describeOperand(kernel, info, number) << " at byte " << buffer->offsetOf(run.address);
        if (run.wrote && info.operands[number].access == OperandAccess::Read)
          error << ", which it may only read";
        return;
      }
    error << "memory that is of no operand";
  } else if (run.end == KernelRun::TooLong) {
    error << "does not come to an end";
  } else if (run.end == KernelRun::Deadlock) {
    error << "has threads that wait for ever";
  } else {
    error << "ends with signal " << run.signal;
  }
}

void KernelChecker::reportDifference(const Pending &pending, unsigned result, const Difference &difference) {
  wrong = true;
  KernelOp kernel = pending.kernel;
  Value value = kernel.getBody().front().getTerminator()->getOperand(result);
  auto type = cast<RankedTensorType>(value.getType());
  Operation *op = value.getDefiningOp();
  SmallVector<int64_t> index = delinearize(difference.element, computeSuffixProduct(type.getShape()));
  InFlightDiagnostic error = emitError(op ? op->getLoc() : kernel.getLoc());
  error << "kernel @" << pending.info->kernel << " computes " << difference.computed << " for element [";
  llvm::interleaveComma(index, error);
  error << "] of result " << result << " (" << type << "), the interpreter " << difference.expected;
  if (difference.bound > 0)
    error << "; they may be " << difference.bound << " apart";
}

LogicalResult KernelChecker::run() {
  if (compiled.kernels.empty())
    return success();
  if (failed(load()))
    return failure();
  llvm::StringSet<> seen;
  for (const KernelInfo &info : code->kernels)
    if (seen.insert(info.symbol).second && failed(prepare(info)))
      return failure();
  if (failed(finishPending()))
    return failure();
  return success(!wrong);
}

LogicalResult checkKernels(ModuleOp module, const CompiledKernels &compiled, const KernelCheckOptions &options,
                           KernelCheckCounts &counts) {
  return KernelChecker(module, compiled, options, counts).run();
}

} // namespace par
