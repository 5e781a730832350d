#include "cuda/Agree.h"

#include <algorithm>
#include <bit>
#include <sstream>

namespace par::cuda {

uint32_t alignmentOf(const format::Program &program, const format::Instruction &instruction) {
  uint64_t bits = 256;
  for (const format::Operand &operand : instruction.operands) {
    const format::Buffer &self = program.buffers[operand.buffer];
    const format::Buffer &owner = self.of == format::kNone ? self : program.buffers[self.of];
    bits |= self.of == format::kNone ? 0 : self.offset;
    for (uint64_t at : owner.at)
      bits |= at;
  }
  return 1u << std::countr_zero(bits);
}

bool anyProduct(const format::Bundle &bundle) {
  return std::any_of(bundle.programs.begin(), bundle.programs.end(),
                     [](const format::Program &program) { return !program.calls.empty(); });
}

namespace {

/// Of all uses of a call.
uint32_t alignmentOf(const format::Program &program, uint32_t call) {
  uint32_t alignment = 256;
  for (const format::Block &block : program.blocks)
    for (const format::Instruction &instruction : block.instructions)
      if (instruction.op == format::Op::Call && instruction.call == call)
        alignment = std::min(alignment, cuda::alignmentOf(program, instruction));
  return alignment;
}

/// All that an algorithm depends on, as one word.
std::string keyOf(const format::Call &call, uint32_t alignment) {
  std::ostringstream key;
  key << format::toString(call.type) << (call.transA ? 't' : 'n') << (call.transB ? 't' : 'n') << call.m
      << 'x' << call.n << 'x' << call.k << ',' << call.lda << ',' << call.ldb << ',' << call.ldc << ','
      << (call.beta != 0) << call.bias << ',' << call.workspace << ',' << alignment;
  for (size_t i = 0; i < call.batch.size(); ++i)
    key << ',' << call.batch[i] << ':' << call.strideA[i] << ':' << call.strideB[i] << ':' << call.strideC[i];
  return key.str();
}

/// "KEY word word ... word" a line.
std::string propose(const Gpu &gpu, const Blas &blas, const format::Bundle &bundle) {
  std::map<std::string, BlasAlgorithm> known;
  std::ostringstream text;
  for (const format::Program &program : bundle.programs)
    for (uint32_t i = 0; i < program.calls.size(); ++i) {
      uint32_t alignment = alignmentOf(program, i);
      auto [place, isNew] = known.try_emplace(keyOf(program.calls[i], alignment));
      if (!isNew)
        continue;
      text << place->first;
      for (uint64_t word : Product(gpu, blas, program.calls[i], alignment).propose())
        text << ' ' << word;
      text << '\n';
    }
  return text.str();
}

} // namespace

std::vector<std::unique_ptr<Product>> agreeOnProducts(const Gpu &gpu, const Blas &blas,
                                                      const core::DeviceOptions &options,
                                                      comm::Control &control) {
  std::istringstream text(
      control.broadcast("algorithms", control.rank() == 0 ? propose(gpu, blas, *options.bundle) : ""));
  std::map<std::string, BlasAlgorithm> known;
  for (std::string key; text >> key;)
    for (uint64_t &word : known[key])
      text >> word;
  const format::Program &program = options.program();
  std::vector<std::unique_ptr<Product>> products;
  for (uint32_t i = 0; i < program.calls.size(); ++i) {
    uint32_t alignment = alignmentOf(program, i);
    products.push_back(std::make_unique<Product>(gpu, blas, program.calls[i], alignment));
    products.back()->choose(known.at(keyOf(program.calls[i], alignment)));
  }
  return products;
}

} // namespace par::cuda
