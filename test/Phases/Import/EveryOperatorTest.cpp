// Import meets nodes that no exporter writes: operands of any rank, sizes of 0, attributes out of all bounds.
// Each is read or refused with an error; none ends the compiler.
#include "par/Dialect/Par.h"
#include "par/Phases/Import/Import.h"
#include "par/Phases/Import/Operators.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <random>
#include <set>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace par;

namespace {

/// Names of the operators in docs/onnx.md.
std::vector<std::string> operatorNames() {
  std::string page = operatorsPage();
  std::vector<std::string> names;
  SmallVector<StringRef> lines;
  StringRef(page).split(lines, '\n');
  for (StringRef line : lines)
    if (line.starts_with("| ") && !line.starts_with("| operator") && !line.starts_with("| ---"))
      names.push_back(line.drop_front(2).split(' ').first.str());
  return names;
}

const std::vector<std::vector<int64_t>> shapes = {{},     {0},       {1},          {3},         {2, 3},
                                                  {0, 3}, {1, 2, 3}, {1, 2, 3, 3}, {1, 0, 0, 4}};

/// Kind of an input: data of the shape, or a known vector of integers.
enum class Kind { Floats, Integers, Booleans, Known };
struct OddInput {
  onnx::ElementType type;
  std::vector<int64_t> shape;
  std::optional<std::vector<int64_t>> known; ///< elements, of integers
};

struct Attributes {
  int64_t number;
  std::vector<int64_t> numbers;
};
const std::vector<Attributes> odd = {{0, {0, 0}},
                                     {-1, {-1, -1, -1, -1}},
                                     {9, {9}},
                                     {int64_t(1) << 40, {int64_t(1) << 40, 3}},
                                     {INT64_MIN, {INT64_MIN, INT64_MAX}}};

const char *const numberNames[] = {"axis",
                                   "group",
                                   "to",
                                   "k",
                                   "blocksize",
                                   "num_outputs",
                                   "hidden_size",
                                   "q_num_heads",
                                   "kv_num_heads",
                                   "output_height",
                                   "sampling_ratio",
                                   "keepdims",
                                   "num_groups",
                                   "batch_dims",
                                   "offset_group",
                                   "size",
                                   "p",
                                   "ceil_mode",
                                   "diagonal",
                                   "stash_type",
                                   "num_heads",
                                   "rotary_embedding_dim",
                                   "batch_axis",
                                   "time_axis",
                                   "new_axis",
                                   "stride",
                                   "dtype",
                                   "output_datatype",
                                   "detect_negative",
                                   "upper",
                                   "exclusive",
                                   "reverse",
                                   "start",
                                   "end"};
const char *const numbersNames[] = {"kernel_shape", "strides", "pads",  "dilations",    "perm",
                                    "axes",         "split",   "shape", "output_shape", "output_padding",
                                    "scales",       "starts",  "ends",  "repeats",      "axes"};

constexpr int64_t opset = 23;

onnx::Node oddNode(const std::string &op, const Attributes *values) {
  onnx::Node node;
  node.name = "n";
  node.opType = op;
  std::optional<Arity> arity = arityOf(op, opset);
  node.outputs = {"y"};
  if (!arity || arity->outputs.most.value_or(2) > 1)
    node.outputs.push_back("z");
  if (!values)
    return node;
  for (const char *name : numberNames) {
    onnx::Attribute &attribute = node.attributes.emplace_back();
    attribute.name = name;
    attribute.kind = onnx::Attribute::Int;
    attribute.i = values->number;
  }
  for (const char *name : numbersNames) {
    onnx::Attribute &attribute = node.attributes.emplace_back();
    attribute.name = name;
    attribute.kind = onnx::Attribute::Ints;
    attribute.ints = values->numbers;
  }
  return node;
}

class EveryOperator {
public:
  EveryOperator() : context(MLIRContext::Threading::DISABLED) {
    DialectRegistry registry;
    registerDialect(registry);
    context.appendDialectRegistry(registry);
  }

