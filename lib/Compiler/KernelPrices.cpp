// A kernel whose ops are of several groups becomes several if the groups are on different stages. Each of these is
// priced by itself, from what it reads and writes then; a bond of neighbours holds what one kernel for both saves.
#include "KernelPrices.h"

#include "par/Base/Provenance.h"
#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Interfaces/Timed.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace par {

using OpSet = llvm::SmallPtrSetImpl<Operation *>;

static CutWork operator*(CutWork work, int64_t factor) {
  return {work.forward * factor, work.backward * factor, work.gradient * factor, work.update * factor};
}

static CutWork operator/(CutWork work, int64_t divisor) {
  return {work.forward / divisor, work.backward / divisor, work.gradient / divisor, work.update};
}

KernelPrices::KernelPrices(const CutGroups &groups, const CostTable &costs, StringRef device)
    : groups(groups), costs(costs), device(device.str()), work(groups.count) {}

std::optional<unsigned> KernelPrices::groupOf(Operation *op) const {
  std::optional<Provenance> from = getProvenance(op->getLoc());
  auto found = from ? groups.ofNode.find(from->path) : groups.ofNode.end();
  return found == groups.ofNode.end() ? std::nullopt : std::optional(found->second);
}

/// The group of a variable that the kernel reads, or of whose gradient.
std::optional<unsigned> KernelPrices::groupOfLoads(const KernelGroup &kernel) {
  for (Value argument : kernel.arguments) {
    auto load = argument.getDefiningOp<LoadOp>();
    auto buffer = load ? symbols.lookupNearestSymbolFrom<BufferOp>(load, load.getBufferAttr()) : BufferOp();
    if (!buffer || !buffer.getOf())
      continue;
    if (auto found = groups.ofVariable.find(*buffer.getOf()); found != groups.ofVariable.end())
      return found->second;
  }
  return std::nullopt;
}

/// Ops that only say where elements are belong to the op that reads them.
static bool followsUser(Operation *op) {
  OpCost cost = getCost(op);
  return op->hasTrait<OpTrait::ConstantLike>() || (cost.fusable && cost.flops == 0);
}

KernelPrices::Parts KernelPrices::partsOf(const KernelGroup &kernel, unsigned fallback) {
  llvm::SmallDenseMap<Operation *, unsigned, 16> known;
  unsigned last = groupOfLoads(kernel).value_or(fallback);
  for (Operation *op : kernel.body)
    if (std::optional<unsigned> own = groupOf(op))
      last = known[op] = *own;
  for (Operation *op : llvm::reverse(kernel.body)) {
    auto [place, fresh] = known.try_emplace(op, last);
    last = place->second;
    if (!followsUser(op))
      continue;
    std::optional<unsigned> first;
    for (Operation *user : op->getUsers())
      if (auto found = known.find(user); found != known.end() && llvm::is_contained(kernel.body, user))
        first = std::min(first.value_or(found->second), found->second);
    known[op] = first.value_or(place->second);
  }
  Parts parts;
  for (Operation *op : kernel.body)
    parts[known[op]].push_back(op);
  return parts;
}

/// ns of a kernel of these of its ops. A library call takes the time of its op; the runtime's other kernels are bounded
/// by memory.
int64_t KernelPrices::timeOf(const KernelGroup &kernel, const OpSet &ops) const {
  int64_t flops = 0, bytes = 0;
  bool generated = kernel.implementation == "generated";
  TimedOpInterface call;
  llvm::SmallPtrSet<void *, 16> counted;
  bool onlyViews = true;
  for (Operation *op : kernel.body) {
    if (!ops.contains(op))
      continue;
    onlyViews &= isa<ReshapeOp>(op);
    flops += getCost(op).flops;
    if (auto timed = dyn_cast<TimedOpInterface>(op))
      call = timed;
    for (Value operand : op->getOperands())
      if (!ops.contains(operand.getDefiningOp()) && counted.insert(operand.getAsOpaquePointer()).second)
        bytes += getByteSize(operand);
    for (Value result : op->getResults()) {
      bool leaves = llvm::is_contained(kernel.results, result) || llvm::any_of(result.getUsers(), [&](Operation *user) {
                      return !ops.contains(user) && llvm::is_contained(kernel.body, user);
                    });
      bytes += leaves ? getByteSize(result) : 0;
    }
  }
  if (onlyViews)
    return 0;
  if (!generated && call) // what its epilogue reads and writes beside may take longer
    return std::max(call.getTime(costs).ns, costs.kernel(bytes).ns);
  return costs.kernel(bytes, generated ? flops : 0).ns;
}

