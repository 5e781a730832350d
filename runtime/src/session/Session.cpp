// One rank's run: allocates the arena, sets the initial state, feeds inputs, fetches results. A checked run poisons the
// arena's pool and measures how far it is written.
#include "par/session/Session.h"

#include "par/files/Rectangles.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace par::core {

/// An axis of the plan: `count` axes of the manifest's mesh from `first` on. The compiler writes an axis of size 4 as
/// its prime factors "dp.0" and "dp.1", major first; users know "dp".
struct PlanAxis {
  std::string name;
  size_t first = 0, count = 1;
};

static std::vector<PlanAxis> planAxes(const format::Manifest &manifest) {
  const std::vector<format::MeshAxis> &mesh = manifest.mesh;
  std::vector<PlanAxis> axes;
  for (size_t i = 0; i < mesh.size(); i += axes.back().count) {
    std::string whole = mesh[i].name.substr(0, mesh[i].name.rfind('.'));
    size_t count = 0;
    while (i + count < mesh.size() && mesh[i + count].name == whole + "." + std::to_string(count))
      ++count;
    axes.push_back(count > 1 ? PlanAxis{whole, i, count} : PlanAxis{mesh[i].name, i, 1});
  }
  return axes;
}

/// How many ranks a role has along each axis of the manifest's mesh: stages may have meshes of their own.
static std::vector<uint64_t> sizesOf(const format::Manifest &manifest, uint32_t role) {
  std::vector<uint64_t> sizes(manifest.mesh.size(), 1);
  for (const format::Rank &rank : manifest.ranks)
    for (size_t i = 0; rank.role == role && i < sizes.size(); ++i)
      sizes[i] = std::max<uint64_t>(sizes[i], rank.coordinate[i] + 1);
  return sizes;
}

std::string coordinatesOf(const format::Manifest &manifest, uint32_t rank) {
  std::string text;
  std::vector<uint64_t> sizes = sizesOf(manifest, manifest.ranks[rank].role);
  for (const PlanAxis &axis : planAxes(manifest)) {
    uint64_t at = 0;
    for (size_t i = axis.first; i < axis.first + axis.count; ++i)
      at = at * sizes[i] + manifest.ranks[rank].coordinate[i];
    text += (text.empty() ? "" : ", ") + axis.name + " " + std::to_string(at);
  }
  return text;
}

/// "dp 2 + one rank": the meshes of the roles, of which the first axis tells which one a rank has.
static std::string meshesOf(const format::Manifest &manifest) {
  std::string text;
  for (uint32_t role = 0; role < manifest.roles; ++role) {
    std::string own;
    std::vector<uint64_t> sizes = sizesOf(manifest, role);
    for (const PlanAxis &axis : planAxes(manifest)) {
      uint64_t size = 1;
      for (size_t i = axis.first; axis.first > 0 && i < axis.first + axis.count; ++i)
        size *= sizes[i];
      if (size > 1)
        own += (own.empty() ? "" : " x ") + axis.name + " " + std::to_string(size);
    }
    text += (role ? " + " : "") + (own.empty() ? "one rank" : own);
  }
  return text;
}

std::string meshOf(const format::Manifest &manifest) {
  uint64_t all = 1;
  for (const format::MeshAxis &axis : manifest.mesh)
    all *= axis.size;
  if (all != manifest.ranks.size())
    return meshesOf(manifest);
  std::string text;
  for (const PlanAxis &axis : planAxes(manifest)) {
    uint64_t size = 1;
    for (size_t i = axis.first; i < axis.first + axis.count; ++i)
      size *= manifest.mesh[i].size;
    text += (text.empty() ? "" : " x ") + axis.name + " " + std::to_string(size);
  }
  return text.empty() ? "one rank" : text;
}

