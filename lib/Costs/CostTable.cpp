// The table of a hardware file.
#include "par/Costs/CostTable.h"

using namespace par;

llvm::StringRef par::toString(CostSource source) {
  static constexpr llvm::StringRef names[] = {"measured", "table", "peak"};
  return names[static_cast<unsigned>(source)];
}

llvm::Expected<CostTable> CostTable::find(llvm::StringRef nameOrPath) {
  llvm::Expected<Hardware> hardware = Hardware::find(nameOrPath);
  if (!hardware)
    return hardware.takeError();
  return CostTable(std::move(*hardware));
}
