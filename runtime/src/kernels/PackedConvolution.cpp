// Filters that are kept packed, and calls that the library does not compute as they are: where a NaN or an infinity
// would be hidden or spread.
#include "par/kernels/PackedConvolution.h"

#include "LastConvolution.h"
#include "par/format/Sha256.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace par::kernels {

PackedConvolution::PackedConvolution(ResidualPlace place, ConvolutionWay way) : place(place), way(way) {}
PackedConvolution::PackedConvolution(PackedConvolution &&) noexcept = default;
PackedConvolution::~PackedConvolution() = default;

void PackedConvolution::pack(const LastOperands &operands) {
  constexpr size_t each = sizeof(Line) / sizeof(float);
  if (size_t wanted = (convolution->packedSize() + each - 1) / each; lines != wanted) {
    // Packing writes all of it; whether transforms do the library does not say.
    packed = convolution->isTransformed() ? std::make_unique<Line[]>(wanted)
                                          : std::make_unique_for_overwrite<Line[]>(wanted);
    lines = wanted;
  }
  convolution->pack(operands.w, operands.scale, packed[0].values);
  inUse = packed[0].values;
}

void PackedConvolution::prepare(const LastOperands &operands, size_t outputs) {
  scale.assign(operands.scale, operands.scale + outputs);
  if (lent && lent->values.size() == convolution->packedSize() && lent->kind == kindOfFilter())
    inUse = lent->values.data();
  else
    pack(operands);
  lent.reset();
  source = operands.w;
  call = std::make_unique<LastCall>(*convolution, inUse);
}

std::string PackedConvolution::kindOfFilter() const {
  std::string_view scales(reinterpret_cast<const char *>(scale.data()), scale.size() * sizeof(float));
  return format::sha256(convolution->describePacked() + std::string(scales));
}

std::optional<PackedFilter> PackedConvolution::packedFilter() const {
  if (!source)
    return std::nullopt;
  return PackedFilter{kindOfFilter(), {inUse, convolution->packedSize()}};
}

void PackedConvolution::run(void *const *ptr, const uint64_t *imm) {
  LastOperands operands(ptr, imm, place);
  if (!convolution)
    convolution = &lastConvolutionFor(imm, way);
  size_t outputs = operands.scale ? imm[3] : 0;
  bool isScaledAlike = scale.size() == outputs && std::equal(scale.begin(), scale.end(), operands.scale);
  if (source != operands.w || !isScaledAlike)
    prepare(operands, outputs);
  LastCall::Outcome outcome = call->run(operands);
  if (outcome == LastCall::Outcome::Written)
    return;
  if (!exact)
    exact = std::make_unique<PackedConvolution>(ResidualPlace::Operand, ConvolutionWay::Direct);
  if (operands.residual == operands.y)
    runExactlyInPlace(ptr, imm, outcome == LastCall::Outcome::MetNan);
  else
    runExactly(ptr, imm);
}

/// The immediates of the call without bounds.
static std::vector<uint64_t> unbounded(const uint64_t *imm) {
  std::vector<uint64_t> whole(imm, imm + High + 1);
  constexpr double most = std::numeric_limits<double>::infinity();
  whole[Low] = realImmediate(-most);
  whole[High] = realImmediate(most);
  return whole;
}

void PackedConvolution::runExactly(void *const *ptr, const uint64_t *imm) {
  exact->run(ptr, unbounded(imm).data());
  auto *y = static_cast<float *>(ptr[2]);
  for (size_t i = 0, size = convolution->outputSize(); i < size; ++i)
    y[i] = convolution->bounded(y[i]);
}

void PackedConvolution::runExactlyInPlace(void *const *ptr, const uint64_t *imm, bool isWritten) {
  std::vector<float> sums(convolution->outputSize());
  std::vector<uint64_t> whole = unbounded(imm);
  whole[HasResidual] = 0;
  void *operands[] = {ptr[0], ptr[1], sums.data(), nullptr, nullptr};
  std::copy_n(ptr + 3, size_t(imm[HasScale] != 0) + (imm[HasBias] != 0), operands + 3);
  exact->run(operands, whole.data());
  auto *y = static_cast<float *>(ptr[2]);
  for (size_t i = 0; i < sums.size(); ++i)
    if (!isWritten || std::isnan(sums[i]))
      y[i] = convolution->bounded(sums[i] + y[i]);
}

void PackedConvolution::forget() {
  source = inUse = nullptr;
  lent.reset();
  exact.reset();
}

size_t PackedConvolution::bytes() const {
  return lines * sizeof(Line) + scale.size() * sizeof(float) + (exact ? exact->bytes() : 0);
}

/// The library's work is one piece, done with tile 0, as that of other convolutions.
void convolutionLast(void *const *ptr, const uint64_t *imm, uint32_t, uint32_t) { PackedConvolution().run(ptr, imm); }
void convolutionLastAdd(void *const *ptr, const uint64_t *imm, uint32_t, uint32_t) {
  PackedConvolution(ResidualPlace::Result).run(ptr, imm);
}

} // namespace par::kernels
