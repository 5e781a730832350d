#include "Rows.h"

#include "par/kernels/Work.h"
#include "par/messages/Failure.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace par::calibrate {

using format::Instruction;
using format::Kernel;
using format::Op;
using format::Program;
using nlohmann::json;

std::string RowKey::text() const {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : ", ") + word;
  for (int64_t size : sizes)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return text;
}

void Rows::add(const RowKey &key, double ns, double count) {
  rows[key].sum += ns * count;
  rows[key].count += count;
}

/// At least 1: nothing takes no time, and predictions divide by it.
int64_t Rows::Value::ns() const { return std::max<int64_t>(1, std::llround(sum / count)); }

std::string Rows::encode() const {
  json all = json::array();
  for (const auto &[key, value] : rows)
    all.push_back({key.list, key.words, key.sizes, value.sum, value.count});
  return all.dump();
}

void Rows::addEncoded(const std::string &text) {
  const json all = json::parse(text);
  for (const json &row : all) {
    Value &value = rows[{row[0], row[1], row[2]}];
    value.sum += row[3].get<double>();
    value.count += row[4].get<double>();
  }
}

static RowKey matmulRow(const format::Call &call) {
  int64_t batch = 1;
  for (int64_t dim : call.batch)
    batch *= dim;
  std::string transposes = {call.transA ? 't' : 'n', call.transB ? 't' : 'n'};
  return {"matmuls", {std::string(format::toString(call.type)), transposes}, {batch, call.m, call.n, call.k}};
}

int64_t flopsOfMatmul(const RowKey &key) {
  int64_t flops = 2;
  for (int64_t size : key.sizes)
    flops *= size;
  return flops;
}

/// Immediates begin with batch, heads, groups, queries, keys, both head dims, causal.
static RowKey attentionRow(const Kernel &kernel, const Instruction &instruction) {
  bool backward = kernel.symbol.starts_with("attention_backward");
  RowKey row{
      "attentions", {std::string(format::toString(kernels::formatOf(kernel))), backward ? "backward" : "forward"}, {}};
  for (size_t at : {0, 1, 2, 3, 4, 5, 7})
    row.sizes.push_back(instruction.imms[at].value);
  return row;
}

/// Immediates begin with images, groups, channels of one, outputs; window's dims at 7, numbers of windows at 10.
static RowKey convolutionRow(const Kernel &kernel, const Instruction &instruction) {
  auto imm = [&](size_t at) { return instruction.imms[at].value; };
  std::string direction = kernel.symbol.starts_with("convolution_input_grad")    ? "data"
                          : kernel.symbol.starts_with("convolution_filter_grad") ? "weights"
                                                                                 : "forward";
  return {"convolutions",
          {std::string(format::toString(kernels::formatOf(kernel))), direction},
          {imm(0), imm(1), imm(2), imm(3), imm(7) * imm(8) * imm(9), imm(10) * imm(11) * imm(12)}};
}

RowKey copyRow(bool crosses, uint64_t bytes) {
  return {"copies", {crosses ? "host" : "device"}, {static_cast<int64_t>(crosses ? bytes : 2 * bytes)}};
}

std::optional<RowKey> rowOf(const Program &program, const Instruction &instruction) {
  if (instruction.op == Op::Call)
    return matmulRow(program.calls[instruction.call]);
  if (instruction.op == Op::Copy) {
    const format::Buffer &from = program.buffers[instruction.operands[0].buffer];
    const format::Buffer &to = program.buffers[instruction.operands[1].buffer];
    return copyRow(from.space != to.space, instruction.n * format::sizeOf(from.type));
  }
  if (instruction.op == Op::Fill)
    return RowKey{
        "copies", {"device"}, {static_cast<int64_t>(program.buffers[instruction.operands[0].buffer].bytes())}};
  if (instruction.op != Op::Kernel)
    return std::nullopt;
  const Kernel &kernel = program.kernels[instruction.kernel];
  if (kernels::isAttention(kernel))
    return attentionRow(kernel, instruction);
  if (kernels::isConvolution(kernel))
    return convolutionRow(kernel, instruction);
  int64_t flops = kernel.builtin ? 0 : kernel.flops; // as predictions ask: memory bounds builtins
  return RowKey{"kernels", {}, {kernels::movedBytes(kernel, instruction), flops}};
}

} // namespace par::calibrate
