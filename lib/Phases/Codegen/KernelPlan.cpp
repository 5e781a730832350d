// Plans a generated kernel: its nests of loops, the reads of each and the ops that it recomputes at their use, the rows
// that all share, and whether tiles run across rows. There is one plan for both the CPU's and the GPU's emitter.
#include "KernelPlan.h"

#include "par/Dialect/Lower.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#include <set>

using namespace mlir;

namespace par::codegen {

/// Elements that are worth a tile of their own.
static constexpr int64_t tileWork = 32 << 10;
/// Minimum number of blocks for tiles of whole blocks: fewer would leave threads idle.
static constexpr int64_t manyBlocks = 8;
/// Up to so many elements along a dim, comparing all in a vector is as fast as an indexed access.
static constexpr int64_t fewElements = 16;
/// Up to so many elements, comparing all pairs in vectors is as fast as sorting.
static constexpr int64_t fewToSort = 256;
/// Independent steps that take as long as one that waits for the store of the step before it, with many threads.
static constexpr int64_t waits = 16;

SmallVector<int64_t> loopSizes(linalg::GenericOp op) {
  // linalg takes a loop's size from the first operand that it indexes; a slice from 0 reads a part of that.
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  OpOperand *result = op.getDpsInitOperand(0);
  for (auto [expr, size] : llvm::zip(op.getMatchingIndexingMap(result).getResults(), shapeOf(result->get())))
    sizes[cast<AffineDimExpr>(expr).getPosition()] = size;
  return sizes;
}

SmallVector<unsigned> Nest::freeLoops() const {
  SmallVector<unsigned> loops;
  for (auto [dim, loop] : llvm::enumerate(resultLoops))
    if (!llvm::is_contained(rowDims, dim))
      loops.push_back(loop);
  return loops;
}

int64_t Nest::steps() const {
  SmallVector<int64_t> taken = sizes();
  if (std::optional<unsigned> whole = wholeLoop())
    taken[addressed ? *whole
          : running ? running->reduced
                    : sorting->reduced] = sorting ? 2 * llvm::Log2_64_Ceil(taken[*whole]) : 1;
  return std::max(ShapedType::getNumElements(taken), ShapedType::getNumElements(shapeOf(value())));
}

AffineExpr Nest::addressInRow(ArrayRef<AffineExpr> index) const {
  Index kept;
  SmallVector<int64_t> sizes;
  for (auto [dim, size] : llvm::enumerate(shapeOf(value())))
    if (!llvm::is_contained(rowDims, dim)) {
      kept.push_back(index[dim]);
      sizes.push_back(size);
    }
  return linearize(kept, sizes, value().getContext());
}

uint64_t KernelPlan::bytesPerRow(const Nest &nest) const {
  uint64_t bytes = getElementBytes(getElementTypeOrSelf(nest.value().getType()));
  for (auto [dim, size] : llvm::enumerate(shapeOf(nest.value())))
    if (!llvm::is_contained(nest.rowDims, dim))
      bytes *= size;
  return bytes;
}

bool KernelPlan::isSingle(const Nest &nest) const {
  return bytesPerRow(nest) == getElementBytes(getElementTypeOrSelf(nest.value().getType()));
}

/// Whether the nest reads a tensor of about its result's size one by one along row loop `row`, and far apart along the
/// last.
static bool readsAcross(const Nest &nest, size_t row, size_t last) {
  int64_t elements = ShapedType::getNumElements(shapeOf(nest.value()));
  return llvm::any_of(nest.reads, [&](const Read &read) {
    std::optional<int64_t> far = strideAlong(read.address, nest.rowLoop(last));
    return far && std::abs(*far) > 1 && strideAlong(read.address, nest.rowLoop(row)) == 1 &&
           2 * ShapedType::getNumElements(shapeOf(read.source)) >= elements;
  });
}

std::optional<size_t> KernelPlan::rowsAcross() const {
  if (rows.size() < 2 || rowLoops.back() < square ||
      llvm::any_of(nests, [&](const Nest &nest) { return nest.isReduction() || !isSingle(nest); }))
    return std::nullopt;
  for (size_t row = 0; row + 1 < rows.size(); ++row)
    if (rowLoops[row] >= square &&
        llvm::any_of(nests, [&](const Nest &nest) { return readsAcross(nest, row, rows.size() - 1); }))
      return row;
  return std::nullopt;
}

bool KernelPlan::rowsShareReads() const {
  if (nests.size() != 1 || rows.empty())
    return false;
  const Nest &nest = nests.front();
  bool adds = nest.isReduction() && !nest.positional && !nest.wholeLoop() && nest.place == Place::Result &&
              !isSingle(nest) && llvm::is_contained(nest.resultLoops, nest.innermost);
  unsigned last = nest.rowLoop(rows.size() - 1);
  return adds && nest.loops[last] > 1 && nest.innermost != last &&
         llvm::any_of(nest.reads, [&](const Read &read) { return strideAlong(read.address, last) == 0; });
}

AffineExpr simplifyAddress(AffineExpr address) {
  int64_t lastDim = -1, lastSymbol = -1;
  getMaxDimAndSymbol(ArrayRef<ArrayRef<AffineExpr>>{ArrayRef(address)}, lastDim, lastSymbol);
  return simplifyAffineExpr(address, static_cast<unsigned>(lastDim + 1), 0);
}

std::optional<int64_t> strideAlong(AffineExpr address, unsigned dim) {
  AffineExpr here = getAffineDimExpr(dim, address.getContext());
  AffineExpr step = simplifyAddress(address.replace(here, here + 1) - address);
  if (auto constant = dyn_cast<AffineConstantExpr>(step))
    return constant.getValue();
  return std::nullopt;
}

namespace {

/// Collects the reads of a nest, through the generics that are recomputed at their use.
struct ReadWalk {
  const SetVector<Value> &kept;
  std::vector<Read> reads{};
  /// Generics computed on the spot, with the index of the element.
  std::set<std::pair<void *, std::vector<void *>>> seen{};
  std::vector<std::pair<Value, Index>> visits{};
  unsigned dims = 0;

