#include "par/format/TorchPickle.h"

#include "PickleMachine.h"
#include "par/format/Printable.h"

#include <optional>

using namespace par::format;
using Kind = PickleValue::Kind;

/// A value may hold another one twice, and that one the next: the tree of such a graph has no end worth waiting for.
static constexpr size_t maxVisits = 1'000'000, maxNesting = 64, maxTensorName = 4096, maxStorageKey = 64,
                        maxNames = 256 << 20;

static constexpr struct {
  std::string_view name;
  DType type;
} storages[] = {{"torch.DoubleStorage", DType::F64}, {"torch.FloatStorage", DType::F32},
                {"torch.HalfStorage", DType::F16},   {"torch.BFloat16Storage", DType::BF16},
                {"torch.LongStorage", DType::I64},   {"torch.IntStorage", DType::I32},
                {"torch.ShortStorage", DType::I16},  {"torch.CharStorage", DType::I8},
                {"torch.ByteStorage", DType::U8},    {"torch.BoolStorage", DType::I1},
                {"torch.uint64", DType::U64},        {"torch.uint32", DType::U32},
                {"torch.uint16", DType::U16}};

static std::optional<DType> typeOf(PickleRef value) {
  for (const auto &entry : storages)
    if (value->kind == Kind::Global && value->text == entry.name)
      return entry.type;
  return std::nullopt;
}

static std::optional<std::vector<int64_t>> numbersOf(PickleRef list) {
  if (list->kind != Kind::List || list->items.size() > maxNesting)
    return std::nullopt;
  std::vector<int64_t> numbers;
  for (PickleRef item : list->items) {
    if (item->kind != Kind::Integer || item->integer < 0)
      return std::nullopt;
    numbers.push_back(item->integer);
  }
  return numbers;
}

static bool calls(PickleRef value, std::string_view function) {
  return value->kind == Kind::Call && value->items[0]->kind == Kind::Global && value->items[0]->text == function &&
         value->items.back()->kind == Kind::List;
}

/// _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks) and _v3, which ends with a dtype of bytes;
/// storage: ("storage", class, key, device, elements).
static std::optional<TorchTensor> tensorOf(PickleRef value) {
  bool typed = calls(value, "torch._utils._rebuild_tensor_v3");
  if (!typed && !calls(value, "torch._utils._rebuild_tensor_v2"))
    return std::nullopt;
  const std::vector<PickleRef> &given = value->items.back()->items;
  if (given.size() < (typed ? 7 : 4) || given[0]->kind != Kind::Stored || given[0]->items.size() < 5 ||
      given[1]->kind != Kind::Integer || given[1]->integer < 0)
    return std::nullopt;
  const std::vector<PickleRef> &storage = given[0]->items;
  std::optional<DType> type = typeOf(typed ? given[6] : storage[1]);
  auto shape = numbersOf(given[2]), strides = numbersOf(given[3]);
  if (!type || storage[2]->kind != Kind::Text || storage[2]->text.size() > maxStorageKey || !shape || !strides ||
      shape->size() != strides->size())
    return std::nullopt;
  return TorchTensor{"", *type, storage[2]->text, given[1]->integer, std::move(*shape), std::move(*strides)};
}

/// _rebuild_parameter(tensor, requires_grad, hooks) is its tensor.
static PickleRef withoutParameter(PickleRef value) {
  for (std::string_view function : {"torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state"})
    if (calls(value, function) && !value->items.back()->items.empty())
      return value->items.back()->items[0];
  return value;
}

namespace {

/// Walks dicts and lists for their tensors.
class Collector {
public:
  Status collect(PickleRef value, const std::string &name, size_t depth) {
    if (++visits > maxVisits)
      return Error{"holds more than 1,000,000 values"};
    if (name.size() > maxTensorName)
      return Error{"has keys of more than 4096 bytes"};
    if ((named += name.size()) > maxNames)
      return Error{"has keys of more than 256 MiB in all"};
    if (depth > maxNesting)
      return Error{"nests dicts and lists deeper than 64 levels"};
    value = withoutParameter(value);
    if (std::optional<TorchTensor> tensor = tensorOf(value)) {
      tensor->name = name;
      found.push_back(std::move(*tensor));
      return {};
    }
    if (value->kind == Kind::Call && value->items[0]->text.starts_with("torch._utils._rebuild_"))
      return Error{"holds \"" + excerpt(printable(name), 120) + "\", a tensor of a kind that is not read (" +
                   excerpt(printable(value->items[0]->text), 80) + ")"};
    size_t step = value->kind == Kind::Dict ? 2 : 1;
    if (value->kind != Kind::Dict && value->kind != Kind::List)
      return {};
    for (size_t i = 0; i + step <= value->items.size(); i += step)
      if (Status status = collect(value->items[i + step - 1], under(name, keyOf(value, i)), depth + 1); !status)
        return status;
    return {};
  }

  std::vector<TorchTensor> found;

private:
  static std::string keyOf(PickleRef value, size_t i) {
    if (value->kind == Kind::List)
      return std::to_string(i);
    PickleRef key = value->items[i];
    return key->kind == Kind::Integer ? std::to_string(key->integer) : key->text;
  }
  static std::string under(const std::string &name, const std::string &key) {
    return name.empty() ? key : name + "." + key;
  }

  size_t visits = 0, named = 0;
};

} // namespace

Expected<std::vector<TorchTensor>> par::format::readTorchPickle(std::string_view pickle) {
  PickleMachine machine(pickle);
  Expected<PickleRef> value = machine.run();
  if (!value)
    return value.error();
  Collector collector;
  if (Status status = collector.collect(*value, "", 0); !status)
    return status.error();
  return std::move(collector.found);
}
