// Agrees on matmul algorithms: rank 0 takes them from the tuning file, by timing or from cuBLASLt's heuristic, sends
// them to all, and each rank builds its matmuls with the same ones, so that results are equal.
#include "ShareTuning.h"

#include "Autotune.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <sstream>

namespace par::cuda {

using core::Failure;
using core::Message;

uint32_t alignmentOf(const format::Program &program, const format::Instruction &instruction) {
  uint64_t bits = 256;
  for (const format::Operand &operand : instruction.operands) {
    const format::Buffer &self = program.buffers[operand.buffer];
    const format::Buffer &owner = self.of == format::noIndex ? self : program.buffers[self.of];
    bits |= self.of == format::noIndex ? 0 : self.offset;
    for (uint64_t at : owner.at)
      bits |= at;
  }
  return 1u << std::countr_zero(bits);
}

bool anyGemm(const format::Bundle &bundle) {
  return std::any_of(bundle.programs.begin(), bundle.programs.end(),
                     [](const format::Program &program) { return !program.calls.empty(); });
}

namespace {

/// The alignment that all uses of a call have.
uint32_t alignmentOfCall(const format::Program &program, uint32_t call) {
  uint32_t alignment = 256;
  for (const format::Block &block : program.blocks)
    for (const format::Instruction &instruction : block.instructions)
      if (instruction.op == format::Op::Call && instruction.call == call)
        alignment = std::min(alignment, alignmentOf(program, instruction));
  return alignment;
}

/// All that an algorithm depends on, as one word.
std::string keyOf(const format::Call &call, uint32_t alignment) {
  std::ostringstream key;
  key << format::toString(call.type) << format::toString(call.typeC) << (call.transA ? 't' : 'n')
      << (call.transB ? 't' : 'n') << call.m << 'x' << call.n << 'x' << call.k << ',' << call.lda << ',' << call.ldb
      << ',' << call.ldc << ',' << (call.beta != 0) << call.bias << format::toString(call.epilogue) << ','
      << call.workspace << ',' << alignment;
  for (size_t i = 0; i < call.batch.size(); ++i)
    key << ',' << call.batch[i] << ':' << call.strideA[i] << ':' << call.strideB[i] << ':' << call.strideC[i];
  return key.str();
}

/// Rank 0's choice: by the file, else by timing, else the heuristic's first proposal. Returns the remark.
std::string decide(const SharedTuning &of, const Blas &blas) {
  const core::Tuning &tuning = of.options.tuning;
  TunedFor here{of.gpu.name(), blas.release(), of.options.bundle->manifest.bundleHash};
  std::string said;
  const TunedGemms kept = recall(tuning, here, said).products;
  TunedGemms &chosen = of.decided.file.products;
  of.decided.file.of = here;
  Autotune trial(of.gpu, of.stream, of.lent);
  size_t fresh = 0;
  for (const format::Program &program : of.options.bundle->programs)
    for (uint32_t i = 0; i < program.calls.size(); ++i) {
      const format::Call &call = program.calls[i];
      uint32_t alignment = alignmentOfCall(program, i);
      auto [place, isNew] = chosen.try_emplace(keyOf(call, alignment));
      if (!isNew)
        continue;
      Gemm product(of.gpu, blas, call, alignment);
      if (auto known = kept.find(place->first); known != kept.end()) {
        place->second = known->second;
        if (int status = product.check(known->second.algorithms))
          throw Failure::at(tuning.read, Message::tuningRefused, place->first, blas.release(), status);
        continue;
      }
      ++fresh;
      std::vector<Algorithms> proposed = product.propose();
      place->second = tuning.times ? trial.fastest(product, call, proposed) : TunedGemm{proposed.front(), 0};
    }
  of.decided.fresh += fresh;
  std::string many = std::to_string(chosen.size()) + (chosen.size() == 1 ? " matmul: " : " matmuls: ");
  return "tuning  " + said + many +
         (fresh == 0     ? "algorithms of " + tuning.read
          : tuning.times ? "algorithms timed on " + here.gpu
                         : "algorithms as cuBLASLt proposes them") +
         (fresh && !tuning.write.empty() ? ", kept in " + tuning.write : "");
}

/// "KEY algorithms word word ... word" a line.
std::string encode(const TunedGemms &products) {
  std::ostringstream text;
  for (const auto &[key, product] : products) {
    text << key << ' ' << product.algorithms.size();
    for (const BlasAlgorithm &algorithm : product.algorithms)
      for (uint64_t word : algorithm)
        text << ' ' << word;
    text << '\n';
  }
  return text.str();
}

/// Separate sums share one buffer for partial sums.
void checkQueue(const format::Program &program, uint32_t call) {
  if (!program.calls[call].sums())
    return;
  uint32_t queue = format::noIndex;
  for (const format::Block &block : program.blocks)
    for (const format::Instruction &instruction : block.instructions)
      if (instruction.op == format::Op::Call && instruction.call == call) {
        if (queue != format::noIndex && queue != instruction.queue)
          throw Failure::at("", Message::unsupportedInstruction, "call \"" + program.calls[call].name + "\"",
                            "a sum on more than one queue");
        queue = instruction.queue;
      }
}

} // namespace

TuningFile recall(const core::Tuning &tuning, const TunedFor &here, std::string &why) {
  if (tuning.read.empty() || !std::filesystem::exists(tuning.read))
    return {};
  TuningFile file = readTuning(tuning.read);
  auto differ = [](const char *what, const std::string &theirs, const std::string &ours) {
    return theirs == ours ? "" : std::string(", ") + what + " " + theirs + " instead of " + ours;
  };
  std::string differences = differ("GPU", file.of.gpu, here.gpu);
  if (!here.library.empty())
    differences += differ("cuBLASLt", file.of.library, here.library);
  if (file.of.bundle != here.bundle)
    differences += ", bundle " + file.of.bundle.substr(0, 6) + " instead of " + here.bundle.substr(0, 6);
  if (differences.empty())
    return file;
  why = tuning.read + " is not used: it is for " + differences.substr(2) + "; ";
  return {};
}

void keep(const core::Tuning &tuning, const Decided &decided) {
  if (!tuning.write.empty() && (decided.fresh > 0 || tuning.write != tuning.read))
    writeTuning(tuning.write, decided.file);
}

std::vector<std::unique_ptr<Gemm>> shareMatmulTuning(const SharedTuning &of, const Blas &blas, std::string &remark) {
  // Ranks that share this GPU have their memory by now: a trial that needs more than the lent memory takes from the
  // rest.
  of.control.barrier("products");
  std::string chosen;
  if (of.control.rank() == 0) {
    remark += (remark.empty() ? "" : "\n") + decide(of, blas);
    chosen = encode(of.decided.file.products);
  }
  std::istringstream text(of.control.broadcast("algorithms", chosen));
  std::map<std::string, Algorithms> known;
  size_t count = 0;
  for (std::string key; text >> key >> count;) {
    known[key].resize(count);
    for (BlasAlgorithm &algorithm : known[key])
      for (uint64_t &word : algorithm)
        text >> word;
  }
  const format::Program &program = of.options.program();
  std::vector<std::unique_ptr<Gemm>> products;
  for (uint32_t i = 0; i < program.calls.size(); ++i) {
    checkQueue(program, i);
    uint32_t alignment = alignmentOfCall(program, i);
    products.push_back(std::make_unique<Gemm>(of.gpu, blas, program.calls[i], alignment));
    products.back()->choose(known.at(keyOf(program.calls[i], alignment)));
  }
  return products;
}

} // namespace par::cuda