  /// A constant whose elements differ lies in memory, as an argument does.
  static bool isTable(Value source) {
    DenseElementsAttr elements;
    return matchPattern(source, m_Constant(&elements)) && !elements.isSplat();
  }

  void walkTensor(Value tensor, ArrayRef<AffineExpr> index) {
    MLIRContext *context = tensor.getContext();
    Value source = stripReshapes(tensor);
    Index sourceIndex = reshapeIndex(index, shapeOf(tensor), shapeOf(source), context);
    if (isa<BlockArgument>(source) || kept.contains(source) || isTable(source)) {
      AffineExpr address = linearize(index, shapeOf(tensor), context);
      reads.push_back({source, sourceIndex, simplifyAddress(address)});
      return;
    }
    linalg::GenericOp generic = genericOf(source);
    if (!generic)
      return; // the same everywhere
    std::vector<void *> key;
    for (AffineExpr expr : sourceIndex)
      key.push_back(const_cast<void *>(expr.getAsOpaquePointer()));
    if (!seen.insert({source.getAsOpaquePointer(), key}).second)
      return;
    visits.push_back({source, sourceIndex});
    walkBody(generic, sourceIndex);
  }

  void walkBody(linalg::GenericOp generic, ArrayRef<AffineExpr> iteration) {
    for (OpOperand *input : generic.getDpsInputOperands())
      walkTensor(input->get(), applyMap(generic.getMatchingIndexingMap(input), iteration));
    auto makeDim = [&](Value value) { return getAffineDimExpr(dims++, value.getContext()); };
    generic.getBody()->walk([&](tensor::ExtractOp extract) {
      Index index;
      for (Value value : extract.getIndices())
        index.push_back(traceIndex(value, iteration, makeDim));
      walkTensor(extract.getTensor(), index);
    });
  }
};

class Planner {
public:
  Planner(func::FuncOp function, const PlanOptions &options)
      : function(function), options(options), context(function.getContext()) {}

  KernelPlan plan() {
    keepResults();
    keepReductions();
    formNests();
    while (keepShared())
      formNests();
    chooseRows(out, options.manyRows);
    choosePlaces();
    mergeLoops(out);
    chooseTiles();
    return std::move(out);
  }

private:
  /// Every result is written by one nest: a value that is no generic, or is returned twice, is copied.
  void keepResults() {
    auto end = cast<func::ReturnOp>(function.getBody().front().getTerminator());
    for (OpOperand &operand : end->getOpOperands()) {
      Value source = stripReshapes(operand.get());
      if (!genericOf(source) || kept.contains(source)) {
        OpBuilder builder(end);
        source = buildElements(builder, end.getLoc(), cast<RankedTensorType>(source.getType()), source,
                               [](OpBuilder &, Location, ValueRange args) { return args[0]; });
      }
      kept.insert(source);
      resultsOf[source].push_back(operand.getOperandNumber());
    }
  }

