#include "par/Report/Text.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace llvm;

namespace par {

/// Registers, spilled bytes, shared memory and occupancy; unknown without machine code.
static void printResources(const KernelUse &kernel, raw_ostream &os) {
  if (!kernel.resources) {
    os << "    ?     ?      ?         ?";
    return;
  }
  const KernelResources &taken = *kernel.resources;
  os << llvm::format("%5u %5u %6u %7u %%", taken.registers, unsigned(taken.spillBytes), unsigned(taken.sharedBytes),
                     kernel.occupancy);
}

/// The last line: the number of kernels, and for the last GPU the number of kernels with few blocks.
static void printCounts(const KernelFacts &facts, raw_ostream &os) {
  size_t spilled = 0, ofLast = 0, few = 0;
  for (const KernelUse &kernel : facts.kernels) {
    bool last = kernel.gpu == facts.kernels.back().gpu;
    spilled += kernel.resources && kernel.resources->spillBytes > 0;
    ofLast += last;
    few += last && kernel.onFewBlocks;
  }
  os << ofLast << " kernels";
  if (facts.assembled)
    os << ", " << spilled << " that spill";
  os << ", " << few << " on few blocks\n";
}

void printKernels(const KernelFacts &facts, raw_ostream &os) {
  if (facts.device != "cuda") {
    os << "kernels of a GPU: none; this bundle is for " << facts.device << "\n";
    return;
  }
  if (!facts.assembled)
    os << "no ptxas was found (on the PATH, in /usr/local/cuda/bin, or as PAR_PTXAS says): registers are "
          "not known\n";
  os << "gpu     symbol                  blocks threads  regs spill shared occupancy  B/element  16 B at once "
        "launches  kernel\n";
  for (const KernelUse &kernel : facts.kernels) {
    os << left_justify(kernel.gpu, 7) << " " << left_justify(kernel.symbol, 22)
       << llvm::format("%8u %7u ", kernel.blocks, kernel.threads);
    printResources(kernel, os);
    os << llvm::format(" %10.1f %11u %% %8u  @", kernel.bytesPerElement, kernel.widePercent, kernel.launches)
       << kernel.kernel << (kernel.onFewBlocks ? "  few blocks" : "") << "\n";
  }
  printCounts(facts, os);
}

} // namespace par
