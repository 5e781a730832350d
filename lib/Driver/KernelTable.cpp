#include "KernelTable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace par {

namespace {

/// What a multiprocessor has for blocks. Registers are 65,536, given in units of 256 a warp, on all of them.
struct Multiprocessor {
  StringRef sm;
  unsigned threads, blocks;
  uint64_t shared;
};
constexpr Multiprocessor multiprocessors[] = {
    {"sm_80", 2048, 32, 164 << 10}, {"sm_86", 1536, 16, 100 << 10},  {"sm_89", 1536, 24, 100 << 10},
    {"sm_90", 2048, 32, 228 << 10}, {"sm_100", 2048, 32, 228 << 10}, {"sm_120", 1536, 24, 100 << 10}};

/// How often a program's blocks launch a kernel, and what it moves.
struct Use {
  unsigned launches = 0;
  uint64_t bytes = 0, elements = 1;
};

} // namespace

unsigned occupancy(StringRef sm, uint32_t threads, const KernelResources &resources) {
  const Multiprocessor *has =
      find_if(multiprocessors, [&](const Multiprocessor &each) { return each.sm == sm; });
  if (has == std::end(multiprocessors))
    has = multiprocessors;
  uint64_t warps = divideCeil(threads, 32u);
  uint64_t registers = alignTo(std::max(resources.registers, 1u) * 32, 256) * warps;
  // The system takes 1 KiB of shared memory for each block.
  uint64_t shared = alignTo(resources.sharedBytes + 1024, 128);
  uint64_t blocks =
      std::min<uint64_t>({has->blocks, has->threads / (warps * 32), 65536 / registers, has->shared / shared});
  return blocks * warps * 32 * 100 / has->threads;
}

/// Bytes by operand, and the elements of the largest result, taking the bundle's word for types.
static StringMap<Use> collectUses(const format::Bundle &bundle) {
  StringMap<Use> uses;
  for (const format::Program &program : bundle.programs)
    for (const format::Block &block : program.blocks)
      for (const format::Instruction &it : block.instructions) {
        if (it.op != format::Op::Kernel || program.kernels[it.kernel].builtin)
          continue;
        const format::Kernel &kernel = program.kernels[it.kernel];
        Use &use = uses[kernel.symbol];
        ++use.launches;
        use.bytes = 0;
        for (auto [operand, declared] : zip(it.operands, kernel.operands)) {
          bool reads = declared.access != format::Access::Write,
               writes = declared.access != format::Access::Read;
          use.bytes += declared.bytes * (reads + writes);
          use.elements =
              std::max(use.elements, declared.bytes / format::sizeOf(program.buffers[operand.buffer].type));
        }
      }
  return uses;
}

void printKernels(const CompiledKernels &kernels, const format::Bundle &bundle, raw_ostream &out) {
  StringMap<Use> uses = collectUses(bundle);
  StringSet<> seen;
  uint64_t spilled = 0;
  if (kernels.device != "cuda") {
    out << "kernels of a GPU: none; this bundle is for " << kernels.device << "\n";
    return;
  }
  if (kernels.cubins.empty())
    out << "no ptxas was found (on the PATH, in /usr/local/cuda/bin, or as PAR_PTXAS says): registers are "
           "not known\n";
  out << "gpu     symbol    blocks threads  regs spill shared occupancy  B/element launches  kernel\n";
  for (const Cubin &cubin :
       kernels.cubins.empty() ? std::vector<Cubin>{{kernels.isa, "", {}}} : kernels.cubins) {
    seen.clear();
    for (const KernelInfo &info : kernels.kernels) {
      if (!seen.insert(info.symbol).second)
        continue;
      const Use &use = uses[info.symbol];
      out << left_justify(cubin.sm, 7) << " " << left_justify(info.symbol, 8)
          << llvm::format("%8u %7u ", info.launch->grid, info.launch->threads);
      auto found = cubin.resources.find(info.symbol);
      if (found == cubin.resources.end()) {
        out << "    ?     ?      ?         ?";
      } else {
        const KernelResources &taken = found->second;
        spilled += taken.spillBytes > 0;
        out << llvm::format("%5u %5u %6u %7u %%", taken.registers, unsigned(taken.spillBytes),
                      unsigned(taken.sharedBytes), occupancy(cubin.sm, info.launch->threads, taken));
      }
      out << llvm::format(" %10.1f %8u  @", double(use.bytes) / use.elements, use.launches) << info.kernel << "\n";
    }
  }
  out << seen.size() << " kernels";
  if (!kernels.cubins.empty())
    out << ", " << spilled << " that spill";
  out << "\n";
}

} // namespace par