namespace {

/// Bytes of poison after the arena in a checked run; nothing may touch them.
constexpr uint64_t guardBytes = 1 << 16;
/// A quiet NaN in f32 and f64, an absurd index in i64.
constexpr uint32_t poisonWord = 0x7ff5a5a5;

comm::Hello helloOf(const format::Manifest &manifest, uint32_t rank, const std::string &libraries) {
  comm::Hello hello;
  hello.format = core::format("{}.{}", format::formatMajor, format::formatMinor);
  hello.bundleHash = manifest.bundleHash;
  hello.planHash = manifest.planHash;
  hello.coordinates = rank < manifest.ranks.size() ? coordinatesOf(manifest, rank) : "";
  hello.isa = "";
  hello.libraries = libraries;
  hello.ranks = static_cast<uint32_t>(manifest.ranks.size());
  hello.mesh = meshOf(manifest);
  return hello;
}

} // namespace

Session::Session(const format::Bundle &bundle, const std::string &folder, comm::Control &control,
                 const MakeDevice &makeDevice, const SessionOptions &options)
    : bundle(bundle), folder(folder), control(control),
      program(bundle.programs[bundle.manifest.ranks.at(control.rank()).role]), checkArena(options.checkArena) {
  uint64_t after = checkArena ? guardBytes : options.scratchBytes;
  DeviceOptions wanted{&bundle, folder,        control.rank(), options.threads,
                       after,   options.world, options.comm,   options.tuning};
  device = makeDevice(wanted);
  control.meet(helloOf(bundle.manifest, control.rank(), device->libraries()));
  use.bound = program.arena.deviceBytes();
  device->connect(control);
  loaded = std::make_unique<LoadedProgram>(bundle, folder, control.rank(), device->arenas());
  for (const format::Hyper &hyper : bundle.manifest.hypers)
    hypers[hyper.name] = {hyper.value};
  fetched.resize(bundle.manifest.calls);
}

Session::~Session() = default;

HostBytes Session::tensor(const std::string &name) const {
  for (uint32_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].kind == format::BufferKind::State && program.buffers[i].tensor == name)
      return {*device, loaded->address(i, 0), program.buffers[i].bytes()};
  return {};
}

/// Calls visit for every slot of every state buffer with its tensor and host memory, which becomes the slot's value:
/// the slot itself, or zeros.
void Session::forEachTensor(const std::function<void(const format::Tensor &, std::byte *)> &visit,
                            const PickTensor &isZero, const PickTensor &isWanted) {
  std::vector<std::byte> staging;
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    const format::Buffer &buffer = program.buffers[i];
    if (buffer.kind != format::BufferKind::State || buffer.of != format::noIndex)
      continue;
    const format::Tensor *tensor = bundle.manifest.findTensor(buffer.tensor);
    if (tensor && isWanted && !isWanted(*tensor))
      continue;
    for (uint32_t slot = 0; tensor && slot < format::depthOf(program, i); ++slot) {
      std::byte *at = loaded->address(i, slot);
      if (std::byte *here = device->hostAddress(at)) {
        visit(*tensor, here);
        continue;
      }
      if (buffer.bytes() % sizeof(uint32_t) == 0 && isZero &&
          isZero(*tensor)) { // an optimizer's states: most of the bytes
        device->fill(at, buffer.bytes(), 0);
        continue;
      }
      staging.assign(buffer.bytes(), std::byte(0));
      visit(*tensor, staging.data());
      device->write(at, staging);
    }
  }
}

