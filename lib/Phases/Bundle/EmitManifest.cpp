// Emits the manifest: mesh and ranks, tensors with their rectangles and initial values, hyperparameters, inputs and
// outputs. Equal constants are stored once.
#include "EmitManifest.h"
#include "par/Dialect/Splat.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

#include <set>

using namespace mlir;

namespace par {

//===-- Ranks --------------------------------------------------------------------------------===//

static StageOp stageOf(ProgramOp program) {
  // A program is a symbol table itself; stages stand beside it. All of a program's have one mesh.
  return program->getParentOfType<ModuleOp>().lookupSymbol<StageOp>(program.getFirstStage().getAttr());
}

/// Factors of one axis stand side by side, in order: a stage may have only some of them.
static std::vector<format::MeshAxis>::iterator placeOf(StringRef axis, std::vector<format::MeshAxis> &mesh) {
  StringRef whole = axis.rsplit('.').first;
  auto place = mesh.end();
  for (auto other = mesh.begin(); other != mesh.end(); ++other)
    if (StringRef(other->name).rsplit('.').first == whole && StringRef(other->name) < axis)
      place = std::next(other);
    else if (StringRef(other->name).rsplit('.').first == whole && place == mesh.end())
      place = other;
  return place;
}

/// The axes of all stages, and one that says which stage a rank is of.
LogicalResult ManifestEmitter::emitRanks() {
  SmallVector<ProgramOp> programs(module.getOps<ProgramOp>());
  if (programs.size() > 1)
    out.mesh.push_back({options.stageAxis, static_cast<uint32_t>(programs.size())});
  for (ProgramOp program : programs)
    for (auto [axis, size] : llvm::zip(stageOf(program).getMesh().getNames(), stageOf(program).getMesh().getSizes())) {
      auto same = llvm::find_if(out.mesh, [&](const format::MeshAxis &known) { return known.name == axis; });
      if (same == out.mesh.end())
        out.mesh.insert(placeOf(axis.getValue(), out.mesh), {axis.str(), static_cast<uint32_t>(size)});
      else
        same->size = std::max<uint32_t>(same->size, size);
    }
  size_t count = 0;
  for (ProgramOp program : programs)
    count += program.getRanks().size();
  out.ranks.resize(count);
  std::vector<bool> taken(count);
  for (auto [role, program] : llvm::enumerate(programs)) {
    MeshAttr mesh = stageOf(program).getMesh();
    for (auto [member, rank] : llvm::enumerate(program.getRanks())) {
      if (rank < 0 || static_cast<size_t>(rank) >= count || taken[rank])
        return program.emitError() << "has rank " << rank << "; the programs' ranks must be 0 to " << count - 1
                                   << ", each once";
      taken[rank] = true;
      out.ranks[rank].role = role;
      for (const format::MeshAxis &axis : out.mesh) {
        auto name = StringAttr::get(module.getContext(), axis.name);
        bool own = mesh.getSize(name) > 0;
        out.ranks[rank].coordinate.push_back(own                              ? mesh.getIndex(member, name)
                                             : axis.name == options.stageAxis ? role
                                                                              : 0);
      }
    }
  }
  return success();
}

//===-- Tensors ------------------------------------------------------------------------------===//

static format::TensorKind kindOf(VariableKind kind) {
  switch (kind) {
  case VariableKind::parameter:
    return format::TensorKind::Parameter;
  case VariableKind::state:
    return format::TensorKind::State;
  case VariableKind::copy:
    return format::TensorKind::Copy;
  case VariableKind::buffer:
    return format::TensorKind::Buffer;
  case VariableKind::counter:
  case VariableKind::carried: // from its rule on, in no file of weights
    return format::TensorKind::Counter;
  case VariableKind::constant:
    return format::TensorKind::Constant;
  case VariableKind::frozen:
  case VariableKind::hyperparameter:
    return format::TensorKind::Frozen;
  }
  llvm_unreachable("all kinds are handled");
}

std::optional<format::InitRule> parseInitRule(StringRef text) {
  format::InitRule rule;
  if (text.empty() || text == "zeros")
    return rule;
  if (text == "ones") {
    rule.a = 1;
    return rule;
  }
  auto [name, argument] = text.split('(');
  double number = 0;
  if (!argument.consume_back(")") || argument.getAsDouble(number))
    return std::nullopt;
  if (name == "constant") {
    rule.a = number;
  } else if (name == "normal") {
    rule.kind = format::InitRule::Normal;
    rule.b = number;
  } else if (name == "uniform") {
    rule.kind = format::InitRule::Uniform;
    rule.a = -number;
    rule.b = number;
  } else {
    return std::nullopt;
  }
  return rule;
}

std::optional<format::Source> ManifestEmitter::sourceOf(VariableOp variable) const {
  DictionaryAttr dict = variable.getSourceAttr();
  // A compressed file cannot be mapped: par-run asks for --weights.
  if (auto gzip = dict ? dict.getAs<BoolAttr>("gzip") : BoolAttr(); !dict || (gzip && gzip.getValue()))
    return std::nullopt;
  StringRef file = dict.getAs<StringAttr>("file").getValue();
  auto number = [&](StringRef key) { return static_cast<uint64_t>(dict.getAs<IntegerAttr>(key).getInt()); };
  auto type = dict.getAs<TypeAttr>("dtype");
  return format::Source{file.str(), number("offset"), number("length"),
                        dtypeOf(type ? type.getValue() : variable.getTensorType().getElementType())};
}

/// Elements as buffers have them: dense, row-major, a truth value a byte.
static std::string bytesOf(DenseElementsAttr value) {
  std::string bytes;
  if (value.getElementType().isInteger(1)) {
    for (bool element : value.getValues<bool>())
      bytes.push_back(char(element));
    return bytes;
  }
  ArrayRef<char> raw = value.getRawData();
  for (int64_t i = 0; i < (value.isSplat() ? value.getNumElements() : 1); ++i)
    bytes.append(raw.begin(), raw.end());
  return bytes;
}

/// Offset in the bundle's file of constants; equal values are stored once.
uint64_t ManifestEmitter::placeConstant(DenseElementsAttr value) {
  auto [place, added] = constantPlaces.try_emplace(value, 0);
  if (added) {
    constants.resize(llvm::alignTo(constants.size(), format::arenaAlignment), '\0');
    place->second = constants.size();
    constants += bytesOf(value);
  }
  return place->second;
}

/// Source of the initial value: the model file, the bundle itself, one number, or a rule.
LogicalResult ManifestEmitter::emitInitialValue(VariableOp variable, format::Tensor &tensor) {
  tensor.source = sourceOf(variable);
  if (auto value = dyn_cast_or_null<DenseElementsAttr>(variable.getValueAttr())) {
    bool constant = tensor.kind == format::TensorKind::Constant;
    if (auto splat = dyn_cast<SplatElementsAttr>(value); splat && !constant && !variable.getInit())
      tensor.init.a = numberOf(splat);
    else
      tensor.value = placeConstant(value);
    // Fresh weights follow their rule, wherever those of the model stand.
    if (!variable.getInit())
      return success();
  }
  auto said = options.init.find(tensor.name);
  StringRef text = said != options.init.end() ? StringRef(said->second) : variable.getInit().value_or("zeros");
  std::optional<format::InitRule> rule = parseInitRule(text);
  if (!rule)
    return variable.emitError() << "has the initialisation rule \"" << text << "\", which is not supported yet";
  tensor.init = *rule;
  return success();
}

void ManifestEmitter::findStates() {
  for (ProgramOp program : module.getOps<ProgramOp>()) {
    auto &buffers = states.emplace_back(program, llvm::StringMap<BufferOp>()).second;
    for (BufferOp buffer : program.getOps<BufferOp>())
      if (buffer.getKind() == BufferKind::state && buffer.getOf())
        buffers.try_emplace(*buffer.getOf(), buffer);
  }
}

/// One entry for a variable: all stages that hold it hold the same rectangles.
LogicalResult ManifestEmitter::emitTensor(VariableOp variable) {
  format::Tensor tensor;
  bool held = false, slots = false;
  for (auto &[program, buffers] : states) {
    BufferOp buffer = buffers.lookup(variable.getSymName());
    if (!buffer)
      continue;
    if (!buffer.getDist())
      return buffer.emitError() << "has no sharding (`as`)";
    format::Layout layout = layouts.of(cast<DistType>(*buffer.getDist()), stageOf(program));
    if (std::vector<int64_t> held = shapeOf(buffer.getTensorType()); held > layout.local)
      layout.local = held; // with room after its rows
    if (held && !mergeLayout(tensor.layout, layout))
      return buffer.emitError() << "lies on this stage in other parts than on an earlier one: not supported yet";
    if (!held)
      tensor.layout = layout;
    held = true;
    slots = buffer.getIndex() == SlotIndex::microbatch;
  }
  if (!held)
    return success(); // nothing reads or writes it
  tensor.name = variable.getSymName();
  tensor.kind = kindOf(variable.getKind());
  if (tensor.kind == format::TensorKind::State || tensor.kind == format::TensorKind::Copy)
    tensor.of = variable.getOf().value_or("");
  tensor.type = dtypeOf(variable.getTensorType().getElementType());
  tensor.stored =
      shapeOf(variable.getStored() ? cast<RankedTensorType>(*variable.getStored()) : variable.getTensorType());
  if (slots) // a carried value is known in the shape of one microbatch
    tensor.stored = tensor.layout.shape;
  if (auto found = options.aliases.find(tensor.name); found != options.aliases.end())
    tensor.aliases = found->second;
  if (auto found = options.transposed.find(tensor.name); found != options.transposed.end())
    tensor.transposed = found->second;
  if (auto found = options.copies.find(tensor.name); found != options.copies.end())
    tensor.copies = found->second;
  if (failed(emitInitialValue(variable, tensor)))
    return failure();
  out.tensors.push_back(std::move(tensor));
  return success();
}

LogicalResult ManifestEmitter::emitHyper(VariableOp variable) {
  ElementsAttr value = variable.getValueAttr();
  auto splat = dyn_cast_or_null<SplatElementsAttr>(value);
  if (value && !splat)
    return variable.emitError() << "is a hyperparameter of several numbers";
  out.hypers.push_back({variable.getSymName().str(), splat ? numberOf(splat) : 0});
  return success();
}

LogicalResult ManifestEmitter::emitTensors() {
  findStates();
  for (VariableOp variable : module.getOps<VariableOp>())
    if (failed(variable.getKind() == VariableKind::hyperparameter ? emitHyper(variable) : emitTensor(variable)))
      return failure();
  return success();
}

//===-- Inputs and outputs -------------------------------------------------------------------===//

/// Type of an input or output in files. Buffers of integers have no sign; files have both kinds.
format::DType ManifestEmitter::fileType(StringRef name, Type element) {
  if (!options.unsignedValues.count(name.str()) || element.isInteger(1))
    return dtypeOf(element);
  switch (element.getIntOrFloatBitWidth()) {
  case 8:
    return format::DType::U8;
  case 16:
    return format::DType::U16;
  case 32:
    return format::DType::U32;
  default:
    return format::DType::U64;
  }
}

/// False where not every row is told the same.
static bool takeLimits(format::Input &input, const InputLimits &limits) {
  int64_t period = 0,
          elements = ShapedType::getNumElements(ArrayRef(input.shape).drop_front(input.microbatched ? 1 : 0));
  if (!limits)
    return false;
  for (const format::Limits &run : *limits)
    period += int64_t(run.count);
  input.limits = *limits;
  return period == 0 || elements % period == 0;
}

/// An input that several entries or stages take is one; all must lay it out in one way.
LogicalResult ManifestEmitter::emitInput(BufferOp buffer, StageOp stage) {
  if (!buffer.getDist())
    return buffer.emitError() << "has no sharding (`as`)";
  format::Input input;
  input.name = buffer.getOf().value_or(buffer.getSymName());
  input.type = fileType(input.name, buffer.getTensorType().getElementType());
  input.microbatched = buffer.getSliced();
  input.layout = layouts.of(cast<DistType>(*buffer.getDist()), stage);
  input.shape = input.layout.shape;
  if (input.microbatched)
    input.shape[0] *= out.microbatches;
  if (auto limit = options.inputLimits.find(input.name);
      limit != options.inputLimits.end() && !takeLimits(input, limit->second))
    return buffer.emitError() << "input \"" << input.name
                              << "\" chooses among other numbers in some rows than in others: not "
                                 "supported yet; give each its own input";
  auto same = llvm::find_if(out.inputs, [&](const format::Input &known) { return known.name == input.name; });
  if (same == out.inputs.end()) {
    out.inputs.push_back(std::move(input));
    return success();
  }
  if (same->microbatched != input.microbatched || same->type != input.type || same->shape != input.shape)
    return buffer.emitError() << "takes input \"" << input.name
                              << "\" in other microbatches than another stage or step does: not supported yet";
  // Stages of different meshes have layouts of their own; a rank has it one way.
  uint32_t rank = stage.getRanks().front();
  auto isOf = [&](const format::Layout &layout) { return format::rectangleOf(layout, rank) != nullptr; };
  if (isOf(same->layout) || llvm::any_of(same->more, isOf)) {
    if (!mergeLayout(isOf(same->layout) ? same->layout : *llvm::find_if(same->more, isOf), input.layout))
      return buffer.emitError() << "takes input \"" << input.name
                                << "\" in other parts than another step does: not supported yet";
    return success();
  }
  auto merges = [&](format::Layout &layout) { return mergeLayout(layout, input.layout); };
  if (!merges(same->layout) && llvm::none_of(same->more, merges))
    same->more.push_back(std::move(input.layout));
  return success();
}

LogicalResult ManifestEmitter::emitOutput(FetchOp fetch, ProgramOp program) {
  auto type = cast<RankedTensorType>(fetch.getOperand().getType());
  // A number is a metric, the same on all ranks; of a tensor, each has a part.
  DistType dist = fetch.getDist().value_or(DistType());
  bool metric = (dist ? dist.getTensor() : type).getRank() == 0;
  if (!metric && !dist && program.getRanks().size() > 1)
    return fetch.emitError() << "has no sharding of \"" << fetch.getName() << "\" (`of`)";
  format::Output output{
      fetch.getName().str(), fileType(fetch.getName(), type.getElementType()), shapeOf(type), metric, {}, false, {}};
  if (!metric && dist) {
    output.layout = layouts.of(dist, stageOf(program));
    output.shape = output.layout.shape;
    output.microbatched = fetch.getSliced();
    if (output.microbatched)
      output.shape[0] *= out.microbatches;
    if (auto found = options.outputBatchDims.find(output.name);
        output.microbatched && found != options.outputBatchDims.end())
      output.batchDim = found->second;
  }
  auto same = llvm::find_if(out.outputs, [&](const format::Output &known) { return known.name == output.name; });
  if (same == out.outputs.end())
    same = out.outputs.insert(same, output);
  else if (same->shape != output.shape || same->type != output.type)
    return fetch.emitError() << "gives \"" << output.name << "\" in another shape than another block does";
  for (int64_t rank : program.getRanks())
    if (!llvm::is_contained(same->ranks, rank))
      same->ranks.push_back(rank);
  return success();
}

void sayMeans(std::vector<format::Output> &outputs) {
  std::set<std::string> names;
  for (const format::Output &output : outputs)
    names.insert(output.name);
  constexpr const char *kinds[] = {"count(", "batch(", "sum(", "terms("};
  auto isCounter = [&](StringRef name) {
    return llvm::any_of(kinds, [&](const char *kind) { return name.starts_with(kind); });
  };
  for (format::Output &output : outputs) {
    bool ofTrain = output.name == "grad_norm" || output.name == "loss_scale";
    if (!output.metric || ofTrain || isCounter(output.name) || !names.count("loss"))
      continue;
    output.mean = "samples";
    for (const char *kind : kinds)
      if (names.count(kind + output.name + ")"))
        output.mean = kind + output.name + ")";
  }
}

LogicalResult ManifestEmitter::emitInterface() {
  for (ProgramOp program : module.getOps<ProgramOp>()) {
    for (BufferOp buffer : program.getOps<BufferOp>())
      if (buffer.getKind() == BufferKind::input && failed(emitInput(buffer, stageOf(program))))
        return failure();
    WalkResult fetches = program.walk([&](FetchOp fetch) { return WalkResult(emitOutput(fetch, program)); });
    if (fetches.wasInterrupted())
      return failure();
  }
  return success();
}

LogicalResult ManifestEmitter::emit() {
  for (const format::Program &program : bundle.programs) {
    out.peak.push_back({program.arena.state, program.arena.pool, 0, program.arena.host});
    for (const format::Entry &entry : program.entries) {
      uint64_t microbatches = 1, calls = format::callsOf(entry);
      for (const format::Run &run : entry.runs)
        microbatches = std::max<uint64_t>(microbatches, run.microbatch + 1);
      out.microbatches = std::max(out.microbatches, llvm::divideCeil(microbatches, calls));
      out.calls = std::max(out.calls, calls);
    }
  }
  out.roles = bundle.programs.size();
  out.planHash = options.planHash;
  out.model = options.model;
  out.lr = options.lr;
  out.text = options.text;
  out.batch = options.batch;
  out.seed = options.seed;
  out.predictedNs = options.predictedNs;
  if (failed(emitRanks()) || failed(emitTensors()) || failed(emitInterface()))
    return failure();
  if (!constants.empty())
    bundle.blobs.push_back({format::constantsFile, std::move(constants)});
  return success();
}

} // namespace par
