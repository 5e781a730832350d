// V1: the files of kernels define the symbols that programs name.
#include "par/format/KernelCode.h"
#include "verify/Model.h"

#include <set>

using namespace par;
using namespace par::format;
using namespace par::verify;

/// The generated kernels of all programs, each symbol once.
static std::vector<WantedKernel> generatedKernels(const Bundle &bundle) {
  std::vector<WantedKernel> wanted;
  std::set<std::pair<std::string_view, uint64_t>> seen;
  for (const Program &program : bundle.programs)
    for (const Kernel &kernel : program.kernels) {
      uint64_t parameters = kernel.operands.size() + kernel.imms;
      if (!kernel.builtin && seen.insert({kernel.symbol, parameters}).second)
        wanted.push_back({kernel.name, kernel.symbol, parameters});
    }
  return wanted;
}

std::optional<Counterexample> par::verify::checkKernelFiles(const Bundle &bundle, const std::string &folder) {
  std::vector<WantedKernel> wanted = generatedKernels(bundle);
  if (wanted.empty())
    return std::nullopt;
  bool cuda = bundle.manifest.device == "cuda";
  for (const File &file : bundle.manifest.files) {
    auto check = !cuda && file.name == "kernels-x86.so"                                         ? checkKernelObject
                 : cuda && file.name == "kernels.ptx"                                           ? checkPtx
                 : cuda && file.name.starts_with("kernels-sm") && file.name.ends_with(".cubin") ? checkCubin
                                                                                                : nullptr;
    if (!check)
      continue;
    Expected<std::string> bytes = readListed(folder, bundle.manifest, file.name);
    Status status = bytes ? check(*bytes, wanted) : bytes.error();
    if (!status)
      return Counterexample{Property::WellFormed, file.name + ": " + status.message(), {}};
  }
  return std::nullopt;
}
