// libcudnn-stub.so: the graph API on the imagined GPU. Descriptors are checked as they are set, closed and
// used. The heuristic proposes engines that must not be taken before one that may.
#include "Cudnn.h"

#include <algorithm>
#include <memory>
#include <set>

using namespace par;
using namespace par::stub;

using Descriptor = DnnDescriptor;

namespace par::stub {

std::map<int, DnnKindRules> &dnnKinds() {
  static std::map<int, DnnKindRules> kinds;
  return kinds;
}
std::map<int, DnnOperationRules> &dnnOperations() {
  static std::map<int, DnnOperationRules> operations;
  return operations;
}

} // namespace par::stub

namespace {

constexpr int engineKind = 2, configKind = 3, heuristicKind = 4, planKind = 5, knobKind = 7, graphKind = 15,
              packKind = 16, tensorKind = 17;
constexpr int typeHandle = 0, typeBoolean = 2, typeDouble = 5, typePointer = 6, typeHeuristicMode = 8, typeKnobType = 9,
              typeNote = 11;
constexpr int heuristicMode = 200, heuristicGraph = 201, heuristicResults = 202, configEngine = 300, configKnobs = 302,
              planHandle = 400, planConfig = 401, planWorkspace = 402, knobType = 600, knobValue = 601,
              graphHandle = 800, graphOperations = 801, tensorVirtual = 907, tensorByValue = 908, packIds = 1000,
              packPointers = 1001, packWorkspace = 1003, engineGraph = 1300, engineIndex = 1301, engineNotes = 1303;
constexpr int heuristicFallback = 2;

/// The engines of the stub: TF32 on tensor cores; sums in any order; one that may be taken, which has a knob;
/// one that needs no workspace, which the fallback knows.
struct Engine {
  std::vector<int> notes;
  bool knob = false;
  uint64_t workspace = 0;
};
const Engine engines[] = {{{0}}, {{4}}, {{}, true, 65536}, {{}}};
constexpr int theKnob = 2;
constexpr int64_t theKnobsValue = 5;

std::set<const Descriptor *> alive;
/// Handle and the stream of its last cudnnSetStream.
struct Handle {
  Stream *stream = nullptr;
};
thread_local std::string lastWords;

int answer(DnnAnswer refusal) {
  lastWords = refusal.words;
  return refusal.status;
}

size_t sizeOfType(int type) {
  switch (type) {
  case typeHandle:
  case typePointer:
  case typeDescriptor:
  case typeInt64:
  case typeDouble:
    return 8;
  case typeBoolean:
    return 1;
  default:
    return 4;
  }
}

template <typename T>
void put(Descriptor &d, int attribute, int type, const std::vector<T> &elements) {
  Descriptor::Value &value = d.values[attribute];
  value.type = type, value.count = static_cast<int64_t>(elements.size());
  value.bytes.resize(elements.size() * sizeof(T));
  std::memcpy(value.bytes.data(), elements.data(), value.bytes.size());
}

DnnAnswer checkTensor(const Descriptor &d) {
  auto dims = d.all<int64_t>(dnnDims), strides = d.all<int64_t>(dnnStrides);
  auto positive = [](int64_t value) { return value > 0; };
  if (dims.empty() || dims.size() > 8 || dims.size() != strides.size() ||
      !std::all_of(dims.begin(), dims.end(), positive))
    return {dnnBadParam, "dims and strides of a tensor"};
  auto alignment = d.one<int64_t>(dnnAlignment);
  if (alignment < 1 || (alignment & (alignment - 1)) != 0)
    return {dnnBadParam, "an alignment of " + std::to_string(alignment)};
  return {};
}

/// Tensors of a graph by their number; an empty map where two differ under one.
std::map<int64_t, const Descriptor *> tensorsOf(const Descriptor &graph) {
  std::map<int64_t, const Descriptor *> tensors;
  for (const Descriptor *operation : graph.all<const Descriptor *>(graphOperations))
    for (int attribute : dnnOperations()[operation->kind].tensors)
      if (operation->has(attribute)) {
        const Descriptor *tensor = &operation->other(attribute);
        if (!tensors.emplace(tensor->one<int64_t>(dnnId), tensor).second &&
            tensors[tensor->one<int64_t>(dnnId)] != tensor)
          return {};
      }
  return tensors;
}

DnnAnswer checkGraph(const Descriptor &d) {
  for (const Descriptor *operation : d.all<const Descriptor *>(graphOperations))
    if (!dnnOperations().count(operation->kind))
      return {dnnDescriptorType, "no operation"};
  return tensorsOf(d).empty() ? DnnAnswer{2009, "two tensors have one number"} : DnnAnswer{};
}

DnnAnswer checkEngine(const Descriptor &d) {
  auto index = d.one<int64_t>(engineIndex);
  if (index < 0 || index >= static_cast<int64_t>(std::size(engines)))
    return {2005, "no engine " + std::to_string(index)};
  return {};
}

DnnAnswer checkPlan(const Descriptor &d) {
  const Descriptor &config = d.other(planConfig);
  const Engine &engine = engines[config.other(configEngine).one<int64_t>(engineIndex)];
  auto knobs = config.all<const Descriptor *>(configKnobs);
  bool fits = engine.knob ? knobs.size() == 1 && knobs[0]->one<int>(knobType) == theKnob &&
                                knobs[0]->one<int64_t>(knobValue) == theKnobsValue
                          : knobs.empty();
  return fits ? DnnAnswer{} : DnnAnswer{dnnBadParam, "these are not the knobs of the engine"};
}

const bool registered = [] {
  auto &kinds = dnnKinds();
  kinds[tensorKind] = {"tensor",
                       {{dnnAlignment, typeInt64},
                        {dnnDataType, typeDataType},
                        {dnnDims, typeInt64},
                        {dnnStrides, typeInt64},
                        {dnnId, typeInt64},
                        {tensorVirtual, typeBoolean, false},
                        {tensorByValue, typeBoolean, false}},
                       checkTensor};
  kinds[graphKind] = {"graph", {{graphHandle, typeHandle}, {graphOperations, typeDescriptor}}, checkGraph};
  kinds[heuristicKind] = {"heuristic", {{heuristicGraph, typeDescriptor}, {heuristicMode, typeHeuristicMode}}, {}};
  kinds[engineKind] = {"engine", {{engineGraph, typeDescriptor}, {engineIndex, typeInt64}}, checkEngine};
  kinds[knobKind] = {"knob", {{knobType, typeKnobType}, {knobValue, typeInt64}}, {}};
  kinds[configKind] = {"configuration", {{configEngine, typeDescriptor}, {configKnobs, typeDescriptor, false}}, {}};
  kinds[planKind] = {"plan", {{planHandle, typeHandle}, {planConfig, typeDescriptor}}, checkPlan};
  kinds[packKind] = {"pack", {{packIds, typeInt64}, {packPointers, typePointer}, {packWorkspace, typePointer}}, {}};
  return true;
}();

/// Gives a descriptor of the caller's the values of an engine, as the library does.
void fillEngine(Descriptor &d, int64_t index) {
  put<int64_t>(d, engineIndex, typeInt64, {index});
  put<int>(d, engineNotes, typeNote, engines[index].notes);
  d.closed = true;
}

DnnAnswer fillDescriptors(const Descriptor &d, int attribute, int64_t room, int64_t *count, Descriptor **to) {
  auto index = [&] { return d.one<int64_t>(engineIndex); };
  if (d.kind == heuristicKind && attribute == heuristicResults) {
    std::vector<int64_t> found =
        d.one<int>(heuristicMode) == heuristicFallback ? std::vector<int64_t>{3} : std::vector<int64_t>{0, 1, 2};
    *count = static_cast<int64_t>(found.size());
    for (int64_t i = 0; i < std::min(room, *count); ++i) {
      put<int64_t>(*to[i], engineIndex, typeInt64, {found[static_cast<size_t>(i)]});
      to[i]->closed = true;
    }
    return {};
  }
  if (d.kind == configKind && attribute == configEngine) {
    *count = 1;
    fillEngine(*to[0], index());
    return {};
  }
  if (d.kind == configKind && attribute == configKnobs) {
    *count = engines[index()].knob;
    if (*count) {
      put<int>(*to[0], knobType, typeKnobType, {theKnob});
      put<int64_t>(*to[0], knobValue, typeInt64, {theKnobsValue});
      to[0]->closed = true;
    }
    return {};
  }
  return {dnnBadParam, "no such descriptors"};
}

uint64_t workspaceOf(const Descriptor &plan) {
  const Machine::Injection &injection = Machine::get().injection;
  if (injection.call == "cudnnWorkspace")
    return injection.after;
  return engines[plan.other(planConfig).other(configEngine).one<int64_t>(engineIndex)].workspace;
}

/// Addresses by number of tensor, if the pack has all of the plan's and they are memory of the GPU.
DnnAnswer addresses(const Descriptor &graph, const Descriptor &pack, std::map<int64_t, void *> &addressOf) {
  auto ids = pack.all<int64_t>(packIds);
  auto pointers = pack.all<void *>(packPointers);
  if (ids.size() != pointers.size())
    return {dnnBadParam, "the pack has " + std::to_string(ids.size()) + " numbers and " +
                             std::to_string(pointers.size()) + " addresses"};
  for (size_t i = 0; i < ids.size(); ++i)
    addressOf[ids[i]] = pointers[i];
  for (auto [id, tensor] : tensorsOf(graph)) {
    if (tensor->has(tensorVirtual) && tensor->one<uint8_t>(tensorVirtual))
      continue;
    if (!addressOf.count(id))
      return {dnnBadParam, "the pack has no address of tensor " + std::to_string(id)};
    if (tensor->has(tensorByValue) && tensor->one<uint8_t>(tensorByValue))
      continue;
    auto dims = tensor->all<int64_t>(dnnDims), strides = tensor->all<int64_t>(dnnStrides);
    int64_t last = 0, type = tensor->one<int>(dnnDataType);
    for (size_t d = 0; d < dims.size(); ++d)
      last += (dims[d] - 1) * strides[d];
    uint64_t size = type == 1 || type == 10 ? 8 : type == 2 || type == 9 ? 2 : 4;
    auto address = reinterpret_cast<uint64_t>(addressOf[id]);
    if (address % static_cast<uint64_t>(tensor->one<int64_t>(dnnAlignment)) != 0)
      return {2003, "tensor " + std::to_string(id) + " is less aligned than it says"};
    if (Machine::get().checkRange(address, static_cast<uint64_t>(last + 1) * size))
      return {dnnBadParam, "tensor " + std::to_string(id) + " lies outside of the GPU's memory"};
  }
  return {};
}

/// Memory for the tensors between operations, at most 4 bytes an element.
std::vector<std::shared_ptr<std::vector<std::byte>>> makeVirtual(const Descriptor &graph,
                                                                 std::map<int64_t, void *> &addressOf) {
  std::vector<std::shared_ptr<std::vector<std::byte>>> made;
  for (auto [id, tensor] : tensorsOf(graph)) {
    if (!tensor->has(tensorVirtual) || !tensor->one<uint8_t>(tensorVirtual))
      continue;
    size_t elements = 1;
    std::vector<int64_t> dims = tensor->all<int64_t>(dnnDims), strides = tensor->all<int64_t>(dnnStrides);
    for (size_t d = 0; d < dims.size(); ++d)
      elements += static_cast<size_t>((dims[d] - 1) * strides[d]);
    made.push_back(std::make_shared<std::vector<std::byte>>(4 * elements));
    addressOf[id] = made.back()->data();
  }
  return made;
}

} // namespace

