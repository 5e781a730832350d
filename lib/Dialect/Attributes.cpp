// Text form and arithmetic of meshes and shardings: sizes of axes, coordinates of ranks and the groups of ranks that
// communicate over given axes.
#include "par/Dialect/Par.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "llvm/ADT/DenseSet.h"

#include <numeric>

using namespace mlir;

#define GET_ATTRDEF_CLASSES
#include "par/Dialect/Attributes.cpp.inc"

namespace par {

void ParDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "par/Dialect/Attributes.cpp.inc"
      >();
}

/// `"dp", "tp"` up to the closing brace, which the caller parses; with `open` there may be a `?` at the end.
static ParseResult parseAxes(AsmParser &parser, SmallVectorImpl<StringAttr> &axes, bool *open = nullptr) {
  if (parser.parseLBrace())
    return failure();
  if (succeeded(parser.parseOptionalRBrace()))
    return success();
  do {
    if (open && succeeded(parser.parseOptionalQuestion())) {
      *open = true;
      break;
    }
    std::string name;
    if (parser.parseString(&name))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), name));
  } while (succeeded(parser.parseOptionalComma()));
  return parser.parseRBrace();
}

static void printAxes(AsmPrinter &printer, ArrayRef<StringAttr> axes, bool open = false) {
  printer << "{";
  llvm::interleaveComma(axes, printer, [&](StringAttr axis) { printer << axis; });
  if (open)
    printer << (axes.empty() ? "?" : ", ?");
  printer << "}";
}

//===-- Mesh ---------------------------------------------------------------------------------===//

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes;
  auto axis = [&]() -> ParseResult {
    std::string name;
    if (parser.parseString(&name) || parser.parseEqual() || parser.parseInteger(sizes.emplace_back()))
      return failure();
    names.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  if (failed(parser.parseOptionalGreater()))
    if (parser.parseCommaSeparatedList(axis) || parser.parseGreater())
      return {};
  return parser.getChecked<MeshAttr>(loc, parser.getContext(), names, sizes);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(llvm::zip(getNames(), getSizes()), printer,
                        [&](auto axis) { printer << std::get<0>(axis) << "=" << std::get<1>(axis); });
  printer << ">";
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<StringAttr> names,
                               ArrayRef<int64_t> sizes) {
  if (names.size() != sizes.size())
    return emitError() << "mesh has " << names.size() << " names and " << sizes.size() << " sizes";
  llvm::SmallDenseSet<StringAttr> seen;
  for (auto [name, size] : llvm::zip(names, sizes)) {
    if (size < 1)
      return emitError() << "mesh axis " << name << " has size " << size << ", expected at least 1";
    if (!seen.insert(name).second)
      return emitError() << "mesh axis " << name << " occurs twice";
  }
  return success();
}

int64_t MeshAttr::getSize(StringAttr axis) const {
  for (auto [name, size] : llvm::zip(getNames(), getSizes()))
    if (name == axis)
      return size;
  return 0;
}

int64_t MeshAttr::getSize(ArrayRef<StringAttr> axes) const {
  int64_t product = 1;
  for (StringAttr axis : axes)
    product *= getSize(axis);
  return product;
}

int64_t MeshAttr::getRanks() const {
  int64_t product = 1;
  for (int64_t size : getSizes())
    product *= size;
  return product;
}

SmallVector<int64_t> MeshAttr::getCoordinates(int64_t rank) const {
  SmallVector<int64_t> coordinates(getSizes().size());
  for (int64_t i = coordinates.size() - 1; i >= 0; --i) {
    coordinates[i] = rank % getSizes()[i];
    rank /= getSizes()[i];
  }
  return coordinates;
}

int64_t MeshAttr::getIndex(int64_t rank, ArrayRef<StringAttr> axes) const {
  SmallVector<int64_t> coordinates = getCoordinates(rank);
  int64_t index = 0;
  for (StringAttr axis : axes)
    for (auto [i, name] : llvm::enumerate(getNames()))
      if (name == axis)
        index = index * getSizes()[i] + coordinates[i];
  return index;
}

namespace {
/// The place of ranks along some axes, the last of which is the minor one. Its steps are found once for all ranks.
class AxesIndex {
public:
  AxesIndex(MeshAttr mesh, ArrayRef<StringAttr> axes) {
    for (StringAttr axis : axes)
      for (auto [i, name] : llvm::enumerate(mesh.getNames()))
        if (name == axis)
          steps.push_back({mesh.getSizes()[i], product(mesh.getSizes().drop_front(i + 1))});
  }

  int64_t of(int64_t rank) const {
    int64_t index = 0;
    for (auto [size, stride] : steps)
      index = index * size + rank / stride % size;
    return index;
  }

private:
  static int64_t product(ArrayRef<int64_t> sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
  }

  SmallVector<std::pair<int64_t, int64_t>> steps; ///< an axis: its size, and the ranks from one place to the next
};
} // namespace

