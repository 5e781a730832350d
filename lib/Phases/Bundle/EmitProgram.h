#pragma once

#include "Communicators.h"
#include "par/Dialect/Beside.h"
#include "par/Phases/Codegen/Codegen.h"
#include "par/Phases/Memory/Arena.h"
#include "par/format/Bundle.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace par {

/// Tables shared by the programs of one bundle.
struct BundleTables {
  explicit BundleTables(mlir::ModuleOp module, const CompiledKernels &compiled);

  /// Index of the line for a location; -1 if nothing is known of it.
  int32_t provenanceOf(mlir::Location location);

  mlir::ModuleOp module;
  mlir::SymbolTable names;                       ///< of kernels and stages
  llvm::StringMap<const KernelInfo *> generated; ///< by the kernel's symbol
  bool gpu;                                      ///< programs are for cuda
  Communicators communicators;
  std::vector<std::string> provenance;
  llvm::StringMap<int32_t> provenanceIndex;
};

/// The buffer itself, or the one that it is a part of.
inline uint32_t ownerOf(const format::Program &program, uint32_t buffer) {
  return program.buffers[buffer].of == format::noIndex ? buffer : program.buffers[buffer].of;
}

/// Turns one par.program into one program of the format.
class ProgramEmitter {
public:
  ProgramEmitter(ProgramOp program, BundleTables &tables) : program(program), names(program), tables(tables) {}

  mlir::FailureOr<format::Program> emit();

private:
  std::string nameOf(BufferOp buffer) const;
  void emitBuffers();
  mlir::LogicalResult emitBlock(BlockOp block);
  void emitEntry(EntryOp entry);
  void findFeeds();
  void emitFeeds(BlockOp block);

  mlir::LogicalResult emitOp(mlir::Operation *op);
  mlir::LogicalResult emitLaunch(LaunchOp launch);
  mlir::LogicalResult emitGenerated(LaunchOp launch, KernelOp kernel);
  mlir::LogicalResult emitBuiltin(LaunchOp launch, KernelOp kernel);
  mlir::LogicalResult emitMatmul(LaunchOp launch, KernelOp kernel);
  void emitFill(LaunchOp launch);
  struct Piece;
  std::vector<Piece> piecesOf(CollectiveOpInterface op);
  format::Operand pieceOf(format::Access access, mlir::Value value, Piece piece);
  mlir::LogicalResult emitExchange(CollectiveOpInterface op, const std::string &comm, Piece piece, uint64_t tag);
  mlir::LogicalResult emitCollective(CollectiveOpInterface op, const std::string &comm);
  mlir::LogicalResult emitWorldAllReduce(WorldAllReduceOp reduce);
  mlir::LogicalResult emitSend(SendOp send);
  mlir::LogicalResult emitRecv(RecvOp recv);
  void emitParts(mlir::Operation *op, mlir::ValueRange parts, llvm::ArrayRef<int64_t> peers, mlir::ArrayAttr groups,
                 int64_t tag);
  void emitCopy(StoreOp store, LoadOp load);
  mlir::LogicalResult emitReduction(mlir::Operation *op, unsigned index, const std::string &comm, ReduceKind kind,
                                    uint64_t tag);
  /// A collective on a queue beside compute: it waits for earlier compute, and later compute waits for it.
  mlir::LogicalResult emitBeside(CollectiveOpInterface op);
  /// Compute waits for the end of such a collective.
  void emitDone(DoneOp done);
  /// Without a `done`, other queues wait before each access to the results of such a collective.
  void emitWaits(format::Block &block) const;
  /// Removes communication and copies of no elements: tensors may be empty.
  static void dropEmpty(format::Block &block);

  /// Copies between device and host go beside compute, each direction in its order, each copy ordered with accesses to
  /// its bytes.
  void giveCopiesQueues(format::Block &block);

  /// Sends to and receives from other stages go beside compute.
  void giveTransfersQueues();

  /// A new instruction at the end of the block, on the current queue.
  format::Instruction &append(mlir::Operation *op, format::Op kind);
  /// Begins a group of `count` communications, if there are several.
  void beginGroup(mlir::Operation *op, size_t done, size_t count);
  format::Operand operand(format::Access access, BufferOp buffer) const;
  /// Elements of a buffer from a byte on: an alias, if they are not the whole.
  format::Operand part(format::Access access, BufferOp buffer, uint64_t offset, mlir::RankedTensorType type);
  uint32_t comm(const std::string &name);
  uint32_t event(const std::string &name);
  uint32_t queueNamed(llvm::StringRef name);
  uint32_t scratch(uint64_t bytes);

  BufferOp bufferOf(mlir::Value value) const { return getBuffer(value, names); }

  ProgramOp program;
  mlir::SymbolTable names; ///< of the program's buffers and blocks
  BundleTables &tables;
  format::Program out;
  llvm::DenseMap<mlir::Operation *, uint32_t> buffers;
  llvm::StringMap<uint32_t> kernels, calls;
  uint32_t queue = 0; ///< of the instructions that are appended
  /// Buffers that a queue beside compute writes: the events of when it has, and the queue.
  llvm::DenseMap<uint32_t, llvm::SmallVector<std::pair<uint32_t, uint32_t>>> writtenBeside;
  /// Blocks that feed a buffer: some run of them is the first to load it for its microbatch.
  llvm::MapVector<mlir::Operation *, llvm::SetVector<mlir::Operation *>> feeds;
};

} // namespace par