extern "C" {

size_t cudnnGetVersion() {
  const char *text = std::getenv("PAR_STUB_CUDNN_VERSION");
  return text && *text ? static_cast<size_t>(std::atoll(text)) : 91900;
}

const char *cudnnGetErrorString(int status) {
  return status == dnnNotSupported ? "CUDNN_STATUS_NOT_SUPPORTED"
         : status / 1000 == 2      ? "CUDNN_STATUS_BAD_PARAM"
         : status / 1000 == 5      ? "CUDNN_STATUS_EXECUTION_FAILED"
                                   : "CUDNN_STATUS_INTERNAL_ERROR";
}
void cudnnGetLastErrorString(char *text, size_t bytes) {
  std::strncpy(text, lastWords.c_str(), bytes);
  lastWords.clear();
}

int cudnnCreate(Handle **handle) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  *handle = new Handle;
  return machine.note("cudnnCreate", "");
}
int cudnnDestroy(Handle *handle) {
  delete handle;
  return 0;
}
int cudnnSetStream(Handle *handle, Stream *stream) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  handle->stream = stream;
  return machine.note("cudnnSetStream", "stream " + std::to_string(stream->id));
}

int cudnnBackendCreateDescriptor(int kind, Descriptor **descriptor) {
  auto held = Machine::get().lock();
  if (!dnnKinds().count(kind))
    return answer({dnnNotSupported, "descriptors of kind " + std::to_string(kind)});
  *descriptor = new Descriptor{kind, false, {}};
  alive.insert(*descriptor);
  return 0;
}

