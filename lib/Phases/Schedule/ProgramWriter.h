#pragma once

#include "Buffers.h"

namespace par {

/// Writes one step into the programs of its devices.
class ProgramWriter {
public:
  /// `tag` is the next free id of a communication site; it is counted on.
  ProgramWriter(const StepTasks &tasks, const StepOrder &order, const Buffers &buffers, int64_t &tag);

  /// Adds buffers, blocks and the entry of a device.
  void write(ProgramOp program, unsigned device);

private:
  /// The microbatches that use a block.
  struct Variant {
    bool first = false, last = false; ///< starts the sums; takes the tail along
    std::set<std::string> older;      ///< parameters that have been updated since the version that it computes with
  };
  Variant variantOf(size_t position) const;
  std::string nameOf(const Task &task, unsigned device, const Variant &variant);
  void writeBuffers(ProgramOp program, unsigned device);
  /// The runs of an entry while they are listed.
  struct Runs {
    llvm::SmallVector<mlir::Attribute> blocks;
    llvm::SmallVector<int64_t> microbatches, versions;
    void add(mlir::Attribute block, int64_t microbatch, int64_t version) {
      blocks.push_back(block);
      microbatches.push_back(microbatch);
      versions.push_back(version);
    }
  };
  int64_t countCallsAtOnce(unsigned device) const;
  void writeNumbers(ProgramOp program, unsigned device);
  void numberCall(unsigned device, int64_t call, Runs &runs);
  mlir::Attribute writeLate(ProgramOp program, unsigned device, bool perMicrobatch);
  int64_t microbatchesOfCall() const;
  std::vector<size_t> findCallEnds(unsigned device) const;
  void keepOlderOf(mlir::OpBuilder &builder, mlir::Value result);
  void keepOlder(mlir::OpBuilder &builder, mlir::Location loc, const BufferPlan &state, unsigned device);
  void writeBlock(ProgramOp program, llvm::StringRef name, const Task &task, unsigned device, const Variant &variant);
  void writeCompute(mlir::OpBuilder &builder, const Task &task, const Variant &variant);
  void writeTransfer(mlir::OpBuilder &builder, const Task &task, unsigned device);
  /// A value in transfer from one stage to another with another mesh.
  struct Crossing {
    DistType from, to;
    StageOp here, there;
    int64_t tag;
  };
  Crossing crossingOf(DistType from, DistType to, int64_t tag) const;
  void sendParts(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value local, Crossing crossing);
  mlir::Value recvParts(mlir::OpBuilder &builder, mlir::Location loc, Crossing crossing);
  /// Whether its stages have different meshes.
  bool isApart(const Task &task) const;
  int64_t countTags(const Task &task) const;
  void writeExchange(mlir::OpBuilder &builder, const Task &task, unsigned device);
  void writeReduceApart(mlir::OpBuilder &builder, const Task &task, unsigned device);
  static mlir::Value combine(mlir::OpBuilder &builder, mlir::Location loc, ReduceKind kind, mlir::Value left,
                             mlir::Value right);
  mlir::Value combineLocally(mlir::OpBuilder &builder, const Task &task, unsigned device);
  mlir::ArrayAttr groupRanks(mlir::OpBuilder &builder, llvm::ArrayRef<unsigned> devices);
  void writeReduce(mlir::OpBuilder &builder, const Task &task, unsigned device);
  mlir::Value load(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);
  void store(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Value local, bool whole = true);
  void addSum(mlir::OpBuilder &builder, mlir::OpResult sum, const Variant &variant);
  /// Buffer of the microbatches' numbers, a slot for each.
  std::string numberName() const { return tasks.prefix + "microbatch"; }
  std::string numberBlock(bool first) const { return tasks.prefix + "number" + (first ? ".first" : ""); }
  void execute(mlir::OpBuilder &builder, RunOp run);

  const StepTasks &tasks;
  const StepOrder &order;
  const Buffers &buffers;
  llvm::SmallVector<int64_t> tags;                 ///< one an activity
  llvm::DenseMap<mlir::Value, mlir::Value> locals; ///< of the block being written
  std::set<std::string> older;                     ///< of the block being written: see Variant
  std::map<std::pair<const Task *, std::set<std::string>>, unsigned> olderSets; ///< numbers of such sets
};

} // namespace par
