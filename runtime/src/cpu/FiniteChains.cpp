#include "par/cpu/FiniteChains.h"

#include "par/kernels/Builtins.h"

#include <bit>
#include <cmath>
#include <map>
#include <tuple>

namespace par::cpu {

using format::Instruction;
using format::Operand;

namespace {

/// Immediates of the builtins after those of all convolutions.
enum Last : size_t { HasScale = kernels::table::convolutionImmediates.size(), HasBias, HasResidual, Low, High };

bool isBounded(const Instruction &convolution) {
  auto boundAt = [&](size_t index) { return std::bit_cast<double>(convolution.imms[index].value); };
  return !std::isinf(boundAt(Low)) || !std::isinf(boundAt(High));
}

/// The index of the operand that is added.
std::optional<size_t> residualOf(const Instruction &convolution, bool isInPlace) {
  auto has = [&](Last index) { return convolution.imms[index].value != 0; };
  if (!has(HasResidual))
    return std::nullopt;
  return isInPlace ? 2 : 3 + size_t(has(HasScale)) + size_t(has(HasBias));
}

} // namespace

/// The values that a block's instructions read and write, in its order.
class FiniteChains::Walk {
public:
  Walk(const format::Program &program, size_t &values) : program(program), values(values) {}

  /// The value that operand `index` of a convolution reads; `isNew`: none is known there.
  size_t read(const Instruction &convolution, size_t index, bool &isNew) {
    uint64_t bytes = program.kernels[convolution.kernel].operands[index].bytes;
    auto found = there.find(placeOf(convolution, index));
    isNew = found == there.end() || found->second.bytes < bytes;
    return isNew ? put(convolution, index) : found->second.number;
  }
  /// The new value that the operand holds.
  size_t put(const Instruction &convolution, size_t index) {
    Value value{values++, program.kernels[convolution.kernel].operands[index].bytes};
    there[placeOf(convolution, index)] = value;
    return value.number;
  }
  void forgetWritten(const Instruction &instruction) {
    for (const Operand &operand : instruction.operands)
      if (operand.access != format::Access::Read)
        std::erase_if(there, [&](const auto &one) { return std::get<0>(one.first) == rootOf(operand); });
  }

private:
  /// Root buffer, offset in it, slot's base and offset; and the queue, whose instructions run in order.
  using Place = std::tuple<uint32_t, uint64_t, int, int64_t, uint32_t>;
  struct Value {
    size_t number = 0;
    uint64_t bytes = 0;
  };

  uint32_t rootOf(const Operand &operand) const {
    uint32_t of = program.buffers[operand.buffer].of;
    return of == format::noIndex ? operand.buffer : of;
  }
  Place placeOf(const Instruction &instruction, size_t index) const {
    const Operand &operand = instruction.operands[index];
    return {rootOf(operand), program.buffers[operand.buffer].offset, operand.slot.base, operand.slot.offset,
            instruction.queue};
  }

  const format::Program &program;
  size_t &values;
  std::map<Place, Value> there;
};

void FiniteChains::follow(const format::Program &program, const format::Block &block,
                          const std::vector<const Instruction *> &followed) {
  size_t values = finite.size(), first = convolutions.size();
  std::vector<bool> looksThrough; // a residual, if it is not known; by convolution of the block
  std::vector<bool> isFound(values); // if it is wanted; by value
  Walk walk(program, values);
  auto next = followed.begin();
  for (const Instruction &instruction : block.instructions) {
    if (next == followed.end() || *next != &instruction) {
      walk.forgetWritten(instruction);
      continue;
    }
    ++next;
    Convolution &one = convolutions.emplace_back();
    one.input = walk.read(instruction, 0, one.isFirstOfInput);
    isFound.resize(values);
    isFound[one.input] = true;
    bool isInPlace = instruction.operands[2].access != format::Access::Write;
    if (std::optional<size_t> residual = residualOf(instruction, isInPlace))
      one.residual = walk.read(instruction, *residual, one.isFirstOfResidual);
    looksThrough.push_back(isInPlace && isBounded(instruction));
    walk.forgetWritten(instruction);
    one.result = walk.put(instruction, 2);
    isFound.resize(values);
    isFound[one.result] = !one.residual || looksThrough.back() || isFound[*one.residual];
  }
  finite.resize(values);
  seekWhatHelps(first, looksThrough, isFound);
}

/// A result is wanted where it spares a look through a residual, or tells of a result that is wanted.
void FiniteChains::seekWhatHelps(size_t first, const std::vector<bool> &looksThrough,
                                 const std::vector<bool> &isFound) {
  std::vector<bool> isWanted(finite.size());
  for (size_t place = convolutions.size(); place-- > first;) {
    Convolution &one = convolutions[place];
    one.seeksResult = isWanted[one.result] && isFound[one.result];
    if (one.seeksResult)
      isWanted[one.input] = true;
    if (one.residual && (one.seeksResult || looksThrough[place - first]))
      isWanted[*one.residual] = true;
  }
}

kernels::FiniteValues FiniteChains::before(size_t place) const {
  const Convolution &one = convolutions[place];
  return {.input = !one.isFirstOfInput && finite[one.input],
          .residual = one.residual && !one.isFirstOfResidual && finite[*one.residual],
          .seeksResult = one.seeksResult};
}

void FiniteChains::after(size_t place, const kernels::FiniteValues &found) {
  const Convolution &one = convolutions[place];
  finite[one.input] = found.input;
  if (one.residual)
    finite[*one.residual] = found.residual;
  finite[one.result] = found.result;
}

} // namespace par::cpu
