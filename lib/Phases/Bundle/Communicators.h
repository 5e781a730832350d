#pragma once

#include "par/Dialect/Par.h"
#include "par/format/Manifest.h"

#include <map>

namespace par {

/// A name that fits into a bundle's tables: a long one is its begin and a hash of the whole name.
std::string tableName(llvm::StringRef name);

/// The communicators of a bundle, and the ids of global communications: one table for all programs.
class Communicators {
public:
  explicit Communicators(mlir::ModuleOp module);

  /// The groups of these axes on every stage that has them all: "tp", "dp+tp". A queue beside compute has
  /// its own, "dp.data".
  std::string overAxes(llvm::ArrayRef<mlir::StringAttr> axes, llvm::StringRef queue = "");
  /// The members of two stages in pairs, the sender first: "s0>s1". Fails with an error at `op` unless
  /// `peers` are the ranks of a stage as large as this one.
  mlir::FailureOr<std::string> between(mlir::Operation *op, llvm::ArrayRef<int64_t> own, llvm::ArrayRef<int64_t> peers,
                                       bool sends);
  /// Groups of world ranks as an op lists them: "stages", "stages.1".
  std::string overGroups(mlir::ArrayAttr groups);
  /// Groups whose members, of one stage and then of another, send in parts: "s0>s1", "s0>s1.1".
  std::string overParts(mlir::ArrayAttr groups);

  /// A communication that programs agree on by the op's tag and the operand's number.
  enum class Scope { Transfer, World };
  uint64_t tagOf(Scope scope, int64_t tag, unsigned operand);
  /// A communication inside one program.
  uint64_t freshTag() { return nextTag++; }

  const std::vector<format::Communicator> &list() const { return table; }

private:
  bool has(llvm::StringRef name) const;
  using Groups = format::RankGroups::Lists;
  /// The communicator of these groups and this name. A number is appended if other groups have the name: stages may
  /// send to each other in several ways.
  std::string named(const std::string &stem, Groups groups);
  std::string nameOf(llvm::ArrayRef<mlir::StringAttr> axes);
  StageOp stageOf(llvm::ArrayRef<int64_t> ranks);

  llvm::SmallVector<StageOp> stages; ///< of those on the same ranks the first
  std::vector<format::Communicator> table;
  std::map<std::tuple<Scope, int64_t, unsigned>, uint64_t> tags;
  uint64_t nextTag = 1;
};

} // namespace par