SmallVector<SmallVector<int64_t>> MeshAttr::getGroups(ArrayRef<StringAttr> axes) const {
  // A group is named by the coordinates that do not belong to `axes`.
  SmallVector<StringAttr> others;
  for (StringAttr name : getNames())
    if (!llvm::is_contained(axes, name))
      others.push_back(name);
  SmallVector<SmallVector<int64_t>> groups(getSize(others), SmallVector<int64_t>(getSize(axes)));
  AxesIndex group(*this, others), member(*this, axes);
  for (int64_t rank = 0, end = getRanks(); rank < end; ++rank)
    groups[group.of(rank)][member.of(rank)] = rank;
  return groups;
}

//===-- Dim and tensor sharding --------------------------------------------------------------===//

Attribute DimShardingAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> axes;
  bool open = false;
  if (parser.parseLess() || parseAxes(parser, axes, &open) || parser.parseGreater())
    return {};
  return get(parser.getContext(), axes, open);
}

void DimShardingAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printAxes(printer, getAxes(), getOpen());
  printer << ">";
}

/// `[{"dp"}, {}], unreduced={"tp"}`: the text between the angle brackets, also of !par.dist. Null on error.
ShardingAttr parseShardingBody(AsmParser &parser) {
  SmallVector<DimShardingAttr> dims;
  SmallVector<StringAttr> unreduced;
  auto dim = [&]() -> ParseResult {
    SmallVector<StringAttr> axes;
    bool open = false;
    if (parseAxes(parser, axes, &open))
      return failure();
    dims.push_back(DimShardingAttr::get(parser.getContext(), axes, open));
    return success();
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, dim))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("unreduced") || parser.parseEqual() || parseAxes(parser, unreduced)))
    return {};
  return parser.getChecked<ShardingAttr>(loc, parser.getContext(), dims, unreduced);
}

void printShardingBody(AsmPrinter &printer, ShardingAttr sharding) {
  printer << "[";
  llvm::interleaveComma(sharding.getDims(), printer,
                        [&](DimShardingAttr dim) { printAxes(printer, dim.getAxes(), dim.getOpen()); });
  printer << "]";
  if (!sharding.getUnreduced().empty()) {
    printer << ", unreduced=";
    printAxes(printer, sharding.getUnreduced());
  }
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  ShardingAttr sharding = parseShardingBody(parser);
  return sharding && succeeded(parser.parseGreater()) ? sharding : Attribute();
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printShardingBody(printer, *this);
  printer << ">";
}

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<DimShardingAttr> dims,
                                   ArrayRef<StringAttr> unreduced) {
  llvm::SmallDenseSet<StringAttr> seen;
  auto once = [&](StringAttr axis) -> LogicalResult {
    if (!seen.insert(axis).second)
      return emitError() << "axis " << axis << " occurs twice in a sharding";
    return success();
  };
  for (DimShardingAttr dim : dims)
    for (StringAttr axis : dim.getAxes())
      if (failed(once(axis)))
        return failure();
  for (StringAttr axis : unreduced)
    if (failed(once(axis)))
      return failure();
  return success();
}

ShardingAttr ShardingAttr::getReplicated(MLIRContext *context, int64_t rank) {
  SmallVector<DimShardingAttr> dims(rank, DimShardingAttr::get(context, ArrayRef<StringAttr>(), false));
  return get(context, dims, ArrayRef<StringAttr>());
}

ShardingAttr ShardingAttr::withUnreduced(ArrayRef<StringAttr> axes) const { return get(getContext(), getDims(), axes); }

ShardingAttr ShardingAttr::withDim(int64_t dim, ArrayRef<StringAttr> axes) const {
  SmallVector<DimShardingAttr> dims(getDims());
  dims[dim] = DimShardingAttr::get(getContext(), axes, false);
  return get(getContext(), dims, getUnreduced());
}

ShardingAttr ShardingAttr::close() const {
  SmallVector<DimShardingAttr> dims;
  for (DimShardingAttr dim : getDims())
    dims.push_back(DimShardingAttr::get(getContext(), dim.getAxes(), false));
  return get(getContext(), dims, getUnreduced());
}

bool ShardingAttr::isReplicated() const {
  return getUnreduced().empty() && llvm::all_of(getDims(), [](DimShardingAttr dim) { return dim.getAxes().empty(); });
}

bool ShardingAttr::uses(StringAttr axis) const {
  return llvm::is_contained(getUnreduced(), axis) ||
         llvm::any_of(getDims(), [&](DimShardingAttr dim) { return llvm::is_contained(dim.getAxes(), axis); });
}

RankedTensorType ShardingAttr::getLocalType(RankedTensorType global, MeshAttr mesh) const {
  SmallVector<int64_t> shape(global.getShape());
  for (auto [size, dim] : llvm::zip(shape, getDims())) {
    int64_t shards = mesh.getSize(dim.getAxes());
    size = (size + shards - 1) / shards;
  }
  return global.clone(shape);
}

} // namespace par