int64_t KernelPrices::copiesOf(const KernelGroup &kernel) const {
  llvm::SmallMapVector<StringAttr, SmallVector<Value, 1>, 4> stored; // by buffer
  for (Value result : kernel.results)
    for (Operation *user : result.getUsers())
      if (auto store = dyn_cast<StoreOp>(user))
        if (SmallVector<Value, 1> &own = stored[store.getBufferAttr().getAttr()]; !llvm::is_contained(own, result))
          own.push_back(result);
  int64_t time = 0;
  for (Value argument : kernel.arguments) {
    auto load = stored.empty() ? LoadOp() : argument.getDefiningOp<LoadOp>();
    auto found = load ? stored.find(load.getBufferAttr().getAttr()) : stored.end();
    if (found == stored.end())
      continue;
    for (Value result : found->second)
      if (!llvm::is_contained(kernel.tied, std::pair(result, argument)))
        time += costs.copy(2 * getByteSize(result)).ns;
  }
  return time;
}

void KernelPrices::addKernel(const KernelGroup &kernel, const Parts &parts, CutWork unit) {
  llvm::SmallPtrSet<Operation *, 16> all(kernel.body.begin(), kernel.body.end());
  int64_t whole = timeOf(kernel, all);
  if (parts.size() == 1) {
    work[parts.begin()->first] += unit * whole;
    return;
  }
  SmallVector<int64_t> alone, saved;
  int64_t together = 0, sum = 0;
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    llvm::SmallPtrSet<Operation *, 16> own(part->second.begin(), part->second.end());
    together += alone.emplace_back(timeOf(kernel, own));
    if (auto next = std::next(part); next != parts.end()) {
      int64_t both = alone.back();
      llvm::SmallPtrSet<Operation *, 16> others(next->second.begin(), next->second.end());
      both += timeOf(kernel, others);
      own.insert(next->second.begin(), next->second.end());
      sum += saved.emplace_back(std::clamp<int64_t>(both - timeOf(kernel, own), 0, alone.back()));
    }
  }
  // The bonds of a row of parts add up to what the one kernel saves.
  int64_t saves = std::max<int64_t>(0, together - whole);
  unsigned index = 0;
  for (auto part = parts.begin(); part != parts.end(); ++part, ++index) {
    work[part->first] += unit * alone[index];
    if (auto next = std::next(part); next != parts.end())
      bonds[{part->first, next->first}] +=
          unit * (sum ? int64_t(__int128(saved[index]) * std::min(saves, sum) / sum) : 0);
  }
}

void KernelPrices::add(BlockOp block, BlockKind kind, int64_t runs, int64_t microbatches) {
  unsigned last = kind == BlockKind::Forward ? 0 : groups.count - 1;
  for (KernelGroup &kernel : groupKernels(block, device)) {
    Parts parts = partsOf(kernel, last);
    // A gradient of a weight is only stored, or reduced over ranks.
    bool stored = llvm::all_of(kernel.results, [](Value value) {
      return llvm::none_of(value.getUsers(), [](Operation *user) { return isTensorOp(user); });
    });
    CutWork unit = kind == BlockKind::Forward    ? CutWork{1, 0, 0, 0}
                   : kind == BlockKind::Backward ? CutWork{0, 1, stored, 0}
                                                 : CutWork{0, 0, 0, 1};
    addKernel(kernel, parts, unit * runs);
    work[parts.begin()->first] += unit * (runs * copiesOf(kernel));
    last = parts.rbegin()->first;
  }
  for (auto collective : block.getBody().front().getOps<CollectiveOpInterface>()) {
    // One that runs once a step is not on the way of a microbatch.
    bool once = kind == BlockKind::Update || runs < microbatches;
    CutWork unit = once ? CutWork{0, 0, 0, 1} : kind == BlockKind::Forward ? CutWork{1, 0, 0, 0} : CutWork{0, 1, 0, 0};
    work[groupOf(collective).value_or(last)] += unit * (runs * par::timeOf(collective, costs).ns);
  }
}

CutPrices KernelPrices::take(int64_t microbatches) {
  CutPrices prices;
  for (const CutWork &own : work)
    prices.groups.push_back(own / microbatches);
  for (auto &[pair, less] : bonds) {
    // Rounded down on both sides, no bond saves more than its groups take.
    CutWork own = less / microbatches;
    prices.bonds.push_back({pair.first, pair.second, own});
  }
  return prices;
}

} // namespace par
