#include "Executor.h"

#include "par/messages/Failure.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace par::cuda {

using core::Command;
using core::Failure;
using core::Message;
using format::DType;
using format::Op;

void Executor::fork(uint32_t from, std::span<const uint32_t> queues) {
  gpu->check(gpu->eventRecord(lanes.tails[from], lanes.streams[from]), "cuEventRecord");
  for (uint32_t queue : queues)
    if (queue != from)
      gpu->check(gpu->streamWait(lanes.streams[queue], lanes.tails[from], 0), "cuStreamWaitEvent");
}

void Executor::join(std::span<const uint32_t> queues, uint32_t to) {
  for (uint32_t queue : queues)
    if (queue != to)
      order(gpu, lanes.streams[queue], lanes.streams[to], lanes.tails[queue]);
}

void Executor::issue(const PreparedEntry &entry, uint32_t index) {
  const core::ExpandedEntry &source = entry.source;
  const Command &step = source.steps[index];
  const format::Instruction &instruction = *step.instruction;
  Stream stream = lanes.streams[step.queue];
  void *const *operands = source.pointers.data() + step.operands;
  auto at = [&](size_t operand) { return reinterpret_cast<Address>(operands[operand]); };
  switch (step.op) {
  case Op::Kernel:
    kernels.launch(entry.kernels[entry.kernelOf[index]], {operands, instruction.operands.size()},
                   {source.immediates.data() + step.immediates, instruction.imms.size()},
                   lanes.scratch[step.queue].data(), stream);
    return;
  case Op::Call:
    products[instruction.call]->run(operands, stream);
    return;
  case Op::Copy:
    gpu->check(gpu->copy(at(1), at(0), step.bytes, stream), "cuMemcpyAsync");
    return;
  case Op::Fill:
    return fill(step, at(0), stream);
  case Op::Signal:
    gpu->check(gpu->eventRecord(lanes.events[entry.eventOf[index]], stream), "cuEventRecord");
    return;
  case Op::Wait:
    if (step.awaited >= 0)
      gpu->check(gpu->streamWait(stream, lanes.events[entry.eventOf[static_cast<size_t>(step.awaited)]], 0),
                 "cuStreamWaitEvent");
    return;
  case Op::Feed:
    gpu->check(gpu->copyToDevice(at(0), entry.staging() + entry.stagingOf[index], step.bytes, stream),
               "cuMemcpyHtoDAsync");
    return;
  case Op::Fetch:
    gpu->check(gpu->copyToHost(entry.staging() + entry.stagingOf[index], at(0), step.bytes, stream),
               "cuMemcpyDtoHAsync");
    return;
  case Op::Coll:
  case Op::Send:
  case Op::Recv:
  case Op::Group:
    communicators->post(stream, std::span(source.communications).subspan(step.firstUnit, step.units));
    return;
  }
}

namespace {

/// The word of 2 bytes that a value is in bf16: rounded to nearest, ties to even.
uint16_t brainOf(double value) {
  auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// In f16: by scaling to units of the last place.
uint16_t halfOf(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double size = std::fabs(value);
  if (!(size < 65520))
    return sign | (std::isnan(value) ? 0x7e00 : 0x7c00);
  int exponent = std::max(std::ilogb(size == 0 ? 1e-30 : size), -14);
  auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  // Units of a normal number include the leading 1, which counts the exponent up by one.
  return static_cast<uint16_t>(sign | (static_cast<uint32_t>(exponent + 14) * 1024 + units));
}

} // namespace

void Executor::fill(const Command &step, Address at, Stream stream) {
  auto words = [&](uint64_t bits) {
    auto low = static_cast<uint32_t>(bits), high = static_cast<uint32_t>(bits >> 32);
    if (low == high)
      return gpu->set32(at, low, step.bytes / 4, stream);
    Result result = gpu->set32Strided(at, 8, low, 1, step.bytes / 8, stream);
    return result != success ? result : gpu->set32Strided(at + 4, 8, high, 1, step.bytes / 8, stream);
  };
  auto fillAs = [&] {
    if (step.value == 0)
      return gpu->set8(at, 0, step.bytes, stream);
    switch (step.type) {
    case DType::F32:
      return gpu->set32(at, std::bit_cast<uint32_t>(static_cast<float>(step.value)), step.bytes / 4, stream);
    case DType::I32:
    case DType::U32:
      return gpu->set32(at, static_cast<uint32_t>(static_cast<int32_t>(step.value)), step.bytes / 4, stream);
    case DType::F64:
      return words(std::bit_cast<uint64_t>(step.value));
    case DType::I64:
    case DType::U64:
      return words(static_cast<uint64_t>(static_cast<int64_t>(step.value)));
    case DType::F16:
      return gpu->set16(at, halfOf(step.value), step.bytes / 2, stream);
    case DType::BF16:
      return gpu->set16(at, brainOf(step.value), step.bytes / 2, stream);
    case DType::I16:
    case DType::U16:
      return gpu->set16(at, static_cast<uint16_t>(static_cast<int16_t>(step.value)), step.bytes / 2, stream);
    case DType::I8:
    case DType::U8:
    case DType::I1:
      break;
    }
    return gpu->set8(at, static_cast<unsigned char>(static_cast<int>(step.value)), step.bytes, stream);
  };
  gpu->check(fillAs(), std::string("fill of ") + step.id);
}

} // namespace par::cuda