void Session::initialize(const WeightStore *weights, uint64_t seed, const PickTensor &isWanted) {
  WeightStore constants = openConstants(bundle.manifest, folder);
  auto arrayOf = [&](const format::Tensor &source) -> const StoredArray * {
    return weights && isWeight(source) ? weights->find(source) : nullptr;
  };
  auto startsAtZero = [&](const format::Tensor &tensor) {
    const format::Tensor &source = beginsAs(bundle.manifest, tensor);
    return !source.value && source.init.kind == format::InitRule::Constant && source.init.a == 0 && !arrayOf(source);
  };
  auto load = [&](const format::Tensor &tensor, std::byte *to) {
    const format::Tensor &source = beginsAs(bundle.manifest, tensor);
    const StoredArray *array = arrayOf(source);
    // Fresh parameters follow their rules; other values that the bundle knows are as it says.
    if (!array && source.value && source.kind != format::TensorKind::Parameter)
      return loadTensor(to, tensor, rank(), *constants.find(source.name), constants.place);
    if (array)
      return loadTensor(to, tensor, rank(), *array, weights->place);
    const format::Rectangle *part = format::rectangleOf(tensor.layout, rank());
    if (part)
      core::initialize(to, tensor.type, tensor.layout, *part, source.init, source.name, seed);
  };
  auto loadAll = [&] { forEachTensor(load, startsAtZero, isWanted); };
  weights ? weights->loadChecked(loadAll) : loadAll();
  if (weights) {
    weights->checkSaved(rank(), control.world());
    weights->release();
  }
  constants.release();
}

void Session::restore(const WeightStore &checkpoint, const PickTensor &isWanted) {
  WeightStore constants = openConstants(bundle.manifest, folder);
  auto load = [&](const format::Tensor &tensor, std::byte *to) {
    if (tensor.kind == format::TensorKind::Constant)
      return loadTensor(to, tensor, rank(), *constants.find(tensor.name), constants.place);
    const format::Tensor &own = sourceOf(bundle.manifest, tensor);
    bool isAnew = checkpoint.anew.count(own.name);
    const format::Tensor &source = isAnew ? beginsAs(bundle.manifest, own) : own;
    const StoredArray *array = isAnew && !isAverage(own) ? nullptr : checkpoint.find(source.name);
    if (const format::Rectangle *part = format::rectangleOf(tensor.layout, rank()); !array && isAnew) {
      if (part)
        core::initialize(to, tensor.type, tensor.layout, *part, source.init, source.name, 0);
      return;
    }
    if (!array)
      throw Failure::at(checkpoint.place, Message::missingTensor, tensor.name, checkpoint.arrays.size(),
                        bundle.manifest.tensors.size());
    loadTensor(to, tensor, rank(), *array, checkpoint.place);
  };
  forEachTensor(load, nullptr, isWanted);
  checkpoint.checkSaved(rank(), control.world());
  checkpoint.release();
  constants.release();
}

void Session::assign(const WeightStore &some) {
  auto arrayOf = [&](const format::Tensor &tensor) { return some.find(sourceOf(bundle.manifest, tensor)); };
  forEachTensor([&](const format::Tensor &tensor,
                    std::byte *to) { loadTensor(to, tensor, rank(), *arrayOf(tensor), some.place); },
                nullptr, [&](const format::Tensor &tensor) { return arrayOf(tensor) != nullptr; });
  some.checkSaved(rank(), control.world());
  some.release();
}

void Session::setHyper(const std::string &name, double value) { hypers[name] = {value}; }

void Session::setHypers(const std::string &name, std::vector<double> values) { hypers[name] = std::move(values); }

/// The program's current hyperparameters, a value a slot.
std::vector<HyperValue> Session::hyperValues() {
  std::vector<HyperValue> values;
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    const format::Buffer &buffer = program.buffers[i];
    if (buffer.kind != format::BufferKind::Hyper)
      continue;
    const std::vector<double> &given = hypers[buffer.tensor];
    for (uint32_t slot = 0; slot < format::depthOf(program, i); ++slot) {
      double value = given.empty() ? 0 : given[std::min<size_t>(slot, given.size() - 1)];
      auto narrow = static_cast<float>(value);
      auto integer = static_cast<int64_t>(value);
      const void *from = buffer.type == DType::F32   ? &narrow
                         : buffer.type == DType::F64 ? static_cast<void *>(&value)
                                                     : &integer;
      values.push_back({loaded->address(i, slot), 0, static_cast<uint32_t>(format::sizeOf(buffer.type))});
      std::memcpy(&values.back().bits, from, values.back().bytes);
    }
  }
  return values;
}

