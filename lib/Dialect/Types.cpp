#include "par/Dialect/Par.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#define GET_TYPEDEF_CLASSES
#include "par/Dialect/Types.cpp.inc"

namespace par {

void ParDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "par/Dialect/Types.cpp.inc"
      >();
}

ShardingAttr parseShardingBody(AsmParser &parser);
void printShardingBody(AsmPrinter &printer, ShardingAttr sharding);

Type DistType::parse(AsmParser &parser) {
  RankedTensorType tensor;
  FlatSymbolRefAttr stage;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseType(tensor) || parser.parseComma() || parser.parseAttribute(stage) ||
      parser.parseComma())
    return {};
  ShardingAttr sharding;
  if (failed(parser.parseOptionalQuestion())) {
    sharding = parseShardingBody(parser);
    if (!sharding)
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<DistType>(loc, parser.getContext(), tensor, stage, sharding);
}

void DistType::print(AsmPrinter &printer) const {
  printer << "<" << getTensor() << ", " << getStage() << ", ";
  if (getSharding())
    printShardingBody(printer, getSharding());
  else
    printer << "?";
  printer << ">";
}

LogicalResult DistType::verify(function_ref<InFlightDiagnostic()> emitError, RankedTensorType tensor,
                               FlatSymbolRefAttr stage, ShardingAttr sharding) {
  if (sharding && sharding.getRank() != tensor.getRank())
    return emitError() << "sharding has " << sharding.getRank() << " dims, the tensor " << tensor.getRank();
  return success();
}

} // namespace par
