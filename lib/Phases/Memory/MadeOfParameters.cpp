// Follows values from parameters through the blocks of a program, in their order. After -par-assign-buffers each value
// stands in a buffer, so a block's scratch buffers are followed too; they are not found, as no other block reads them.
#include "MadeOfParameters.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace par {

namespace {

/// The buffers and values that are made of parameters only, so far.
class ParameterFlow {
public:
  ParameterFlow(ProgramOp program, llvm::function_ref<bool(BufferOp)> isParameter);

  llvm::DenseSet<Operation *> run();

private:
  void follow(BlockOp block);
  bool isMadeOfParameters(Operation *op) const;
  bool isCandidate(BufferOp buffer) const;
  BufferOp bufferOf(StringRef name) const { return names.lookup<BufferOp>(name); }

  ProgramOp program;
  SymbolTable names;
  llvm::DenseSet<Operation *> parameters;
  llvm::DenseSet<Operation *> made;              ///< buffers whose last stored value is made of parameters only
  llvm::DenseSet<Operation *> mixed;             ///< buffers that some block fills with another value
  llvm::DenseSet<Value> values;                  ///< made of parameters only
  llvm::DenseMap<Operation *, BlockOp> filledBy; ///< by buffer: the last block that stores to it
  llvm::DenseSet<Operation *> carried;           ///< buffers that another block reads than the one that fills them
};

} // namespace

ParameterFlow::ParameterFlow(ProgramOp program, llvm::function_ref<bool(BufferOp)> isParameter)
    : program(program), names(program) {
  for (BufferOp buffer : program.getOps<BufferOp>())
    if (isParameter(buffer))
      parameters.insert(buffer);
}

bool ParameterFlow::isCandidate(BufferOp buffer) const {
  return buffer.getKind() == BufferKind::temp && buffer.getIndex() == SlotIndex::none && !buffer.getSaved() &&
         !buffer.getOf();
}

bool ParameterFlow::isMadeOfParameters(Operation *op) const {
  return op->getNumOperands() > 0 &&
         llvm::all_of(op->getOperands(), [&](Value value) { return values.contains(value); });
}

void ParameterFlow::follow(BlockOp block) {
  for (Operation &op : block.getBody().front()) {
    if (auto load = dyn_cast<LoadOp>(op)) {
      BufferOp buffer = bufferOf(load.getBuffer());
      if (parameters.contains(buffer) || made.contains(buffer))
        values.insert(load);
      if (auto filled = filledBy.find(buffer); filled != filledBy.end() && filled->second != block)
        carried.insert(buffer);
    } else if (auto store = dyn_cast<StoreOp>(op)) {
      BufferOp buffer = bufferOf(store.getBuffer());
      filledBy[buffer] = block;
      if (values.contains(store.getOperand())) {
        made.insert(buffer);
      } else {
        made.erase(buffer);
        mixed.insert(buffer);
      }
    } else if (isMadeOfParameters(&op)) {
      values.insert(op.result_begin(), op.result_end());
    }
  }
}

llvm::DenseSet<Operation *> ParameterFlow::run() {
  for (BlockOp block : program.getOps<BlockOp>())
    follow(block);
  llvm::DenseSet<Operation *> found;
  for (BufferOp buffer : program.getOps<BufferOp>())
    if (isCandidate(buffer) && made.contains(buffer) && !mixed.contains(buffer) && carried.contains(buffer))
      found.insert(buffer);
  return found;
}

llvm::DenseSet<Operation *> findMadeOfParameters(ProgramOp program, llvm::function_ref<bool(BufferOp)> isParameter) {
  return ParameterFlow(program, isParameter).run();
}

} // namespace par