int cudnnBackendDestroyDescriptor(Descriptor *descriptor) {
  auto held = Machine::get().lock();
  if (!alive.erase(descriptor))
    return answer({dnnBadParam, "destroyed twice"});
  delete descriptor;
  return 0;
}

int cudnnBackendSetAttribute(Descriptor *d, int attribute, int type, int64_t count, const void *elements) {
  auto held = Machine::get().lock();
  if (!alive.count(d) || d->closed)
    return answer({dnnBadParam, "the descriptor is closed or destroyed"});
  const DnnKindRules &kind = dnnKinds()[d->kind];
  auto rule = std::find_if(kind.rules.begin(), kind.rules.end(),
                           [&](const DnnRule &one) { return one.attribute == attribute; });
  if (rule == kind.rules.end())
    return answer({dnnBadParam, std::string(kind.name) + " has no attribute " + std::to_string(attribute)});
  if (rule->type != type || count < 1 || !elements)
    return answer(
        {dnnAttributeType, "attribute " + std::to_string(attribute) + " is of type " + std::to_string(rule->type)});
  if (type == typeDescriptor)
    for (int64_t i = 0; i < count; ++i)
      if (auto *other = static_cast<Descriptor *const *>(elements)[i]; !alive.count(other) || !other->closed)
        return answer({dnnNotFinalized, "attribute " + std::to_string(attribute) + " of " + kind.name});
  auto *from = static_cast<const std::byte *>(elements);
  d->values[attribute] = {type, count, {from, from + static_cast<size_t>(count) * sizeOfType(type)}};
  return 0;
}

