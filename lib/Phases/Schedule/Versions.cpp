#include "Versions.h"

#include "par/Dialect/Calls.h"

using namespace mlir;

namespace par {

/// The position in the order after which each call's new value is available.
std::vector<size_t> Versions::findUpdates(WriteOp write, bool afterLoop) const {
  std::vector<size_t> updates(getCalls(tasks.step), 0);
  int64_t producer = tasks.producer(write.getOperand());
  unsigned device = tasks.deviceOf(tasks.canonical(write.getOperand()));
  for (auto [position, instance] : llvm::enumerate(order.instances)) {
    const Task &task = tasks.list[instance.task];
    bool ends = afterLoop ? !task.isCommunication() && tasks.isOn(task, device)
                          : static_cast<int64_t>(instance.task) == producer;
    if (ends)
      updates[instance.microbatch / task.count()] = position;
  }
  return updates;
}

LogicalResult Versions::follow(VariableOp variable, unsigned device, ArrayRef<size_t> updates) {
  int64_t depth = 0;
  for (Value read : tasks.staleReadsOf(variable, device)) {
    std::vector<bool> reads; // by task, computed once for all instances
    for (const Task &task : tasks.list)
      reads.push_back(task.staleness > 0 && tasks.isOn(task, device) &&
                      llvm::is_contained(tasks.operandsOf(task), read));
    for (auto [position, instance] : llvm::enumerate(order.instances)) {
      if (!reads[instance.task])
        continue;
      int64_t made = llvm::lower_bound(updates, position) - updates.begin();
      if (made < versions[position])
        return read.getDefiningOp()->emitError() << "is of version " << versions[position]
                                                 << " of a parameter where the schedule's order has made " << made;
      if (made == versions[position])
        continue;
      // With n kept versions, the update to version + n overwrites `version`.
      older[position].insert(variable.getSymName().str());
      depth = std::max(depth, made - versions[position]);
    }
  }
  if (depth > 0)
    depths[{device, variable.getSymName().str()}] = depth;
  return success();
}

/// A read without staleness sees all earlier calls' updates.
LogicalResult Versions::checkOwn(VariableOp variable, unsigned device, ArrayRef<size_t> updates) const {
  Value read = tasks.readOf(variable, device);
  std::vector<bool> reads; // by activity
  for (const Task &task : tasks.list)
    reads.push_back(read && tasks.isOn(task, device) && llvm::is_contained(tasks.operandsOf(task), read));
  for (auto [position, instance] : llvm::enumerate(order.instances)) {
    int64_t call = instance.microbatch / tasks.list[instance.task].count();
    int64_t made = llvm::lower_bound(updates, position) - updates.begin();
    if (reads[instance.task] && made != call)
      return read.getDefiningOp()->emitError()
             << "reads \"" << variable.getSymName() << "\" for batch " << call
             << " where the schedule's order has written it for " << made << ": not supported yet by Schedule";
  }
  return success();
}

FailureOr<Versions> Versions::compute(const StepTasks &tasks, const StepOrder &order,
                                      const std::set<std::pair<unsigned, std::string>> &afterLoop) {
  Versions result(tasks, order);
  result.older.resize(order.instances.size());
  for (const TaskInstance &instance : order.instances) {
    const Task &task = tasks.list[instance.task];
    int64_t call = instance.microbatch / task.count();
    result.versions.push_back(task.calls == 1 ? 0 : std::max<int64_t>(0, call - task.staleness));
  }
  if (getCalls(tasks.step) == 1)
    return result;
  for (WriteOp write : tasks.writes()) {
    unsigned device = tasks.deviceOf(tasks.canonical(write.getOperand()));
    VariableOp variable = tasks.variableOf(write);
    if (tasks.microbatchesOf(variable) > 0)
      continue;
    std::vector<size_t> updates = result.findUpdates(write, afterLoop.count({device, variable.getSymName().str()}) > 0);
    if (failed(result.checkOwn(variable, device, updates)) || failed(result.follow(variable, device, updates)))
      return failure();
  }
  return result;
}

} // namespace par
