#include "par/Base/PlanPlace.h"

using namespace mlir;

namespace par {

Location placeInPlan(MLIRContext *context, StringRef said) {
  auto [rest, column] = said.rsplit(':');
  auto [file, line] = rest.rsplit(':');
  unsigned numbers[2];
  if (line.getAsInteger(10, numbers[0]) || column.getAsInteger(10, numbers[1]))
    return FileLineColLoc::get(context, said, 0, 0);
  return FileLineColLoc::get(context, file, numbers[0], numbers[1]);
}

} // namespace par
