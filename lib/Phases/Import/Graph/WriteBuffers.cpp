// Buffers that forward writes: state of the step, like a batch norm's moving statistics.
#include "GraphImporter.h"

namespace par {

using namespace mlir;

ArrayRef<onnx::BufferUpdate> GraphImporter::writtenBuffers() const {
  return options.train ? ArrayRef(model.updates) : ArrayRef<onnx::BufferUpdate>();
}

/// Writes each buffer's next value at the end of the step, so that earlier reads see the previous step's value.
LogicalResult GraphImporter::writeBuffers() {
  for (const onnx::BufferUpdate &update : writtenBuffers()) {
    auto variable = module->lookupSymbol<VariableOp>(update.buffer);
    auto found = values.find(update.output);
    if (!variable || found == values.end())
      return error() << "output \"" << update.output << "\" is said to be the next value of the buffer \""
                     << update.buffer << "\", which is "
                     << (variable ? "made by no node" : "no initializer of the model");
    const GraphValue &value = found->second;
    if (!value.known && !value.computed)
      return error() << "the buffer \"" << update.buffer << "\" is to become a sequence, which is not supported";
    Value next = value.computed ? value.computed : materialize(value, value.known->getShape(), update.output, fileLoc);
    if (next.getType() != variable.getTensorType())
      return error() << "the buffer \"" << update.buffer << "\" is " << variable.getTensorType()
                     << ", and forward writes " << next.getType() << " into it";
    auto read = next.getDefiningOp<ReadOp>();
    if (read && read.getVariable() == update.buffer)
      continue; // as it was
    if (read || isa<BlockArgument>(next))
      return error() << "forward writes into the buffer \"" << update.buffer << "\" an unchanged value, "
                     << (read ? "the whole of \"" + read.getVariable().str() + "\"" : std::string("an input"))
                     << ", which is not supported yet; leave the buffer out of the module";
    variable.setKind(VariableKind::buffer);
    WriteOp::create(builder, next.getLoc(), next, update.buffer);
  }
  return success();
}

} // namespace par
