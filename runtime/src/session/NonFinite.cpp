// Finds the origin of a NaN in the weights that a step began with, and in those of its results that are still in
// memory, in issue order.
#include "par/files/Convert.h"
#include "par/messages/Failure.h"
#include "par/session/Session.h"
#include "par/weights/Weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

namespace par::core {
namespace {

using format::Op;

/// Calls visit(buffer, address) for each operand that a step writes.
template <typename Visit>
void forEachWritten(const ExpandedEntry &entry, const Command &step, const format::Program &program, Visit visit) {
  for (size_t n = 0; step.instruction && n < step.instruction->operands.size(); ++n) {
    const format::Operand &operand = step.instruction->operands[n];
    if (operand.access != format::Access::Read)
      visit(program.buffers[operand.buffer], entry.pointers[step.operands + n]);
  }
}

/// Memory that later steps have written, as ranges of addresses that do not meet.
class Overwritten {
public:
  bool meets(const void *at, uint64_t bytes) const {
    auto begin = reinterpret_cast<uintptr_t>(at);
    auto next = ranges.lower_bound(begin + bytes); // the first that begins after
    return next != ranges.begin() && std::prev(next)->second > begin;
  }
  void add(const void *at, uint64_t bytes) {
    auto begin = reinterpret_cast<uintptr_t>(at), end = begin + bytes;
    auto next = ranges.upper_bound(end);
    while (next != ranges.begin() && std::prev(next)->second >= begin) {
      auto met = std::prev(next);
      begin = std::min(begin, met->first);
      end = std::max(end, met->second);
      next = ranges.erase(met);
    }
    ranges[begin] = end;
  }

private:
  std::map<uintptr_t, uintptr_t> ranges;
};

/// Causes of a NaN from operands without one.
constexpr const char *loneHint =
    "; a mean of nothing is NaN, as of labels that are all ignored, and so is softmax of a row that is masked whole";

/// Whether all is one number, and that NaN.
bool isLoneNaN(const HostBytes &bytes) {
  return bytes.size() == sizeof(float) && std::isnan(*reinterpret_cast<const float *>(bytes.data()));
}

bool holdsNonFinite(const HostBytes &bytes) {
  auto *values = reinterpret_cast<const float *>(bytes.data());
  return !std::all_of(values, values + bytes.size() / sizeof *values, [](float value) { return std::isfinite(value); });
}

/// Index of the first NaN of an IEEE format whose bits without the sign are above those of infinity; `count` if there
/// is none.
template <typename Bits>
uint64_t firstNaN(const std::byte *data, uint64_t count, Bits infinity) {
  constexpr Bits magnitude = static_cast<Bits>(~Bits(0)) >> 1;
  for (uint64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * sizeof bits, sizeof bits);
    if ((bits & magnitude) > infinity)
      return i;
  }
  return count;
}

uint64_t firstNaN(DType type, const std::byte *data, uint64_t count) {
  switch (type) {
  case DType::F64:
    return firstNaN<uint64_t>(data, count, 0x7ff0'0000'0000'0000u);
  case DType::F32:
    return firstNaN<uint32_t>(data, count, 0x7f80'0000u);
  case DType::F16:
    return firstNaN<uint16_t>(data, count, 0x7c00u);
  case DType::BF16:
    return firstNaN<uint16_t>(data, count, 0x7f80u);
  default:
    return count;
  }
}

/// "adamw": the kernel of an instruction that comes from no node of the model.
std::string kernelOf(const Command &step, const format::Program &program) {
  if (step.op == Op::Call)
    return program.calls[step.instruction->call].kind;
  return program.kernels[step.instruction->kernel].symbol;
}

} // namespace

std::string describeNaN(const WeightStore &store) {
  for (const auto &[name, array] : store.arrays)
    for (const Piece &piece : array.pieces) {
      auto count = static_cast<uint64_t>(elementCount(piece.size));
      if (uint64_t at = firstNaN(array.type, piece.data, count); at < count)
        return core::format("{} holds NaN in \"{}\" (element {})", store.fileOf(array), format::printable(name), at);
    }
  return "";
}

std::string describeNaN(const format::Manifest &manifest, const StepRows &rows, uint64_t count) {
  std::vector<std::byte> scratch;
  for (const format::Input &input : manifest.inputs) {
    if (!input.microbatched || !rows.dataset->has(input.name))
      continue;
    auto elements =
        static_cast<uint64_t>(elementCount(std::vector<int64_t>(input.shape.begin() + 1, input.shape.end())));
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t row = rows.order->at(rows.position + i);
      if (uint64_t at = firstNaN(input.type, rows.dataset->row(input, row, scratch), elements); at < elements)
        return core::format("row {} of the data for \"{}\" holds NaN (element {})", row, format::printable(input.name),
                            at);
    }
  }
  return "";
}

/// How many labels are among the elements of a row, or of an input without rows; nothing if one of them
/// counts.
static std::optional<uint64_t> ignoredIn(const format::Input &input, const std::byte *data, uint64_t elements) {
  uint64_t labels = 0;
  for (uint64_t i = 0; i < elements;)
    for (const format::Limits &run : input.limits)
      for (uint64_t end = i + run.count; i < std::min(end, elements); ++i) {
        if (run.ignored && integerAt(input.type, data, i) != *run.ignored)
          return std::nullopt;
        labels += run.ignored.has_value();
      }
  return labels;
}

/// The same of `count` rows.
static std::optional<uint64_t> ignoredIn(const format::Input &input, const StepRows &rows, uint64_t count) {
  auto elements = static_cast<uint64_t>(elementCount(std::span(input.shape).subspan(input.microbatched ? 1 : 0)));
  if (!input.microbatched)
    return ignoredIn(input, rows.dataset->whole(input), elements);
  std::vector<std::byte> scratch;
  uint64_t all = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const std::byte *row = rows.dataset->row(input, rows.order->at(rows.position + i), scratch);
    std::optional<uint64_t> labels = ignoredIn(input, row, elements);
    if (!labels)
      return std::nullopt;
    all += *labels;
  }
  return all;
}