void Session::run(const std::string &entry, const StepRows &rows, const StepRows &next) {
  fedBefore = rows.dataset && rows == upcoming && last == &loaded->entry(entry);
  current = rows, upcoming = next;
  for (std::map<std::string, double> &call : fetched)
    call.clear();
  last = &loaded->entry(entry);
  if (checkArena)
    poison();
  device->run(*last, hyperValues(), *this);
  if (current.dataset)
    current.dataset->checkWhole();
  if (checkArena)
    measureArena();
}

void Session::feed(const format::Input &input, int64_t microbatch, std::span<std::byte> to) {
  feedFrom(current, input, microbatch, to);
}

bool Session::feedNext(const format::Input &input, int64_t microbatch, std::span<std::byte> to) {
  if (!upcoming.dataset || !upcoming.dataset->isThere())
    return false;
  try {
    feedFrom(upcoming, input, microbatch, to);
    return true;
  } catch (const Failure &) { // a sample that is refused: the next run says so
    return false;
  }
}

/// Copies this rank's part of a microbatch row by row: rows of a step need not lie side by side.
static void copyRows(const StepRows &rows, const format::Input &input, int64_t microbatch, const format::Layout &layout,
                     const format::Rectangle &part, std::byte *to, std::vector<std::byte> &scratch) {
  std::vector<int64_t> rowShape = layout.shape, fromStart = part.start, size = part.size;
  std::vector<int64_t> toStart(part.start.size(), 0);
  rowShape[0] = size[0] = 1;
  fromStart[0] = 0;
  for (int64_t r = 0; r < part.size[0]; ++r) {
    uint64_t inStep = static_cast<uint64_t>(microbatch * layout.shape[0] + part.start[0] + r);
    uint64_t row = rows.order->at(rows.position + inStep);
    toStart[0] = r;
    copyBlock(to, layout.local, toStart, rows.dataset->row(input, row, scratch), rowShape, fromStart, size,
              format::sizeOf(input.type));
  }
}

void Session::feedFrom(const StepRows &rows, const format::Input &input, int64_t microbatch, std::span<std::byte> to) {
  const format::Layout &layout = format::layoutFor(input, rank());
  const format::Rectangle *part = format::rectangleOf(layout, rank());
  if (!part || part->size != layout.local)
    std::memset(to.data(), 0, to.size());
  if (!part)
    return;
  if (input.microbatched)
    return copyRows(rows, input, microbatch, layout, *part, to.data(), scratch);
  std::vector<int64_t> origin(part->start.size(), 0);
  copyBlock(to.data(), layout.local, origin, rows.dataset->whole(input), layout.shape, part->start, part->size,
            format::sizeOf(input.type));
}

void Session::fetch(const format::Output &output, int64_t microbatch, format::DType type,
                    std::span<const std::byte> from) {
  if (takeResult)
    takeResult(output, microbatch, from);
  if (!output.metric || (type != DType::F32 && type != DType::F64))
    return;
  double value = 0;
  if (float narrow; type == DType::F32) {
    std::memcpy(&narrow, from.data(), sizeof narrow);
    value = narrow;
  } else
    std::memcpy(&value, from.data(), sizeof value);
  fetched[static_cast<uint64_t>(microbatch) / bundle.manifest.microbatches].insert_or_assign(output.name, value);
}

void Session::poison() {
  uint64_t bytes = program.arena.pool + guardBytes;
  device->fill(device->arenas().dev + program.arena.state, bytes & ~uint64_t(3), poisonWord);
}

void Session::measureArena() {
  uint64_t first = program.arena.state / sizeof(uint32_t);
  HostBytes arena(*device, device->arenas().dev, use.bound + guardBytes);
  auto *words = reinterpret_cast<const uint32_t *>(arena.data());
  uint64_t word = arena.size() / sizeof *words;
  while (word > first && words[word - 1] == poisonWord)
    --word;
  use.touched = std::max(use.touched, word * sizeof *words);
}

} // namespace par::core
