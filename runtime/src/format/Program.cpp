// Tables, names and addresses of a program.
#include "par/format/Program.h"
#include "Names.h"

using namespace par::format;

uint64_t par::format::sizeOf(DType type) {
  switch (type) {
  case DType::F64:
  case DType::I64:
  case DType::U64:
    return 8;
  case DType::F32:
  case DType::I32:
  case DType::U32:
    return 4;
  case DType::F16:
  case DType::BF16:
  case DType::I16:
  case DType::U16:
    return 2;
  default:
    return 1;
  }
}

std::string_view par::format::toString(DType type) { return nameOf(type); }
std::optional<DType> par::format::dtypeOf(std::string_view word) { return valueOf<DType>(word); }
std::string_view par::format::toString(Op op) { return nameOf(op); }
std::string_view par::format::toString(CollKind kind) { return nameOf(kind); }
std::string_view par::format::toString(Epilogue epilogue) { return nameOf(epilogue); }
std::optional<Epilogue> par::format::epilogueOf(std::string_view word) { return valueOf<Epilogue>(word); }
std::string_view par::format::toString(Reduction reduction) { return nameOf(reduction); }
std::string_view par::format::toString(Access access) { return nameOf(access); }
std::string_view par::format::toString(Space space) { return nameOf(space); }
std::string_view par::format::toString(BufferKind kind) { return nameOf(kind); }
std::string_view par::format::toString(Index index) { return nameOf(index); }

uint64_t Buffer::bytes() const {
  uint64_t n = sizeOf(type);
  for (int64_t dim : shape)
    n *= uint64_t(dim);
  return n;
}

uint64_t Call::extent(char which) const {
  int64_t rows = which == 'a' ? (transA ? k : m) : which == 'b' ? (transB ? n : k) : m;
  int64_t columns = which == 'a' ? (transA ? m : k) : which == 'b' ? (transB ? k : n) : n;
  int64_t leading = which == 'a' ? lda : which == 'b' ? ldb : ldc;
  const std::vector<int64_t> &strides = which == 'a' ? strideA : which == 'b' ? strideB : strideC;
  // 128 bits hold any product of two 63-bit numbers, and the few sums of them that there are.
  __int128 last = __int128(rows - 1) * leading + columns;
  for (size_t i = 0; i < batch.size() && i < strides.size(); ++i) {
    last += __int128(batch[i] - 1) * strides[i];
    if (last > INT64_MAX)
      return 0;
  }
  return last > INT64_MAX || last < 0 ? 0 : uint64_t(last);
}

uint64_t Call::auxBytes() const {
  uint64_t elements = epilogue == Epilogue::SumA ? uint64_t(m) : epilogue == Epilogue::SumB ? uint64_t(n) : extent('c');
  return elements * sizeOf(typeC);
}

template <typename T>
static uint32_t indexByName(const std::vector<T> &table, std::string_view name) {
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i].name == name)
      return uint32_t(i);
  return noIndex;
}

uint32_t Program::findBlock(std::string_view wanted) const { return indexByName(blocks, wanted); }
uint32_t Program::findEntry(std::string_view wanted) const { return indexByName(entries, wanted); }
uint32_t Program::findBuffer(std::string_view wanted) const { return indexByName(buffers, wanted); }

uint32_t par::format::callsOf(const Entry &entry) {
  int64_t last = 0;
  for (const Run &run : entry.runs)
    last = std::max(last, run.version);
  return uint32_t(last + 1);
}

uint32_t par::format::depthOf(const Program &program, uint32_t buffer) {
  const Buffer &b = program.buffers[buffer];
  return uint32_t((b.of == noIndex ? b : program.buffers[b.of]).at.size());
}

uint32_t par::format::slotOf(const SlotExpr &expr, uint32_t depth, const Run &run) {
  int64_t index = expr.offset;
  if (expr.base == SlotExpr::Mb)
    index += run.microbatch;
  if (expr.base == SlotExpr::Ver)
    index += run.version;
  int64_t d = int64_t(depth);
  return uint32_t((index % d + d) % d);
}

uint64_t par::format::addressOf(const Program &program, const Operand &operand, const Run &run) {
  const Buffer &b = program.buffers[operand.buffer];
  const Buffer &root = b.of == noIndex ? b : program.buffers[b.of];
  return root.at[slotOf(operand.slot, uint32_t(root.at.size()), run)] + (b.of == noIndex ? 0 : b.offset);
}

std::string par::format::instructionId(const Program &program, uint32_t block, size_t n) {
  return program.name + "/" + program.blocks[block].name + ":" + std::to_string(n);
}

std::string par::format::describe(const Buffer &buffer) {
  std::string text(toString(buffer.type));
  text += "[";
  for (size_t i = 0; i < buffer.shape.size(); ++i)
    text += (i ? "x" : "") + std::to_string(buffer.shape[i]);
  return text + "]";
}

std::string par::format::describe(const Program &program, const Operand &operand) {
  const Buffer &buffer = program.buffers[operand.buffer];
  return std::string(toString(operand.access)) + " " + buffer.name + slotText(operand.slot, buffer.index);
}
