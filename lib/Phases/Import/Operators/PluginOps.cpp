#include "PluginOps.h"

#include "par/Dialect/Interfaces/ShardingRule.h"

#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;

namespace par {

std::optional<RegisteredOperationName> findPluginOp(const onnx::Node &node, MLIRContext *context) {
  if (node.domain.empty() || node.domain == ParDialect::getDialectNamespace())
    return std::nullopt;
  auto name = RegisteredOperationName::lookup(node.domain + "." + node.opType, context);
  if (!name || !name->hasInterface<ShardingRuleOpInterface>() || !name->hasInterface<InferTypeOpInterface>())
    return std::nullopt;
  return name;
}

/// Null for an attribute that is no number and no text.
static Attribute convert(const onnx::Attribute &attribute, OpBuilder &builder) {
  switch (attribute.kind) {
  case onnx::Attribute::Float:
    return builder.getF64FloatAttr(attribute.f);
  case onnx::Attribute::Int:
    return builder.getI64IntegerAttr(attribute.i);
  case onnx::Attribute::String:
    return builder.getStringAttr(attribute.s);
  case onnx::Attribute::Ints:
    return builder.getDenseI64ArrayAttr(attribute.ints);
  case onnx::Attribute::Floats:
    return builder.getDenseF64ArrayAttr(attribute.floats);
  default:
    return {};
  }
}

/// The attributes of an op in the form that its own code reads.
class OwnedProperties {
public:
  explicit OwnedProperties(RegisteredOperationName name)
      : name(name), storage(std::max(name.getOpPropertyByteSize(), 1)) {
    name.initOpProperties(get(), nullptr);
  }
  ~OwnedProperties() { name.destroyOpProperties(get()); }
  OpaqueProperties get() { return static_cast<void *>(storage.data()); }

private:
  RegisteredOperationName name;
  std::vector<char> storage; // of an allocator whose memory fits any type
};

/// Result types as the op infers them.
static LogicalResult inferTypes(NodeImporter &importer, RegisteredOperationName name, OperationState &state) {
  OwnedProperties properties(name);
  DictionaryAttr attributes = state.attributes.getDictionary(name.getContext());
  auto emitError = [&] { return importer.error(); };
  if (failed(name.setOpPropertiesFromAttribute(name, properties.get(), attributes, emitError)))
    return failure();
  if (failed(name.getInterface<InferTypeOpInterface>()->inferReturnTypes(
          name.getContext(), importer.loc, state.operands, attributes, properties.get(), {}, state.types)))
    return importer.error() << "op " << name.getStringRef() << " of a plugin does not take these inputs";
  return success();
}

LogicalResult importPluginOp(NodeImporter &importer, RegisteredOperationName name) {
  OperationState state(importer.loc, name);
  for (size_t i = 0; i < importer.numInputs(); ++i) {
    FailureOr<Value> operand = importer.tensor(i);
    if (failed(operand))
      return failure();
    state.addOperands(*operand);
  }
  for (const onnx::Attribute &attribute : importer.node.attributes) {
    Attribute value = convert(attribute, importer.builder);
    if (!value)
      return importer.error() << "attribute \"" << attribute.name << "\" is no number and no text, and op "
                              << name.getStringRef() << " is a plugin's";
    state.addAttribute(attribute.name, value);
  }
  if (failed(inferTypes(importer, name, state)))
    return failure();
  if (state.types.size() != importer.node.outputs.size())
    return importer.error() << "op " << name.getStringRef() << " of a plugin has " << state.types.size()
                            << " results, the node has " << importer.node.outputs.size();
  Operation *op = importer.builder.create(state);
  for (auto [k, result] : llvm::enumerate(op->getResults()))
    if (failed(importer.bind(result, k)))
      return failure();
  return success();
}

} // namespace par
