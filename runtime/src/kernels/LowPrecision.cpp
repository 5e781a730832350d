// The forms of kernels that keep some operands in bf16 or f16: the f32 kernel on widened copies, row by row
// where it computes rows.
#include "LowPrecision.h"
#include "Lanes.h"
#include "par/kernels/CudaBuiltins.h"
#include "par/kernels/LowPrecision.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace par::kernels {
namespace {

// Loops apart, and clones, so that they use the machine's own conversions.
PAR_CLONES void widen(const uint16_t *from, float *to, uint64_t n, bool isBF16) {
  if (isBF16)
    for (uint64_t i = 0; i < n; ++i)
      to[i] = fromBF16(from[i]);
  else
    for (uint64_t i = 0; i < n; ++i)
      to[i] = fromF16(from[i]);
}

PAR_CLONES void narrow(const float *from, uint16_t *to, uint64_t n, bool isBF16) {
  if (isBF16)
    for (uint64_t i = 0; i < n; ++i)
      to[i] = toBF16(from[i]);
  else
    for (uint64_t i = 0; i < n; ++i)
      to[i] = toF16(from[i]);
}

/// Bytes of an operand from one row to the next: of "rows x cols" or "rows"; 0 for an operand that all rows share.
uint64_t rowBytes(const BuiltinOperand &operand, uint64_t cols) {
  uint64_t elements = operand.shape == "rows x cols" ? cols : operand.shape == "rows" ? 1 : 0;
  return elements * (operand.type == "i64" ? 8 : operand.type == "f32" ? 4 : 2);
}

} // namespace

void runLowPrecision(const BuiltinKernel &kernel, KernelFunction inF32, void *const *ptr, const uint64_t *imm,
                     uint32_t tile0, uint32_t tile1) {
  uint64_t cols = imm[1], end = kernel.tileBy < 0 ? imm[0] : std::min<uint64_t>(imm[0], tile1 * kernel.tileSize);
  size_t count = kernel.operands.size();
  std::vector<uint64_t> immOfRow(imm, imm + kernel.immediates.size());
  immOfRow[0] = 1;
  std::vector<std::vector<float>> wide(count);
  std::vector<void *> row(count);
  for (uint64_t r = tile0 * kernel.tileSize; r < end; ++r) {
    auto at = [&](size_t i) { return static_cast<std::byte *>(ptr[i]) + r * rowBytes(kernel.operands[i], cols); };
    for (size_t i = 0; i < count; ++i) {
      const BuiltinOperand &operand = kernel.operands[i];
      row[i] = at(i);
      if (operand.type != "bf16" && operand.type != "f16")
        continue;
      wide[i].resize(cols);
      if (operand.access != Access::Write)
        widen(reinterpret_cast<const uint16_t *>(at(i)), wide[i].data(), cols, operand.type == "bf16");
      row[i] = wide[i].data();
    }
    inF32(row.data(), immOfRow.data(), 0, 1);
    for (size_t i = 0; i < count; ++i)
      if (!wide[i].empty() && kernel.operands[i].access != Access::Read)
        narrow(wide[i].data(), reinterpret_cast<uint16_t *>(at(i)), cols, kernel.operands[i].type == "bf16");
  }
}

void runOnCopies(const BuiltinKernel &kernel, KernelFunction inF32, void *const *ptr, const uint64_t *imm) {
  size_t count = kernel.operands.size();
  std::vector<std::vector<float>> wide(count);
  std::vector<void *> pointers(ptr, ptr + count);
  auto isLowPrecision = [&](size_t i) { return kernel.operands[i].type == "bf16" || kernel.operands[i].type == "f16"; };
  for (size_t i = 0; i < count; ++i) {
    if (!isLowPrecision(i))
      continue;
    wide[i].resize(operandElements(kernel, i, {imm, kernel.immediates.size()}));
    pointers[i] = wide[i].data();
    if (kernel.operands[i].access != Access::Write)
      widen(static_cast<const uint16_t *>(ptr[i]), wide[i].data(), wide[i].size(), kernel.operands[i].type == "bf16");
  }
  inF32(pointers.data(), imm, 0, builtinTiles(*findBuiltin(formInF32(kernel.name)), {imm, kernel.immediates.size()}));
  for (size_t i = 0; i < count; ++i)
    if (isLowPrecision(i) && kernel.operands[i].access != Access::Read)
      narrow(wide[i].data(), static_cast<uint16_t *>(ptr[i]), wide[i].size(), kernel.operands[i].type == "bf16");
}

} // namespace par::kernels
