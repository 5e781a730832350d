// Reads the rows of `measured`, a list of words each.
#include "par/Base/MeasuredRows.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace par;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// Takes the words of a row one after the other. After the first wrong one the row is wrong.
class RowReader {
public:
  explicit RowReader(llvm::ArrayRef<std::string> words) : left(words) {}

  bool isWhole() const { return !wrong && left.empty(); }

  int64_t number(int64_t least) {
    int64_t value = 0;
    StringRef text = word();
    wrong |= text.getAsInteger(10, value) || value < least || value > most;
    return wrong ? least : value;
  }

  /// A size, of a shape whose sizes multiply to 2^56 at most: operations and bytes of it are counted.
  int64_t size() {
    int64_t value = number(1);
    wrong |= llvm::MulOverflow(product, value, product) || product > int64_t(1) << 56;
    return wrong ? 1 : value;
  }

  /// The index of the next word among these.
  size_t oneOf(llvm::ArrayRef<StringRef> words) {
    const auto *found = llvm::find(words, word());
    wrong |= found == words.end();
    return wrong ? 0 : found - words.begin();
  }

  format::DType format() {
    constexpr format::DType types[] = {format::DType::F32, format::DType::F64, format::DType::BF16, format::DType::F16};
    return types[oneOf({"f32", "f64", "bf16", "f16"})];
  }

private:
  StringRef word() {
    if (left.empty()) {
      wrong = true;
      return "";
    }
    StringRef first = left.front();
    left = left.drop_front();
    return first;
  }

  static constexpr int64_t most = int64_t(1) << 40;
  llvm::ArrayRef<std::string> left;
  int64_t product = 1;
  bool wrong = false;
};

} // namespace

static MatmulShape readShape(RowReader &row, MatmulShape shape) {
  shape.type = shape.result = row.format();
  size_t transposes = row.oneOf({"nn", "nt", "tn", "tt"});
  shape.transposeA = transposes >= 2;
  shape.transposeB = transposes % 2;
  for (int64_t *size : {&shape.batch, &shape.m, &shape.n, &shape.k})
    *size = row.size();
  return shape;
}

static AttentionShape readShape(RowReader &row, AttentionShape shape) {
  shape.type = row.format();
  shape.backward = row.oneOf({"forward", "backward"});
  for (int64_t *size : {&shape.batch, &shape.heads, &shape.groups, &shape.queries, &shape.keys, &shape.dim})
    *size = row.size();
  shape.valueDim = shape.dim;
  shape.causal = row.oneOf({"0", "1"});
  return shape;
}

static ConvolutionShape readShape(RowReader &row, ConvolutionShape shape) {
  shape.type = row.format();
  shape.pass = static_cast<ConvolutionPass>(row.oneOf({"forward", "data", "weights"}));
  for (int64_t *size : {&shape.images, &shape.groups, &shape.channels, &shape.outputs, &shape.window, &shape.positions})
    *size = row.size();
  return shape;
}

static KernelShape readShape(RowReader &row, KernelShape shape) {
  shape.bytes = row.number(0);
  shape.flops = row.number(0);
  return shape;
}

