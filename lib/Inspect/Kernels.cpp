// Facts about generated GPU kernels: registers, spills and shared memory read from the cubin, occupancy from a
// multiprocessor's limits, and bytes by operand from the accesses in the PTX.
#include "par/Inspect/Kernels.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace par {

namespace {

/// Resources of a multiprocessor for blocks. Registers are 65,536, given in units of 256 a warp, on all of them.
struct Multiprocessor {
  StringRef sm;
  unsigned threads, blocks;
  uint64_t shared;
};
constexpr Multiprocessor multiprocessors[] = {{"sm_80", 2048, 32, 164 << 10},  {"sm_86", 1536, 16, 100 << 10},
                                              {"sm_89", 1536, 24, 100 << 10},  {"sm_90", 2048, 32, 228 << 10},
                                              {"sm_100", 2048, 32, 228 << 10}, {"sm_120", 1536, 24, 100 << 10}};

/// Launches of a kernel by a program's blocks, and the bytes that it moves.
struct Use {
  unsigned launches = 0;
  uint64_t bytes = 0, elements = 1;
};

/// Fewer blocks than a large GPU has processors, and bytes for which that is slow.
constexpr uint32_t fewBlocks = 128;
constexpr uint64_t manyBytes = 1 << 20;

} // namespace

unsigned occupancy(StringRef sm, uint32_t threads, const KernelResources &resources) {
  const Multiprocessor *has = find_if(multiprocessors, [&](const Multiprocessor &each) { return each.sm == sm; });
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
          bool reads = declared.access != format::Access::Write, writes = declared.access != format::Access::Read;
          use.bytes += declared.bytes * (reads + writes);
          use.elements = std::max(use.elements, declared.bytes / format::sizeOf(program.buffers[operand.buffer].type));
        }
      }
  return uses;
}

/// Bytes that an instruction like ld.global.nc.v4.b32 moves.
static uint64_t bytesOf(StringRef instruction) {
  SmallVector<StringRef> words;
  instruction.split(words, '.');
  uint64_t bits = 0, lanes = 1;
  for (StringRef word : words) {
    if (StringRef rest = word; rest.consume_front("v"))
      (void)rest.getAsInteger(10, lanes);
    else if (word.size() > 1 && StringRef("bfsu").contains(word[0]))
      (void)word.drop_front().getAsInteger(10, bits);
  }
  return lanes * bits / 8;
}

StringMap<Accesses> countAccesses(StringRef ptx) {
  StringMap<Accesses> all;
  Accesses *current = nullptr;
  while (!ptx.empty()) {
    StringRef line;
    std::tie(line, ptx) = ptx.split('\n');
    if (line.contains(".entry "))
      current = &all[line.split(".entry ").second.split('(').first];
    line = line.trim();
    if (!current || !(line.starts_with("ld.global") || line.starts_with("st.global")))
      continue;
    uint64_t bytes = bytesOf(line.take_until([](char c) { return isSpace(c); }));
    current->all += bytes;
    current->wide += bytes == 16 ? bytes : 0;
  }
  return all;
}

/// Whether it leaves most of a GPU idle for long.
static bool isOnFewBlocks(const KernelInfo &info, const Use &use) {
  return info.launch->grid < fewBlocks && use.bytes >= manyBytes;
}

/// A kernel on the GPU that `cubin` is for.
static KernelUse describeKernel(const Cubin &cubin, const KernelInfo &info, const Use &use, const Accesses &made) {
  KernelUse kernel{cubin.sm, info.symbol, info.kernel, info.launch->grid, info.launch->threads};
  if (auto found = cubin.resources.find(info.symbol); found != cubin.resources.end()) {
    kernel.resources = found->second;
    kernel.occupancy = occupancy(cubin.sm, info.launch->threads, found->second);
  }
  kernel.bytes = use.bytes;
  kernel.bytesPerElement = double(use.bytes) / use.elements;
  kernel.widePercent = made.wide * 100 / std::max<uint64_t>(made.all, 1);
  kernel.launches = use.launches;
  kernel.onFewBlocks = isOnFewBlocks(info, use);
  return kernel;
}

KernelFacts describeKernels(const CompiledKernels &kernels, const format::Bundle &bundle) {
  KernelFacts facts{kernels.device, !kernels.cubins.empty(), {}};
  if (kernels.device != "cuda")
    return facts;
  StringMap<Use> uses = collectUses(bundle);
  StringMap<Accesses> accesses = countAccesses(kernels.ptx);
  for (const Cubin &cubin : facts.assembled ? kernels.cubins : std::vector<Cubin>{{kernels.isa, "", {}}}) {
    llvm::StringSet<> seen;
    for (const KernelInfo &info : kernels.kernels)
      if (seen.insert(info.symbol).second)
        facts.kernels.push_back(describeKernel(cubin, info, uses[info.symbol], accesses[info.symbol]));
  }
  return facts;
}

} // namespace par