  void keepReductions() {
    function.walk([&](linalg::GenericOp generic) {
      if (generic.getNumReductionLoops() > 0 && !generic->use_empty())
        kept.insert(generic.getResult(0));
    });
  }

  /// Loops of size 1 are index 0 everywhere.
  Index iterationOf(linalg::GenericOp generic) {
    Index iteration;
    for (auto [loop, size] : llvm::enumerate(loopSizes(generic)))
      iteration.push_back(size == 1 ? getAffineConstantExpr(0, context) : getAffineDimExpr(loop, context));
    return iteration;
  }

  Nest formNest(linalg::GenericOp generic) {
    Nest nest{generic};
    ReadWalk walk{kept};
    walk.dims = generic.getNumLoops();
    walk.walkBody(generic, iterationOf(generic));
    nest.reads = std::move(walk.reads);
    AffineMap resultMap = generic.getMatchingIndexingMap(generic.getDpsInitOperand(0));
    for (AffineExpr expr : resultMap.getResults())
      nest.resultLoops.push_back(cast<AffineDimExpr>(expr).getPosition());
    for (unsigned loop = 0; loop < generic.getNumLoops(); ++loop)
      if (!llvm::is_contained(nest.resultLoops, loop))
        nest.reducedLoops.push_back(loop);
    chooseForm(nest);
    nest.innermost = chooseInnermost(nest);
    nest.positional = isPositional(generic) ||
                      llvm::any_of(walk.visits, [](auto &visit) { return isPositional(genericOf(visit.first)); });
    nest.results = resultsOf.lookup(generic.getResult(0));
    visits.push_back(std::move(walk.visits));
    return nest;
  }

  /// Whether the nest goes from index to element, or from element to element.
  void chooseForm(Nest &nest) {
    int64_t elements = ShapedType::getNumElements(shapeOf(nest.value())), met = 1;
    if (!nest.isReduction() || elements <= options.sideBySide)
      return;
    SmallVector<int64_t> sizes = nest.sizes();
    for (unsigned loop : nest.reducedLoops)
      met *= sizes[loop];
    std::optional<Addressing> addressed = findAddressing(nest.op);
    std::optional<Running> running = findRunning(nest.op);
    if (addressed && met > 1 && sizes[addressed->loop] > fewElements)
      nest.addressed = addressed;
    if (running && sizes[running->loop] == met && met > fewElements && elements > waits * options.sideBySide)
      nest.running = running;
    // A GPU holds each against each: one thread would sort a row for longer.
    if (!options.sideBySide && met > fewToSort)
      nest.sorting = findSorting(nest.op);
  }

  /// Whether all that the nest reads and writes along the loop follows one by one or stays: a vector is one access.
  static bool isDense(const Nest &nest, unsigned loop) {
    bool writes = !llvm::is_contained(nest.resultLoops, loop) || loop == nest.resultLoops.back();
    return writes && llvm::all_of(nest.reads, [&](const Read &read) {
             std::optional<int64_t> stride = strideAlong(read.address, loop);
             return stride == 0 || stride == 1;
           });
  }

  /// The loop along which large tensors are read. For a matmul [m, k] x [k, n] it is n, even if the larger operand is
  /// contiguous along k: along k the other one would be gathered.
  unsigned chooseInnermost(const Nest &nest) {
    SmallVector<int64_t> sizes = llvm::to_vector(nest.sizes());
    if (std::optional<unsigned> whole = nest.wholeLoop())
      sizes[*whole] = 1;
    unsigned best = nest.isReduction() ? nest.reducedLoops.back() : sizes.empty() ? 0 : nest.resultLoops.back();
    constexpr int64_t vector = 4;
    bool someDense = llvm::any_of(llvm::seq<unsigned>(0, sizes.size()),
                                  [&](unsigned loop) { return sizes[loop] >= vector && isDense(nest, loop); });
    int64_t bestScore = 0;
    for (unsigned loop = 0; loop < sizes.size(); ++loop) {
      if (someDense && !isDense(nest, loop))
        continue;
      // Large tensors count for more than those read once a row.
      bool last = !nest.resultLoops.empty() && loop == nest.resultLoops.back();
      int64_t score = last ? ShapedType::getNumElements(shapeOf(nest.value())) : 0;
      for (const Read &read : nest.reads)
        if (strideAlong(read.address, loop) == 1)
          score += 2 * ShapedType::getNumElements(shapeOf(read.source));
      if (sizes[loop] > 1 && score > bestScore) {
        bestScore = score;
        best = loop;
      }
    }
    return best;
  }