  /// Imports one node of `count` inputs; the first is `first`, the others are `rest`.
  void import(const std::string &op, ArrayRef<int64_t> shape, size_t count, Kind first, Kind rest,
              const Attributes *values) {
    std::vector<OddInput> inputs;
    for (size_t i = 0; i < count; ++i) {
      Kind kind = i == 0 ? first : rest;
      std::vector<int64_t> numbers = values ? values->numbers : std::vector<int64_t>{1, 2};
      if (kind == Kind::Known)
        inputs.push_back({onnx::ElementType::I64, {int64_t(numbers.size())}, numbers});
      else
        inputs.push_back({kind == Kind::Floats     ? onnx::ElementType::F32
                          : kind == Kind::Booleans ? onnx::ElementType::Bool
                                                   : onnx::ElementType::I64,
                          shape.vec(),
                          {}});
    }
    import(oddNode(op, values), inputs);
  }

  void import(onnx::Node node, ArrayRef<OddInput> inputs) {
    onnx::Model model;
    model.path = "odd.onnx";
    model.opset = opset;
    model.opsets = {{"", opset}};
    ImportOptions options;
    for (const OddInput &input : inputs) {
      onnx::ValueInfo info;
      info.name = "x" + std::to_string(node.inputs.size());
      info.isTensor = info.hasShape = true;
      info.type = input.type;
      for (int64_t dim : input.shape)
        info.shape.push_back({dim, ""});
      if (input.known)
        options.known[info.name] = StaticTensor::ofInts(input.type, input.shape, *input.known);
      model.inputs.push_back(info);
      node.inputs.push_back(info.name);
    }
    model.nodes = {node};
    model.outputs.resize(1);
    model.outputs[0].name = "y";
    bool refused = false;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      refused |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
      return success();
    });
    OwningOpRef<ModuleOp> module = importModel(model, options, &context);
    EXPECT_NE(bool(module), refused) << node.opType;
    (module ? read : notRead) += 1;
  }

  int read = 0, notRead = 0;

private:
  MLIRContext context;
};

/// Imports of one operator and their progress, in memory shared with the child process.
struct Progress {
  int at, read, notRead, faults;
};

constexpr std::pair<Kind, Kind> kinds[] = {{Kind::Floats, Kind::Floats},     {Kind::Floats, Kind::Known},
                                           {Kind::Integers, Kind::Floats},   {Kind::Known, Kind::Known},
                                           {Kind::Booleans, Kind::Integers}, {Kind::Floats, Kind::Integers}};
constexpr size_t counts[] = {0, 1, 2, 3, 6};

bool isLong() {
  const char *asked = std::getenv("PAR_LONG");
  return asked && *asked == '1';
}

/// Imports everything of one operator from variation `from` on; one in five of it in a short run.
void importVariations(const std::string &op, int from, Progress &progress) {
  EveryOperator every;
  int at = 0;
  for (const std::vector<int64_t> &shape : shapes)
    for (size_t count : counts)
      for (auto [first, rest] : kinds)
        for (size_t odds = 0; odds <= odd.size(); ++odds)
          if (at++ >= from && (isLong() || at % 5 == 0)) {
            progress.at = at;
            every.import(op, shape, count, first, rest, odds ? &odd[odds - 1] : nullptr);
          }
  progress.read += every.read;
  progress.notRead += every.notRead;
  progress.faults += testing::Test::HasFailure();
}

