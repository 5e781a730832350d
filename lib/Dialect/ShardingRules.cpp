// The sharding rule of an op as data, with its text form printed and parsed, and the default local op: a clone on the
// shards' types.
#include "par/Dialect/Interfaces/ShardingRule.h"

#include "par/Dialect/Concerns.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

#include "par/Dialect/Interfaces/ShardingRule.cpp.inc"

namespace par {

//===-- The rule as data ---------------------------------------------------------------------===//

unsigned ShardingRule::addFactor(int64_t size, FactorKind kind) {
  unsigned index = factors.size();
  // a, b, ..., z, a1, b1, ...
  std::string name(1, 'a' + index % 26);
  if (index >= 26)
    name += std::to_string(index / 26);
  factors.push_back({name, size, kind});
  return index;
}

ShardingRule ShardingRule::getElementwise(ArrayRef<int64_t> shape, unsigned operands, unsigned results) {
  ShardingRule rule;
  SmallVector<DimFactors> dims;
  for (int64_t size : shape) {
    dims.emplace_back();
    if (size != 1)
      dims.back().push_back(rule.addFactor(size));
  }
  rule.operands.assign(operands, dims);
  rule.results.assign(results, dims);
  return rule;
}

namespace {
struct KindName {
  FactorKind kind;
  StringRef name;
};
constexpr KindName kindNames[] = {{FactorKind::Sum, "sum"},
                                  {FactorKind::Max, "max"},
                                  {FactorKind::Min, "min"},
                                  {FactorKind::And, "and"},
                                  {FactorKind::Or, "or"},
                                  {FactorKind::Indexed, "indexed"},
                                  {FactorKind::NeedReplication, "need_replication"},
                                  {FactorKind::Decompose, "decompose"}};
} // namespace

static void printTensors(llvm::raw_string_ostream &out, const ShardingRule &rule,
                         ArrayRef<SmallVector<DimFactors>> tensors) {
  out << "(";
  llvm::interleaveComma(tensors, out, [&](ArrayRef<DimFactors> dims) {
    out << "[";
    llvm::interleaveComma(dims, out, [&](ArrayRef<unsigned> dim) {
      if (dim.size() == 1) {
        out << rule.factors[dim.front()].name;
        return;
      }
      out << "(";
      llvm::interleave(dim, out, [&](unsigned factor) { out << rule.factors[factor].name; }, " ");
      out << ")";
    });
    out << "]";
  });
  out << ")";
}

std::string ShardingRule::str() const {
  std::string text;
  llvm::raw_string_ostream out(text);
  printTensors(out, *this, operands);
  out << " -> ";
  printTensors(out, *this, results);
  out << " {";
  llvm::interleaveComma(factors, out, [&](const Factor &factor) { out << factor.name << "=" << factor.size; });
  out << "}";
  for (const KindName &kind : kindNames) {
    SmallVector<StringRef> names;
    for (const Factor &factor : factors)
      if (factor.kind == kind.kind)
        names.push_back(factor.name);
    if (!names.empty())
      out << " " << kind.name << "={" << llvm::join(names, ", ") << "}";
  }
  out << " linear=[";
  llvm::interleaveComma(linear, out, [&](ArrayRef<unsigned> set) {
    out << "[";
    llvm::interleaveComma(set, out);
    out << "]";
  });
  out << "]";
  return text;
}

//===-- Its text form, read back -------------------------------------------------------------===//

namespace {
/// Reads the text form; the first failure leaves a message and every later step fails.
class RuleReader {
public:
  RuleReader(StringRef text, std::string &error) : text(text), error(error) {}

  FailureOr<ShardingRule> read() {
    if (!readTensors(rule.operands) || !eat("->") || !readTensors(rule.results) || !readSizes())
      return failure();
    while (!skip().empty() && !text.starts_with("linear"))
      if (!readKind())
        return failure();
    if (!readLinear() || !skip().empty())
      return fail("expected the end"), failure();
    return rule;
  }

private:
  StringRef skip() { return text = text.ltrim(); }
  bool fail(const Twine &what) {
    if (error.empty())
      error = (what + " at \"" + text.take_front(16) + "\"").str();
    return false;
  }
  bool eat(StringRef token) {
    skip();
    return text.consume_front(token) || fail("expected " + token);
  }
  StringRef word() {
    skip();
    StringRef name = text.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    text = text.drop_front(name.size());
    return name;
  }
  bool peek(char c) { return skip().starts_with(StringRef(&c, 1)); }

