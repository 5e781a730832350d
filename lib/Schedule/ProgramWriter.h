#ifndef PAR_LIB_SCHEDULE_PROGRAMWRITER_H
#define PAR_LIB_SCHEDULE_PROGRAMWRITER_H

#include "Buffers.h"

namespace par {

/// Writes one step into the programs of its devices.
class ProgramWriter {
public:
  /// `tag` is the next free id of a communication site; it is counted on.
  ProgramWriter(const Activities &activities, const StepOrder &order, const Buffers &buffers, int64_t &tag);

  /// Adds buffers, blocks and the entry of a device.
  void write(ProgramOp program, unsigned device);

private:
  /// Which microbatches a block is for.
  struct Variant {
    bool first = false, last = false; ///< starts the sums; takes the tail along
    bool operator==(const Variant &) const = default;
  };
  Variant variantOf(const Activity &activity, int64_t microbatch) const;
  std::string nameOf(const Activity &activity, unsigned device, Variant variant) const;
  void writeBuffers(ProgramOp program, unsigned device);
  void writeNumbers(ProgramOp program, unsigned device, llvm::SmallVectorImpl<mlir::Attribute> &runs,
                    llvm::SmallVectorImpl<int64_t> &microbatches);
  void writeLate(ProgramOp program, unsigned device, bool perMicrobatch, llvm::SmallVectorImpl<mlir::Attribute> &runs,
                 llvm::SmallVectorImpl<int64_t> &microbatches);
  void writeBlock(ProgramOp program, llvm::StringRef name, const Activity &activity, unsigned device,
                  Variant variant);
  void writeCompute(mlir::OpBuilder &builder, const Activity &activity, Variant variant);
  void writeTransfer(mlir::OpBuilder &builder, const Activity &activity, unsigned device);
  /// A value on its way from one stage to another with another mesh.
  struct Crossing {
    DistType from, to;
    StageOp here, there;
    int64_t tag;
  };
  Crossing crossingOf(DistType from, DistType to, int64_t tag) const;
  void sendParts(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value local, Crossing crossing);
  mlir::Value recvParts(mlir::OpBuilder &builder, mlir::Location loc, Crossing crossing);
  /// Whether its stages have different meshes.
  bool isApart(const Activity &activity) const;
  int64_t countTags(const Activity &activity) const;
  void writeExchange(mlir::OpBuilder &builder, const Activity &activity, unsigned device);
  void writeReduceApart(mlir::OpBuilder &builder, const Activity &activity, unsigned device);
  static mlir::Value combine(mlir::OpBuilder &builder, mlir::Location loc, ReduceKind kind, mlir::Value left, mlir::Value right);
  mlir::Value combineLocally(mlir::OpBuilder &builder, const Activity &activity, unsigned device);
  mlir::ArrayAttr groupRanks(mlir::OpBuilder &builder, llvm::ArrayRef<unsigned> devices);
  void writeReduce(mlir::OpBuilder &builder, const Activity &activity, unsigned device);
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
