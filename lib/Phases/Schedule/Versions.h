#pragma once

#include "StepOrder.h"

#include <set>

namespace par {

/// The version of the parameters that each instance uses, with several calls of a step between flushes. Version v has v
/// updates. A microbatch of call c computes with version max(0, c - staleness), forward and backward alike. A device
/// has the newest version in the variable's own buffer; an update leaves the one that it replaces in another buffer
/// while microbatches still compute with it. 1f1b on the first of two stages, with staleness 1:
///
///     forward 0   forward 1   backward 0   update 0   forward 2   backward 1   update 1
///     version 0   0           0            0          1           0 (older)    1
class Versions {
public:
  /// `late` are the states, by device and name, that are written after all other tasks of a call.
  static mlir::FailureOr<Versions> compute(const StepTasks &tasks, const StepOrder &order,
                                           const std::set<std::pair<unsigned, std::string>> &afterLoop);

  /// Version of the i-th instance of the order, and the variables of which its device has a newer one by then.
  int64_t at(size_t position) const { return versions[position]; }
  const std::set<std::string> &olderAt(size_t position) const { return older[position]; }
  /// How many older versions of a variable a device keeps at once.
  int64_t countOlder(unsigned device, VariableOp variable) const {
    auto found = depths.find({device, variable.getSymName().str()});
    return found == depths.end() ? 0 : found->second;
  }

private:
  Versions(const StepTasks &tasks, const StepOrder &order) : tasks(tasks), order(order) {}
  std::vector<size_t> findUpdates(WriteOp write, bool afterLoop) const;
  mlir::LogicalResult checkOwn(VariableOp variable, unsigned device, mlir::ArrayRef<size_t> updates) const;
  mlir::LogicalResult follow(VariableOp variable, unsigned device, mlir::ArrayRef<size_t> updates);

  const StepTasks &tasks;
  const StepOrder &order;
  std::vector<int64_t> versions;
  std::vector<std::set<std::string>> older;
  std::map<std::pair<unsigned, std::string>, int64_t> depths;
};

} // namespace par