std::string describeIgnored(const format::Manifest &manifest, const StepRows &rows, uint64_t count) {
  auto isLabel = [](const format::Limits &run) { return run.ignored.has_value(); };
  for (const format::Input &input : manifest.inputs) {
    auto label = std::find_if(input.limits.begin(), input.limits.end(), isLabel);
    if (label == input.limits.end() || !isInteger(input.type) || !rows.dataset->has(input.name))
      continue;
    if (uint64_t all = ignoredIn(input, rows, count).value_or(0))
      return core::format("no label of the batch counts: all {} of \"{}\" are the ignored {}", all,
                          format::printable(input.name), *label->ignored);
  }
  return "";
}

std::string Session::firstNonFinite() const {
  // Memory that later steps have written, in part or whole, no longer shows this step's result.
  Overwritten gone;
  size_t first = last->steps.size();
  std::string name, hint;
  for (size_t i = last->steps.size(); i-- > 0;) {
    const Command &step = last->steps[i];
    bool local = step.op == Op::Kernel || step.op == Op::Call;
    forEachWritten(*last, step, program, [&](const format::Buffer &buffer, void *at) {
      if (local && buffer.type == DType::F32 && !gone.meets(at, buffer.bytes()) &&
          holdsNonFinite({*device, at, buffer.bytes()})) {
        first = i;
        name = buffer.name;
        hint = isLoneNaN({*device, at, buffer.bytes()}) ? loneHint : "";
      }
    });
    forEachWritten(*last, step, program, [&](const format::Buffer &buffer, void *at) { gone.add(at, buffer.bytes()); });
  }
  if (first == last->steps.size())
    return "";
  const Command &step = last->steps[first];
  int32_t provenance = step.instruction->provenance;
  bool known = provenance >= 0 && static_cast<size_t>(provenance) < bundle.provenance.size();
  std::string what = known ? "the output of " + bundle.provenance[static_cast<size_t>(provenance)]
                           : core::format("\"{}\", which {} wrote", name, kernelOf(step, program));
  return core::format("{} ({}), microbatch {}{}", what, step.id, step.microbatch, hint);
}

} // namespace par::core
