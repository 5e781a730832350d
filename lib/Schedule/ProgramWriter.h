#ifndef PAR_LIB_SCHEDULE_PROGRAMWRITER_H
#define PAR_LIB_SCHEDULE_PROGRAMWRITER_H

#include "Buffers.h"

namespace par {

/// Writes one step into the programs of its stages.
class ProgramWriter {
public:
  /// `tag` is the next free id of a communication site; it is counted on.
  ProgramWriter(const Activities &activities, const StepOrder &order, const Buffers &buffers, int64_t &tag);

  /// Adds buffers, blocks and the entry of a stage.
  void write(ProgramOp program, unsigned stage);

private:
  /// Which microbatches a block is for.
  struct Variant {
    bool first = false, last = false; ///< starts the sums; takes the tail along
    bool operator==(const Variant &) const = default;
  };
  Variant variantOf(const Activity &activity, int64_t microbatch) const;
  std::string nameOf(const Activity &activity, unsigned stage, Variant variant) const;
  void writeBuffers(ProgramOp program, unsigned stage);
  void writeNumbers(ProgramOp program, unsigned stage, llvm::SmallVectorImpl<mlir::Attribute> &runs,
                    llvm::SmallVectorImpl<int64_t> &microbatches);
  void writeLate(ProgramOp program, unsigned stage, llvm::SmallVectorImpl<mlir::Attribute> &runs);
  void writeBlock(ProgramOp program, llvm::StringRef name, const Activity &activity, unsigned stage,
                  Variant variant);
  void writeCompute(mlir::OpBuilder &builder, const Activity &activity, Variant variant);
  void writeTransfer(mlir::OpBuilder &builder, const Activity &activity, unsigned stage);
  mlir::Value combineLocally(mlir::OpBuilder &builder, StageReduceOp reduce, unsigned stage);
  void writeReduce(mlir::OpBuilder &builder, const Activity &activity, unsigned stage);
  mlir::Value load(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);
  void store(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Value local);
  void addSum(mlir::OpBuilder &builder, mlir::OpResult sum, Variant variant);
  /// Buffer of the microbatches' numbers, a slot for each.
  std::string numberName() const { return activities.prefix + "microbatch"; }
  void execute(mlir::OpBuilder &builder, RunOp run);

  const Activities &activities;
  const StepOrder &order;
  const Buffers &buffers;
  llvm::SmallVector<int64_t> tags;                 ///< one an activity
  llvm::DenseMap<mlir::Value, mlir::Value> locals; ///< of the block being written
};

} // namespace par

#endif
