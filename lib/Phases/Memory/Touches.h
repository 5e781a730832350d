// The loads and stores of each buffer in a block, which would else be searched for op by op.
#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// The loads and stores by the buffer's name, in no order: ops are added as a pass makes them.
class BlockTouches {
public:
  explicit BlockTouches(BlockOp block);

  llvm::ArrayRef<LoadOp> loads(llvm::StringRef buffer) const { return find(loadsOf, buffer); }
  llvm::ArrayRef<StoreOp> stores(llvm::StringRef buffer) const { return find(storesOf, buffer); }
  void add(LoadOp load) { loadsOf[load.getBuffer()].push_back(load); }
  void add(StoreOp store) { storesOf[store.getBuffer()].push_back(store); }
  /// The store is about to be erased.
  void remove(StoreOp store) { llvm::erase(storesOf[store.getBuffer()], store); }

private:
  template <typename Op>
  using ByBuffer = llvm::StringMap<llvm::SmallVector<Op, 2>>;
  template <typename Op>
  static llvm::ArrayRef<Op> find(const ByBuffer<Op> &map, llvm::StringRef buffer) {
    auto found = map.find(buffer);
    return found == map.end() ? llvm::ArrayRef<Op>() : llvm::ArrayRef<Op>(found->second);
  }

  ByBuffer<LoadOp> loadsOf;
  ByBuffer<StoreOp> storesOf;
};

inline BlockTouches::BlockTouches(BlockOp block) {
  for (mlir::Operation &op : block.getBody().front()) {
    if (auto load = llvm::dyn_cast<LoadOp>(op))
      add(load);
    if (auto store = llvm::dyn_cast<StoreOp>(op))
      add(store);
  }
}

} // namespace par
