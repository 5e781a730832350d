// The layouts found so far: values that must have the same one are a class.
#pragma once

#include "par/Phases/Propagate/FactorAxes.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"

namespace par {

/// The sharding found so far for a class of values that must have the same.
struct Layout {
  llvm::SmallVector<Axes> dims;
  llvm::SmallVector<bool> fixed; ///< the plan closed this dim
  bool gathered = false;         ///< no axis that parameters are spread over comes to it any more
  uint64_t changed = 1;          ///< when, by the clock of Layouts
};

class Layouts {
public:
  /// `parameterAxes`: those that parameters are spread over.
  Layouts(mlir::ModuleOp module, const mlir::SymbolTable &symbols, llvm::ArrayRef<mlir::StringAttr> parameterAxes);

  /// Before any layout is asked for.
  void join(mlir::Value a, mlir::Value b) { classes.unionSets(a.getAsOpaquePointer(), b.getAsOpaquePointer()); }
  const Layout &of(mlir::Value value) { return find(value); }
  /// The layout, to write it: ops that have it spread its axes once more.
  Layout &change(mlir::Value value);
  /// Appends axes to a dim if that is allowed; true if something changed.
  bool extend(mlir::Value value, int64_t dim, llvm::ArrayRef<mlir::StringAttr> axes);
  bool extend(Layout &layout, mlir::RankedTensorType type, MeshAttr mesh, int64_t dim,
              llvm::ArrayRef<mlir::StringAttr> axes);
  /// It stays in its place.
  Layout &find(mlir::Value value);
  MeshAttr meshOf(mlir::Value value) const;
  uint64_t now() const { return clock; }

private:
  int64_t maxShards(llvm::ArrayRef<mlir::StringAttr> axes) const;

  const mlir::SymbolTable &symbols;
  Axes parameterAxes;
  llvm::SmallSetVector<MeshAttr, 2> meshes; ///< of the stages
  llvm::EquivalenceClasses<void *> classes;
  llvm::DenseMap<void *, std::unique_ptr<Layout>> layouts;
  uint64_t clock = 1; ///< counts changes
};

} // namespace par
