// Orders the tasks of all ranks by simulated start times, with a priority queue over the dependencies and the
// resources' listed orders. `verify` runs the order with one communication engine a rank.
#include "par/Solver/Order/GlobalOrder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <queue>

using namespace par;
using llvm::Error;
using llvm::Twine;

/// `NAME [for NS] [on RESOURCE] ranks R... [after NAME...]`
static OrderTask parseTask(ProblemText &text, const llvm::StringMap<unsigned> &index) {
  OrderTask task;
  task.name = text.word().str();
  if (text.accept("for"))
    task.duration = text.integer();
  if (text.accept("on"))
    task.resource = text.word().str();
  bool after = !text.accept("ranks") && text.accept("after");
  while (!text.atEnd()) {
    if (!after && text.accept("after")) {
      after = true;
    } else if (!after) {
      task.ranks.push_back(text.integer());
    } else {
      llvm::StringRef name = text.word();
      auto found = index.find(name);
      if (found == index.end())
        text.fail("no task '" + name + "' is defined above");
      else
        task.after.push_back(found->second);
    }
  }
  return task;
}

llvm::Expected<GlobalOrderProblem> GlobalOrderProblem::parse(ProblemText &text) {
  GlobalOrderProblem problem;
  llvm::StringMap<unsigned> index;
  while (text.next()) {
    llvm::StringRef key = text.word();
    if (key != "task") {
      text.fail("unknown statement '" + key + "'");
      break;
    }
    OrderTask task = parseTask(text, index);
    if (!index.try_emplace(task.name, problem.tasks.size()).second)
      text.fail("a second task '" + task.name + "'");
    problem.tasks.push_back(std::move(task));
  }
  if (Error error = text.takeError())
    return error;
  return problem;
}

std::string GlobalOrderProblem::toText() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "problem global_order\n";
  for (const OrderTask &task : tasks) {
    os << "task " << task.name << " for " << task.duration;
    if (!task.isCommunication())
      os << " on " << task.resource;
    os << " ranks";
    for (unsigned rank : task.ranks)
      os << ' ' << rank;
    if (!task.after.empty())
      os << " after";
    for (unsigned before : task.after)
      os << ' ' << tasks[before].name;
    os << '\n';
  }
  return text;
}

/// The predecessors of each task: its dependencies, and the task listed before it on its resource.
static std::vector<std::vector<unsigned>> predecessors(const GlobalOrderProblem &problem) {
  std::vector<std::vector<unsigned>> result;
  std::map<llvm::StringRef, unsigned> lastOn;
  for (auto [index, task] : llvm::enumerate(problem.tasks)) {
    result.push_back(task.after);
    if (task.isCommunication())
      continue;
    auto [entry, first] = lastOn.try_emplace(task.resource, index);
    if (!first)
      result.back().push_back(entry->second);
    entry->second = index;
  }
  return result;
}

Error GlobalOrderProblem::check() const {
  for (const OrderTask &task : tasks) {
    if (task.ranks.empty())
      return solverError("task '" + task.name + "' has no ranks");
    if (task.duration < 0)
      return solverError("task '" + task.name + "' lasts " + Twine(task.duration) + " ns");
    for (unsigned before : task.after)
      if (before >= tasks.size())
        return solverError("task '" + task.name + "' comes after task " + Twine(before) + " of " + Twine(tasks.size()));
  }
  return Error::success();
}

llvm::Expected<GlobalOrder> GlobalOrderProblem::solve() const {
  if (Error error = check())
    return error;
  auto before = predecessors(*this);
  std::vector<std::vector<unsigned>> users(tasks.size());
  std::vector<unsigned> waiting(tasks.size());
  for (unsigned task = 0; task < tasks.size(); ++task) {
    waiting[task] = before[task].size();
    for (unsigned other : before[task])
      users[other].push_back(task);
  }
  GlobalOrder solution;
  solution.start.assign(tasks.size(), 0);
  using Ready = std::pair<int64_t, unsigned>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (unsigned task = 0; task < tasks.size(); ++task)
    if (waiting[task] == 0)
      ready.push({0, task});
  // A task is pushed when its last predecessor is taken, with a start not before that one's: starts never
  // fall.
  while (!ready.empty()) {
    auto [start, task] = ready.top();
    ready.pop();
    solution.order.push_back(task);
    int64_t end = start + tasks[task].duration;
    solution.makespan = std::max(solution.makespan, end);
    for (unsigned user : users[task]) {
      solution.start[user] = std::max(solution.start[user], end);
      if (--waiting[user] == 0)
        ready.push({solution.start[user], user});
    }
  }
  for (unsigned task = 0; task < tasks.size(); ++task)
    if (waiting[task] > 0)
      return solverError("task '" + tasks[task].name + "' waits for itself: the dependencies have a cycle");
  return solution;
}

unsigned GlobalOrderProblem::numRanks() const {
  unsigned count = 0;
  for (const OrderTask &task : tasks)
    for (unsigned rank : task.ranks)
      count = std::max(count, rank + 1);
  return count;
}

std::vector<unsigned> GlobalOrderProblem::restrict(llvm::ArrayRef<unsigned> order, unsigned rank) const {
  std::vector<unsigned> result;
  for (unsigned task : order)
    if (tasks[task].isCommunication() && llvm::is_contained(tasks[task].ranks, rank))
      result.push_back(task);
  return result;
}

std::vector<unsigned>
GlobalOrderProblem::playRendezvous(llvm::ArrayRef<std::vector<unsigned>> communicationOfRank) const {
  auto before = predecessors(*this);
  std::vector<bool> done(tasks.size(), false);
  std::vector<size_t> next(communicationOfRank.size(), 0);
  auto canRun = [&](unsigned index) {
    bool ready = llvm::all_of(before[index], [&](unsigned other) { return done[other]; });
    if (!ready || !tasks[index].isCommunication())
      return ready;
    // Rendezvous: each of its ranks has reached it.
    return llvm::all_of(tasks[index].ranks, [&](unsigned rank) {
      const auto &list = communicationOfRank[rank];
      return next[rank] < list.size() && list[next[rank]] == index;
    });
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (unsigned index = 0; index < tasks.size(); ++index) {
      if (done[index] || !canRun(index))
        continue;
      done[index] = progress = true;
      if (tasks[index].isCommunication())
        for (unsigned rank : tasks[index].ranks)
          ++next[rank];
    }
  }
  std::vector<unsigned> never;
  for (unsigned index = 0; index < tasks.size(); ++index)
    if (!done[index])
      never.push_back(index);
  return never;
}

Error GlobalOrderProblem::verify(const GlobalOrder &solution) const {
  if (solution.order.size() != tasks.size() || solution.start.size() != tasks.size())
    return solverError("the order has " + Twine(solution.order.size()) + " of " + Twine(tasks.size()) + " tasks");
  auto before = predecessors(*this);
  std::vector<bool> seen(tasks.size(), false);
  for (unsigned task : solution.order) {
    if (task >= tasks.size() || seen[task])
      return solverError("the order repeats task " + Twine(task));
    for (unsigned other : before[task])
      if (!seen[other] || solution.start[task] < solution.start[other] + tasks[other].duration)
        return solverError("task '" + tasks[task].name + "' does not wait for '" + tasks[other].name + "'");
    seen[task] = true;
  }
  // One engine a rank does not deadlock then: the first task of the order that is not done is next on all its ranks.
  return Error::success();
}

std::string GlobalOrder::toText(const GlobalOrderProblem &problem) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (unsigned task : order)
    os << start[task] << ' ' << problem.tasks[task].name << '\n';
  os << "makespan " << makespan << " ns\n";
  return text;
}
