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

/// Immediates begin with images, groups, channels of one, outputs of one; window's dims at 7, positions at 10.
static RowKey convolutionRow(const Kernel &kernel, const Instruction &instruction) {
  std::string direction = kernel.symbol.starts_with("convolution_input_grad")    ? "data"
                          : kernel.symbol.starts_with("convolution_filter_grad") ? "weights"
                                                                                 : "forward";
  RowKey row{"convolutions", {std::string(format::toString(kernels::formatOf(kernel))), direction}, {}};
  for (size_t at : {0, 1, 2, 3, 7, 8, 9, 10, 11, 12})
    row.sizes.push_back(instruction.imms[at].value);
  return row;
}

static RowKey copyRow(const Program &program, const Instruction &instruction) {
  const format::Buffer &from = program.buffers[instruction.operands[0].buffer];
  const format::Buffer &to = program.buffers[instruction.operands[1].buffer];
  return {"copies",
          {from.space == to.space ? "device" : "host"},
          {static_cast<int64_t>(instruction.n * format::sizeOf(from.type))}};
}

std::optional<RowKey> rowOf(const Program &program, const Instruction &instruction) {
  if (instruction.op == Op::Call)
    return matmulRow(program.calls[instruction.call]);
  if (instruction.op == Op::Copy)
    return copyRow(program, instruction);
  if (instruction.op == Op::Fill) {
    const format::Buffer &buffer = program.buffers[instruction.operands[0].buffer];
    return RowKey{"kernels", {}, {static_cast<int64_t>(buffer.bytes()), 0}};
  }
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