/// A node whose inputs and attributes are drawn one by one.
void importRandom(EveryOperator &every, const std::string &op, int seed) {
  std::mt19937_64 random(seed);
  auto below = [&](size_t n) { return size_t(random() % n); };
  constexpr onnx::ElementType types[] = {onnx::ElementType::F32, onnx::ElementType::F32, onnx::ElementType::F32,
                                         onnx::ElementType::F16, onnx::ElementType::I64, onnx::ElementType::I64,
                                         onnx::ElementType::U8,  onnx::ElementType::U64, onnx::ElementType::Bool};
  constexpr int64_t numbers[] = {-9, -3, -2, -1, 0, 0, 1, 1, 2, 2, 3, 4, 7, int64_t(1) << 33};
  std::vector<OddInput> inputs(below(7));
  onnx::ElementType type = types[below(std::size(types))];
  std::vector<int64_t> shape = shapes[below(shapes.size())];
  for (OddInput &input : inputs) {
    input.type = below(3) ? type : types[below(std::size(types))];
    input.shape = below(3) ? shape : shapes[below(shapes.size())];
    if (onnx::isFloat(input.type) || below(2))
      continue;
    input.known.emplace();
    for (int64_t i = 0; i < countElements(input.shape); ++i)
      input.known->push_back(numbers[below(std::size(numbers))]);
  }
  onnx::Node node = oddNode(op, below(2) ? &odd[0] : nullptr);
  llvm::erase_if(node.attributes, [&](const onnx::Attribute &) { return below(3) > 0; });
  for (onnx::Attribute &attribute : node.attributes) {
    attribute.i = numbers[below(std::size(numbers))];
    attribute.ints.resize(below(6));
    for (int64_t &number : attribute.ints)
      number = numbers[below(std::size(numbers))];
  }
  every.import(node, inputs);
}

void importRandomNodes(const std::string &op, int from, Progress &progress) {
  EveryOperator every;
  int randomNodes = isLong() ? 6000 : 400;
  for (int seed = from; seed < randomNodes; ++seed) {
    progress.at = seed + 1;
    importRandom(every, op, seed);
  }
  progress.read += every.read;
  progress.notRead += every.notRead;
  progress.faults += testing::Test::HasFailure();
}

std::string describeSeed(int at) { return "seed " + std::to_string(at); }

std::string describe(int at) {
  int odds = at % (odd.size() + 1), rest = at / (odd.size() + 1);
  auto [first, others] = kinds[rest % std::size(kinds)];
  rest /= std::size(kinds);
  std::string text = std::to_string(counts[rest % std::size(counts)]) + " inputs (" + std::to_string(int(first)) +
                     ", " + std::to_string(int(others)) + ") of shape";
  for (int64_t dim : shapes[rest / std::size(counts)])
    text += " " + std::to_string(dim);
  return text + ", attributes " + std::to_string(odds);
}

/// Runs `body` on every operator, each in a process of its own, which may come to an end.
void survive(void (*body)(const std::string &, int, Progress &), std::string (*describe)(int)) {
  auto *progress = static_cast<Progress *>(
      ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (const std::string &op : operatorNames())
    for (int from = 0, crashes = 0; crashes < 3;) {
      pid_t child = ::fork();
      if (child == 0) {
        ::alarm(120);
        body(op, from, *progress);
        ::_exit(0);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        break;
      ADD_FAILURE() << op << " of " << describe(progress->at - 1) << " ends with signal " << WTERMSIG(status);
      from = progress->at;
      ++crashes;
    }
  EXPECT_EQ(progress->faults, 0);
  EXPECT_GT(progress->read, 1000);
  EXPECT_GT(progress->notRead, 1000);
}

TEST(EveryOperatorTest, IsListedOnce) {
  std::set<std::string> names;
  for (const std::string &name : operatorNames())
    EXPECT_TRUE(names.insert(name).second) << name << " is listed twice in lib/Phases/Import/Operators/Operators.cpp";
  for (const std::string &name : names)
    EXPECT_TRUE(arityOf(name, 27)) << name << " has no row in lib/Phases/Import/Operators/Arities.cpp";
}

TEST(EveryOperatorTest, SurvivesWhatNoExporterWrites) { survive(importVariations, describe); }

TEST(EveryOperatorTest, SurvivesRandomNodes) { survive(importRandomNodes, describeSeed); }

} // namespace