  static bool isPositional(linalg::GenericOp generic) {
    return generic.getBody()
        ->walk([](Operation *op) {
          return isa<linalg::IndexOp, tensor::ExtractOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  void formNests() {
    out.nests.clear();
    out.nestOf.clear();
    visits.clear();
    function.walk([&](linalg::GenericOp generic) {
      Value value = generic.getResult(0);
      if (!kept.contains(value))
        return;
      out.nestOf[value] = out.nests.size();
      out.nests.push_back(formNest(generic));
    });
  }

  static bool isExpensive(linalg::GenericOp generic) {
    return generic.getBody()
        ->walk([](Operation *op) {
          bool slow = isa<arith::DivFOp>(op) || (isa<math::MathDialect>(op->getDialect()) && !isa<math::AbsFOp>(op));
          return slow ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Next to reductions, expensive values that several nests need, or that one nest would compute many times
  /// over, get nests of their own.
  bool keepShared() {
    if (llvm::none_of(out.nests, [](const Nest &nest) { return nest.isReduction(); }))
      return false;
    llvm::MapVector<Value, SetVector<unsigned>> users;
    bool changed = false;
    for (auto [number, nestVisits] : llvm::enumerate(visits)) {
      int64_t iterations = out.nests[number].steps();
      AffineExpr inner = getAffineDimExpr(out.nests[number].innermost, context);
      for (auto &[value, index] : nestVisits) {
        users[value].insert(number);
        bool everywhere = llvm::any_of(
            index, [&](AffineExpr expr) { return expr.isFunctionOfDim(cast<AffineDimExpr>(inner).getPosition()); });
        if (isExpensive(genericOf(value)) && everywhere && iterations >= 4 * ShapedType::getNumElements(shapeOf(value)))
          changed |= kept.insert(value);
      }
    }
    for (auto &[value, nests] : users)
      if (nests.size() > 1 && isExpensive(genericOf(value)))
        changed |= kept.insert(value);
    return changed;
  }

  void choosePlaces() {
    uint64_t stack = 0;
    for (Nest &nest : out.nests) {
      Value value = nest.value();
      uint64_t bytes = out.bytesPerRow(nest);
      if (!nest.results.empty())
        nest.place = Place::Result;
      else if (bytes == getElementBytes(getElementTypeOrSelf(value.getType())))
        nest.place = Place::Register;
      else if (stack + bytes <= options.stackLimit) {
        nest.place = Place::Stack;
        stack += bytes;
      } else {
        nest.place = Place::Scratch;
        nest.offset = out.scratchBytes;
        out.scratchBytes += (bytes + 63) / 64 * 64;
      }
    }
  }

  /// Tiles are slices of the first row loop. They depend only on shapes.
  void chooseTiles() {
    int64_t all = out.rows.empty() ? 1 : out.rowLoops[out.tileLoop];
    out.tileRows = all;
    if (out.rows.empty() || out.scratchBytes)
      return;
    int64_t work = 0;
    for (Nest &nest : out.nests)
      work += nest.steps();
    int64_t many = std::clamp<int64_t>(work / tileWork, 1, std::max<int64_t>(all, 1));
    out.tileRows = std::max<int64_t>((all + many - 1) / many, 1); // of no row at all: one tile
    if (all >= manyBlocks * KernelPlan::blockRows && out.tileLoop + 1 == out.rows.size() && out.rowsShareReads())
      out.tileRows = llvm::alignTo(out.tileRows, KernelPlan::blockRows);
    out.tiles = std::max<int64_t>((all + out.tileRows - 1) / out.tileRows, 1);
  }

  func::FuncOp function;
  const PlanOptions &options;
  MLIRContext *context;
  SetVector<Value> kept;
  llvm::DenseMap<Value, SmallVector<unsigned>> resultsOf;
  /// By nest: the generics that it recomputes.
  std::vector<std::vector<std::pair<Value, Index>>> visits;
  KernelPlan out;
};

} // namespace

KernelPlan planKernel(func::FuncOp function, const PlanOptions &options) { return Planner(function, options).plan(); }

} // namespace par::codegen
