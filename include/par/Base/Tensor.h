#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <memory>
#include <vector>

namespace par::interp {

/// A tensor of the interpreter: floats are held as f64, integers and booleans as i64, whatever the element
/// type. Elements are row-major. Copies share storage; `mutableX()` makes it unique first.
class Tensor {
public:
  Tensor() = default;
  /// All elements zero.
  explicit Tensor(mlir::RankedTensorType type);
  static Tensor ofFloats(mlir::RankedTensorType type, std::vector<double> values);
  static Tensor ofInts(mlir::RankedTensorType type, std::vector<int64_t> values);
  /// Elements of a constant.
  static Tensor ofAttribute(mlir::ElementsAttr attribute);

  mlir::RankedTensorType getType() const { return type; }
  llvm::ArrayRef<int64_t> getShape() const { return type.getShape(); }
  int64_t getSize() const { return type.getNumElements(); }
  bool isFloat() const { return llvm::isa<mlir::FloatType>(type.getElementType()); }
  explicit operator bool() const { return static_cast<bool>(type); }

  llvm::ArrayRef<double> floats() const { return *floatData; }
  llvm::ArrayRef<int64_t> ints() const { return *intData; }
  llvm::MutableArrayRef<double> mutableFloats();
  llvm::MutableArrayRef<int64_t> mutableInts();
  /// The same elements under another type of equal size and kind.
  Tensor withType(mlir::RankedTensorType other) const;

private:
  mlir::RankedTensorType type;
  std::shared_ptr<std::vector<double>> floatData;
  std::shared_ptr<std::vector<int64_t>> intData;
};

} // namespace par::interp