static CollectiveShape readShape(RowReader &row, CollectiveShape shape) {
  using enum format::CollKind;
  constexpr format::CollKind kinds[] = {AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast, Reduce};
  shape.kind = kinds[row.oneOf({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce"})];
  shape.bytes = row.number(0);
  shape.members = row.number(2);
  shape.hosts = row.number(1);
  return shape;
}

static CopyShape readShape(RowReader &row, CopyShape shape) {
  shape.host = row.oneOf({"device", "host"});
  shape.bytes = row.number(1);
  return shape;
}

static SendShape readShape(RowReader &row, SendShape shape) {
  shape.bytes = row.number(0);
  shape.hosts = 1 + row.oneOf({"1", "2"});
  return shape;
}

static FeedShape readShape(RowReader &row, FeedShape shape) {
  shape.fetch = row.oneOf({"feed", "fetch"});
  shape.bytes = row.number(1);
  return shape;
}

static TimeShape readShape(RowReader &row, TimeShape shape) {
  shape.ns = row.number(0);
  return shape;
}

static TogetherShape readShape(RowReader &row, TogetherShape shape) {
  shape.matmul = row.oneOf({"kernel", "matmul"});
  shape.processes = row.number(1);
  return shape;
}

template <typename Shape>
static bool readRow(llvm::ArrayRef<std::string> words, std::vector<MeasuredRow<Shape>> &rows) {
  RowReader row(words);
  MeasuredRow<Shape> read{readShape(row, Shape()), row.number(1)};
  rows.push_back(read);
  return row.isWhole();
}

namespace {

/// A key of `measured`: how a row is written, and what reads one.
struct RowKind {
  StringRef key, form;
  bool (*read)(llvm::ArrayRef<std::string> words, MeasuredRows &rows);
};

} // namespace

static bool readLaunch(llvm::ArrayRef<std::string> words, MeasuredRows &rows) {
  RowReader row(words);
  rows.launch = row.number(1);
  return row.isWhole();
}

static constexpr RowKind kinds[] = {
    {"matmuls", "[f32|f64|bf16|f16, nn|nt|tn|tt, batch, m, n, k, ns]",
     [](llvm::ArrayRef<std::string> words, MeasuredRows &rows) { return readRow(words, rows.matmuls); }},
    {"attentions", "[format, forward|backward, batch, heads, groups, queries, keys, dim, causal (0 or 1), ns]",
     [](llvm::ArrayRef<std::string> words, MeasuredRows &rows) { return readRow(words, rows.attentions); }},
    {"convolutions",
     "[format, forward|data|weights, images, groups, channels of a group, outputs, window's elements, positions, ns]",
     [](llvm::ArrayRef<std::string> words, MeasuredRows &rows) { return readRow(words, rows.convolutions); }},
    {"kernels", "[bytes, flops, ns]",
     [](llvm::ArrayRef<std::string> words, MeasuredRows &rows) { return readRow(words, rows.kernels); }},
    {"collectives",
     "[all_reduce|all_gather|reduce_scatter|all_to_all|broadcast|reduce, bytes, members (2 or more), hosts, ns]",
     [](llvm::ArrayRef<std::string> words, MeasuredRows &rows) { return readRow(words, rows.collectives); }},
    {"copies", "[device|host, bytes, ns]",
     [](llvm::ArrayRef<std::string> words, MeasuredRows &rows) { return readRow(words, rows.copies); }},
    {"sends", "[bytes, hosts (1 or 2), ns]",
     [](llvm::ArrayRef<std::string> words, MeasuredRows &rows) { return readRow(words, rows.sends); }},
    {"feeds", "[feed|fetch, bytes, ns]",
     [](llvm::ArrayRef<std::string> words, MeasuredRows &rows) { return readRow(words, rows.feeds); }},
    {"wakeups", "[ns waited, ns]",
     [](llvm::ArrayRef<std::string> words, MeasuredRows &rows) { return readRow(words, rows.wakeups); }},
    {"spread", "[ns of compute, ns]",
     [](llvm::ArrayRef<std::string> words, MeasuredRows &rows) { return readRow(words, rows.spread); }},
    {"launch", "[ns]", readLaunch},
    {"together", "[matmul|kernel, processes, 1/1000 of the time of one]",
     [](llvm::ArrayRef<std::string> words, MeasuredRows &rows) { return readRow(words, rows.together); }},
};

llvm::ArrayRef<StringRef> par::measuredKeys() {
  static constexpr auto keys = [] {
    std::array<StringRef, std::size(kinds)> keys;
    for (size_t i = 0; i < keys.size(); ++i)
      keys[i] = kinds[i].key;
    return keys;
  }();
  return keys;
}

Error par::readMeasured(StringRef key, const RowTexts &texts, MeasuredRows &rows) {
  const auto *kind = llvm::find_if(kinds, [&](const RowKind &each) { return each.key == key; });
  for (auto [number, words] : llvm::enumerate(texts))
    if (!kind->read(words, rows))
      return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                     "measured." + key + ", row " + Twine(number + 1) + " is [" +
                                         llvm::join(words, ", ") + "], expected " + kind->form +
                                         ", numbers up to 2^40, sizes that multiply to at most 2^56, and ns from 1");
  return Error::success();
}