  bool readFactor(DimFactors &dim) {
    StringRef name = word();
    if (name.empty())
      return fail("expected a factor");
    auto at = llvm::find_if(rule.factors, [&](const Factor &factor) { return factor.name == name; });
    dim.push_back(at - rule.factors.begin());
    if (at == rule.factors.end())
      rule.factors.push_back({name.str(), 0, FactorKind::Parallel});
    return true;
  }
  bool readDim(DimFactors &dim) {
    if (!peek('('))
      return readFactor(dim);
    eat("(");
    while (!peek(')'))
      if (!readFactor(dim))
        return false;
    return eat(")");
  }
  /// open item, item, ... close
  template <typename Item>
  bool readList(char open, char close, Item item) {
    if (!eat(StringRef(&open, 1)))
      return false;
    while (!peek(close))
      if (!item() || !(peek(close) || eat(",")))
        return false;
    return eat(StringRef(&close, 1));
  }
  bool readTensors(SmallVector<SmallVector<DimFactors>> &tensors) {
    return readList('(', ')', [&] {
      SmallVector<DimFactors> &dims = tensors.emplace_back();
      return readList('[', ']', [&] { return readDim(dims.emplace_back()); });
    });
  }
  Factor *find(StringRef name) {
    for (Factor &factor : rule.factors)
      if (factor.name == name)
        return &factor;
    fail("no dim has the factor \"" + name + "\"");
    return nullptr;
  }
  /// The sizes also say the order of the factors, which the dims need not name in that order.
  bool readSizes() {
    SmallVector<unsigned> order;
    if (!readList('{', '}', [&] {
          Factor *factor = find(word());
          if (!factor || !eat("=") || (word().getAsInteger(10, factor->size) && !fail("expected a size")))
            return false;
          order.push_back(factor - rule.factors.begin());
          return true;
        }))
      return false;
    SmallVector<unsigned> place(rule.factors.size(), order.size());
    SmallVector<Factor> ordered;
    for (auto [to, from] : llvm::enumerate(order)) {
      place[from] = to;
      ordered.push_back(rule.factors[from]);
    }
    for (auto [from, to] : llvm::enumerate(place))
      if (to == order.size() || order[to] != from)
        return fail("expected one size for each factor, not so for " + rule.factors[from].name);
    rule.factors = std::move(ordered);
    for (auto *tensors : {&rule.operands, &rule.results})
      for (SmallVector<DimFactors> &dims : *tensors)
        for (DimFactors &dim : dims)
          for (unsigned &factor : dim)
            factor = place[factor];
    return true;
  }
  bool readKind() {
    StringRef name = word();
    const KindName *kind = llvm::find_if(kindNames, [&](const KindName &kind) { return kind.name == name; });
    if (kind == std::end(kindNames))
      return fail("expected a factor kind, found \"" + name + "\"");
    return eat("=") && readList('{', '}', [&] {
             Factor *factor = find(word());
             if (factor)
               factor->kind = kind->kind;
             return factor != nullptr;
           });
  }
  bool readLinear() {
    return eat("linear") && eat("=") && readList('[', ']', [&] {
             SmallVector<unsigned> &set = rule.linear.emplace_back();
             return readList('[', ']', [&] {
               bool isNumeric = !word().getAsInteger(10, set.emplace_back());
               return (isNumeric && set.back() < rule.operands.size()) ||
                      fail("expected an operand's number below " + Twine(rule.operands.size()));
             });
           });
  }

  StringRef text;
  std::string &error;
  ShardingRule rule;
};
} // namespace

FailureOr<ShardingRule> ShardingRule::parse(StringRef text, std::string &error) {
  error.clear();
  return RuleReader(text, error).read();
}

//===-- The default local op -----------------------------------------------------------------===//

FailureOr<SmallVector<Value>> localizeByCloning(Operation *op, OpBuilder &builder, const LocalizeContext &context) {
  Operation *local = builder.clone(*op);
  local->setOperands(context.operands);
  for (auto [result, type] : llvm::zip(local->getResults(), context.localTypes))
    result.setType(type);
  return SmallVector<Value>(local->getResults());
}

Value buildShardStart(OpBuilder &builder, Location loc, ArrayRef<StringAttr> axes, int64_t shard) {
  auto scalar = RankedTensorType::get({}, builder.getI64Type());
  SmallVector<Attribute> names(axes.begin(), axes.end());
  Value index = AxisIndexOp::create(builder, loc, scalar, builder.getArrayAttr(names));
  Value size = buildSplat(builder, loc, scalar, shard);
  return MultiplyOp::create(builder, loc, scalar, index, size);
}

//===-- Families -----------------------------------------------------------------------------===//

void registerAttentionRules(DialectRegistry &registry);
void registerElementwiseRules(DialectRegistry &registry);
void registerShapeRules(DialectRegistry &registry);
void registerReduceRules(DialectRegistry &registry);
void registerContractRules(DialectRegistry &registry);
void registerIndexRules(DialectRegistry &registry);
void registerNormRules(DialectRegistry &registry);
void registerLossRules(DialectRegistry &registry);
void registerOptimizerRules(DialectRegistry &registry);
void registerWindowRules(DialectRegistry &registry);

void registerShardingRules(DialectRegistry &registry) {
  registerAttentionRules(registry);
  registerElementwiseRules(registry);
  registerShapeRules(registry);
  registerReduceRules(registry);
  registerContractRules(registry);
  registerIndexRules(registry);
  registerNormRules(registry);
  registerLossRules(registry);
  registerOptimizerRules(registry);
  registerWindowRules(registry);
}

} // namespace par
