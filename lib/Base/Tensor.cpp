#include "par/Base/Tensor.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace par::interp {

Tensor::Tensor(RankedTensorType type) : type(type) {
  if (isFloat())
    floatData = std::make_shared<std::vector<double>>(getSize());
  else
    intData = std::make_shared<std::vector<int64_t>>(getSize());
}

Tensor Tensor::ofFloats(RankedTensorType type, std::vector<double> values) {
  Tensor tensor;
  tensor.type = type;
  tensor.floatData = std::make_shared<std::vector<double>>(std::move(values));
  return tensor;
}

Tensor Tensor::ofInts(RankedTensorType type, std::vector<int64_t> values) {
  Tensor tensor;
  tensor.type = type;
  tensor.intData = std::make_shared<std::vector<int64_t>>(std::move(values));
  return tensor;
}

Tensor Tensor::ofAttribute(ElementsAttr attribute) {
  Tensor tensor(cast<RankedTensorType>(attribute.getShapedType()));
  auto dense = dyn_cast<DenseElementsAttr>(attribute);
  bool boolean = tensor.type.getElementType().isInteger(1);
  if (tensor.isFloat()) {
    auto out = tensor.mutableFloats();
    for (auto [to, from] : llvm::zip(out, dense.getValues<APFloat>())) {
      bool lost;
      APFloat wide = from;
      wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      to = wide.convertToDouble();
    }
  } else {
    auto out = tensor.mutableInts();
    for (auto [to, from] : llvm::zip(out, dense.getValues<APInt>()))
      to = boolean ? static_cast<int64_t>(from.getZExtValue()) : from.getSExtValue();
  }
  return tensor;
}

MutableArrayRef<double> Tensor::mutableFloats() {
  if (floatData.use_count() > 1)
    floatData = std::make_shared<std::vector<double>>(*floatData);
  return *floatData;
}

MutableArrayRef<int64_t> Tensor::mutableInts() {
  if (intData.use_count() > 1)
    intData = std::make_shared<std::vector<int64_t>>(*intData);
  return *intData;
}

Tensor Tensor::withType(RankedTensorType other) const {
  Tensor tensor = *this;
  tensor.type = other;
  return tensor;
}

} // namespace par::interp