int cudnnBackendGetAttribute(Descriptor *d, int attribute, int type, int64_t room, int64_t *count, void *to) {
  auto held = Machine::get().lock();
  if (!alive.count(d) || !d->closed)
    return answer({dnnNotFinalized, "a value is asked of an open descriptor"});
  if (type == typeDescriptor)
    return answer(fillDescriptors(*d, attribute, room, count, static_cast<Descriptor **>(to)));
  if (d->kind == planKind && attribute == planWorkspace)
    put<uint64_t>(*d, planWorkspace, typeInt64, {workspaceOf(*d)});
  auto place = d->values.find(attribute);
  if (place == d->values.end() || place->second.type != type)
    return answer({dnnAttributeType, "attribute " + std::to_string(attribute) + " is not there"});
  *count = place->second.count;
  std::memcpy(to, place->second.bytes.data(), static_cast<size_t>(std::min(room, *count)) * sizeOfType(type));
  return 0;
}

int cudnnBackendFinalize(Descriptor *d) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  if (!alive.count(d) || d->closed)
    return answer({dnnBadParam, "the descriptor is closed or destroyed"});
  const DnnKindRules &kind = dnnKinds()[d->kind];
  for (const DnnRule &rule : kind.rules)
    if (rule.required && !d->has(rule.attribute))
      return answer({dnnBadParam, std::string(kind.name) + " lacks attribute " + std::to_string(rule.attribute)});
  if (DnnAnswer refusal = kind.check ? kind.check(*d) : DnnAnswer{}; refusal.status)
    return answer(refusal);
  if (d->kind == planKind && machine.injection.call == "cudnnPlans")
    return answer({machine.injection.code, "injected"});
  d->closed = true;
  if (d->kind == engineKind)
    fillEngine(*d, d->one<int64_t>(engineIndex));
  return machine.note(std::string("cudnnBackendFinalize"), kind.name);
}

int cudnnBackendExecute(Handle *handle, Descriptor *plan, Descriptor *pack) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  if (!alive.count(plan) || !alive.count(pack) || plan->kind != planKind || pack->kind != packKind || !plan->closed ||
      !pack->closed || plan->one<Handle *>(planHandle) != handle || !handle->stream)
    return answer({dnnBadParam, "plan, pack or stream"});
  const Descriptor &graph = plan->other(planConfig).other(configEngine).other(engineGraph);
  std::map<int64_t, void *> addressOf;
  if (DnnAnswer refusal = addresses(graph, *pack, addressOf); refusal.status)
    return answer(refusal);
  auto workspace = reinterpret_cast<uint64_t>(pack->one<void *>(packWorkspace));
  if (uint64_t bytes = workspaceOf(*plan); bytes > 0 && machine.checkRange(workspace, bytes))
    return answer({2006, "the workspace is smaller than " + std::to_string(bytes) + " bytes"});
  std::vector<std::shared_ptr<std::vector<std::byte>>> between = makeVirtual(graph, addressOf);
  std::string names;
  std::vector<std::function<void()>> work;
  for (const Descriptor *operation : graph.all<const Descriptor *>(graphOperations)) {
    names += std::string(dnnKinds()[operation->kind].name) + " ";
    work.push_back(dnnOperations()[operation->kind].work(*operation, addressOf));
  }
  if (int injected = machine.note("cudnnBackendExecute", names + "stream " + std::to_string(handle->stream->id)))
    return answer({injected, "injected"});
  int64_t engine = plan->other(planConfig).other(configEngine).one<int64_t>(engineIndex);
  uint64_t takes = engine == machine.slowEngine ? 1000 : 1;
  machine.enqueue(*handle->stream, {nullptr, [work, between, takes, &machine] {
                                      machine.extra += takes;
                                      for (const auto &one : work)
                                        one();
                                    }});
  return 0;
}

} // extern "C"
