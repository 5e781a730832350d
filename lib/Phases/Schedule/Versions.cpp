#include "Versions.h"

#include "par/Dialect/Calls.h"

using namespace mlir;

namespace par {

/// The position in the order after which each call's new value is available.
std::vector<size_t> Versions::findUpdates(WriteOp write, bool late) const {
  std::vector<size_t> updates(getCalls(activities.step), 0);
  int64_t producer = activities.producer(write.getOperand());
  unsigned device = activities.deviceOf(activities.canonical(write.getOperand()));
  for (auto [position, instance] : llvm::enumerate(order.instances)) {
    const Activity &activity = activities.list[instance.activity];
    bool ends = late ? !activity.isCommunication() && activities.isOn(activity, device)
                     : static_cast<int64_t>(instance.activity) == producer;
    if (ends)
      updates[instance.microbatch / activity.count()] = position;
  }
  return updates;
}

LogicalResult Versions::follow(VariableOp variable, unsigned device, ArrayRef<size_t> updates) {
  int64_t depth = 0;
  for (Value read : activities.readsBehindOf(variable, device)) {
    std::vector<bool> reads; // by activity: asked once, and not for each of its instances
    for (const Activity &activity : activities.list)
      reads.push_back(activity.behind > 0 && activities.isOn(activity, device) &&
                      llvm::is_contained(activities.operandsOf(activity), read));
    for (auto [position, instance] : llvm::enumerate(order.instances)) {
      if (!reads[instance.activity])
        continue;
      int64_t made = llvm::lower_bound(updates, position) - updates.begin();
      if (made < versions[position])
        return read.getDefiningOp()->emitError() << "is of version " << versions[position]
                                                 << " of a parameter where the schedule's order has made " << made;
      if (made == versions[position])
        continue;
      // The update to version + n takes the place of `version` where n are kept.
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
  Value read = activities.readOf(variable, device);
  std::vector<bool> reads; // by activity
  for (const Activity &activity : activities.list)
    reads.push_back(read && activities.isOn(activity, device) &&
                    llvm::is_contained(activities.operandsOf(activity), read));
  for (auto [position, instance] : llvm::enumerate(order.instances)) {
    int64_t call = instance.microbatch / activities.list[instance.activity].count();
    int64_t made = llvm::lower_bound(updates, position) - updates.begin();
    if (reads[instance.activity] && made != call)
      return read.getDefiningOp()->emitError()
             << "reads \"" << variable.getSymName() << "\" for batch " << call
             << " where the schedule's order has written it for " << made << ": not supported yet by Schedule";
  }
  return success();
}

FailureOr<Versions> Versions::compute(const Activities &activities, const StepOrder &order,
                                      const std::set<std::pair<unsigned, std::string>> &late) {
  Versions result(activities, order);
  result.older.resize(order.instances.size());
  for (const Instance &instance : order.instances) {
    const Activity &activity = activities.list[instance.activity];
    int64_t call = instance.microbatch / activity.count();
    result.versions.push_back(activity.calls == 1 ? 0 : std::max<int64_t>(0, call - activity.behind));
  }
  if (getCalls(activities.step) == 1)
    return result;
  for (WriteOp write : activities.writes()) {
    unsigned device = activities.deviceOf(activities.canonical(write.getOperand()));
    VariableOp variable = activities.variableOf(write);
    if (activities.microbatchesOf(variable) > 0)
      continue;
    std::vector<size_t> updates = result.findUpdates(write, late.count({device, variable.getSymName().str()}) > 0);
    if (failed(result.checkOwn(variable, device, updates)) || failed(result.follow(variable, device, updates)))
      return failure();
  }
  return result;
}

} // namespace par
