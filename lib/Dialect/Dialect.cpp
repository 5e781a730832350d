#include "OpShards.h"
#include "par/Dialect/Attention.h"
#include "par/Dialect/Beside.h"
#include "par/Dialect/Parts.h"

using namespace mlir;

#include "par/Dialect/Dialect.cpp.inc"
#include "par/Dialect/Enums.cpp.inc"

ParseResult par::parseYieldKinds(OpAsmParser &parser, ArrayAttr &kinds) {
  SmallVector<Attribute> all;
  auto kind = [&]() -> ParseResult {
    StringRef word;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&word))
      return failure();
    std::optional<par::YieldKind> kind = par::symbolizeYieldKind(word);
    if (!kind)
      return parser.emitError(loc) << "expected sum or stack, found " << word;
    all.push_back(par::YieldKindAttr::get(parser.getContext(), *kind));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, kind))
    return failure();
  kinds = parser.getBuilder().getArrayAttr(all);
  return success();
}

void par::printYieldKinds(OpAsmPrinter &printer, Operation *, ArrayAttr kinds) {
  printer << "[";
  llvm::interleaveComma(kinds.getAsRange<par::YieldKindAttr>(), printer,
                        [&](par::YieldKindAttr kind) { printer << par::stringifyYieldKind(kind.getValue()); });
  printer << "]";
}

ParseResult par::parseSymbols(OpAsmParser &parser, ArrayAttr &symbols) {
  SmallVector<Attribute> all;
  auto symbol = [&]() -> ParseResult {
    FlatSymbolRefAttr one;
    if (parser.parseAttribute(one))
      return failure();
    all.push_back(one);
    return success();
  };
  if (parser.parseCommaSeparatedList(symbol))
    return failure();
  symbols = parser.getBuilder().getArrayAttr(all);
  return success();
}

void par::printSymbols(OpAsmPrinter &printer, Operation *, ArrayAttr symbols) {
  llvm::interleaveComma(symbols, printer);
}

namespace par {

void ParDialect::initialize() {
  registerAttributes();
  registerTypes();
  registerParDialectOperations(this);
  addOperations<
#define GET_OP_LIST
#include "par/Dialect/AttentionOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "par/Dialect/BesideOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "par/Dialect/PartsOps.cpp.inc"
      >();
}

Operation *ParDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getShapedType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, elements);
}

} // namespace par
