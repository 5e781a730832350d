// Changes of element type, and what changes nothing.
#include "GraphImporter.h"

namespace par {
namespace {

using namespace mlir;

LogicalResult convertTo(NodeImporter &importer, Type element) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  if (type.getElementType() == element)
    return importer.bind(*x);
  return importer.bind(ConvertOp::create(importer.builder, importer.loc, type.clone(element), *x));
}

LogicalResult importCast(NodeImporter &importer) {
  OpBuilder &builder = importer.builder;
  auto to = onnx::ElementType(importer.node.intAttribute("to", 0));
  switch (to) {
  case onnx::ElementType::F32: return convertTo(importer, builder.getF32Type());
  case onnx::ElementType::F64: return convertTo(importer, builder.getF64Type());
  case onnx::ElementType::F16: return convertTo(importer, builder.getF16Type());
  case onnx::ElementType::BF16: return convertTo(importer, builder.getBF16Type());
  case onnx::ElementType::I64: return convertTo(importer, builder.getI64Type());
  case onnx::ElementType::I32: return convertTo(importer, builder.getI32Type());
  case onnx::ElementType::I16: return convertTo(importer, builder.getI16Type());
  case onnx::ElementType::I8: return convertTo(importer, builder.getI8Type());
  case onnx::ElementType::Bool: return convertTo(importer, builder.getI1Type());
  default: return importer.unsupported("result type " + onnx::spell(to));
  }
}

LogicalResult importCastLike(NodeImporter &importer) {
  FailureOr<RankedTensorType> like = importer.type(1);
  return failed(like) ? failure() : convertTo(importer, like->getElementType());
}

LogicalResult importIdentity(NodeImporter &importer) {
  const GraphValue *value = importer.value(0);
  if (value && value->isSequence)
    return importer.bindSequence(value->sequence);
  FailureOr<Value> x = importer.tensor(0);
  return failed(x) ? failure() : importer.bind(*x);
}

} // namespace

void addCastImports(ImportTable &table) {
  table["Cast"] = importCast;
  table["CastLike"] = importCastLike;
  table["Identity"] = importIdentity;
}

} // namespace par
