// Einsum: diagonals, sums and products of two at a time.
#include "../Graph/GraphImporter.h"

#include <set>

namespace par {
namespace {

using namespace mlir;

/// A tensor whose dims have labels: letters, and 'A' - 1 - k for the k-th dim from the end in `...`.
struct Labelled {
  Value value;
  SmallVector<int> labels;

  RankedTensorType type() const { return cast<RankedTensorType>(value.getType()); }
  int64_t dimOf(int label) const { return llvm::find(labels, label) - labels.begin(); }
  bool has(int label) const { return llvm::is_contained(labels, label); }
};

/// Labels of one operand's term. Fails if the term does not fit the rank; -1: the number of dims of `...` is free.
FailureOr<SmallVector<int>> readTerm(StringRef term, int64_t ellipsis) {
  SmallVector<int> labels;
  while (!term.empty()) {
    if (term.consume_front("...")) {
      for (int64_t i = 0; i < ellipsis; ++i)
        labels.push_back('A' - 1 - int(ellipsis - 1 - i));
    } else if (llvm::isAlpha(term.front())) {
      labels.push_back(term.front());
      term = term.drop_front();
    } else {
      return failure();
    }
  }
  return labels;
}

class Einsum {
public:
  explicit Einsum(NodeImporter &importer) : importer(importer), builder(importer.builder), loc(importer.loc) {}

  LogicalResult run() {
    if (failed(readOperands()) || failed(readOutput()) || failed(stretch()))
      return failure();
    Labelled result = operands.front();
    if (operands.size() == 1)
      dropLabels(result, {});
    for (size_t i = 1; i < operands.size(); ++i)
      result = multiply(result, operands[i], ArrayRef(operands).drop_front(i + 1));
    SmallVector<int64_t> order;
    for (int label : output)
      order.push_back(result.dimOf(label));
    return importer.bind(importer.transpose(result.value, order));
  }

private:
  LogicalResult mismatch() {
    return importer.error() << "equation \"" << importer.node.stringAttribute("equation", "")
                            << "\" does not fit its operands";
  }

  LogicalResult readOperands() {
    equation = llvm::join(llvm::split(importer.node.stringAttribute("equation", ""), ' '), "");
    auto [left, right] = StringRef(equation).split("->");
    SmallVector<StringRef> terms;
    left.split(terms, ',');
    if (terms.size() != importer.numInputs())
      return mismatch();
    for (auto [i, term] : llvm::enumerate(terms)) {
      FailureOr<Value> value = importer.tensor(i);
      if (failed(value))
        return failure();
      auto type = cast<RankedTensorType>(value->getType());
      if (i && type.getElementType() != operands[0].type().getElementType())
        return importer.error() << "multiplies " << operands[0].type() << " and " << type;
      int64_t letters = llvm::count_if(term, [](char c) { return llvm::isAlpha(c); });
      int64_t dots = term.contains("...") ? type.getRank() - letters : 0;
      FailureOr<SmallVector<int>> labels = readTerm(term, dots);
      if (failed(labels) || dots < 0 || int64_t(labels->size()) != type.getRank())
        return mismatch();
      ellipsis = std::max(ellipsis, dots);
      operands.push_back({*value, *labels});
      takeDiagonals(operands.back());
    }
    return success();
  }

  /// Without an arrow: the dims of `...`, then every letter that occurs once, in alphabetical order.
  LogicalResult readOutput() {
    size_t arrow = equation.find("->");
    if (arrow != std::string::npos) {
      FailureOr<SmallVector<int>> labels = readTerm(StringRef(equation).drop_front(arrow + 2), ellipsis);
      if (failed(labels))
        return mismatch();
      output = *labels;
    } else {
      for (int64_t i = 0; i < ellipsis; ++i)
        output.push_back('A' - 1 - int(ellipsis - 1 - i));
      for (int letter = 'A'; letter <= 'z'; ++letter)
        if (llvm::isAlpha(char(letter)) && StringRef(equation).count(char(letter)) == 1)
          output.push_back(letter);
    }
    std::set<int> distinct(output.begin(), output.end());
    bool known = llvm::all_of(output, [&](int label) {
      return llvm::any_of(operands, [&](const Labelled &operand) { return operand.has(label); });
    });
    return known && distinct.size() == output.size() ? success() : mismatch();
  }

  /// `ii`: sets elements off the diagonal to 0, and sums over the second dim.
  void takeDiagonals(Labelled &operand) {
    for (size_t first = 0; first < operand.labels.size(); ++first)
      for (size_t second = operand.labels.size() - 1; second > first; --second) {
        RankedTensorType type = operand.type();
        if (operand.labels[first] != operand.labels[second] || type.getDimSize(first) != type.getDimSize(second))
          continue;
        RankedTensorType indices = type.clone(builder.getI64Type());
        Value row = IotaOp::create(builder, loc, indices, first),
              column = IotaOp::create(builder, loc, indices, second);
        Value same = CompareOp::create(builder, loc, Predicate::eq, row, column);
        Value kept = SelectOp::create(builder, loc, type, same, operand.value, importer.splat(type, 0));
        operand.value = importer.reduceSum(kept, {int64_t(second)});
        operand.labels.erase(operand.labels.begin() + second);
      }
  }

  /// Broadcasts dims of size 1, so that every label has one size.
  LogicalResult stretch() {
    std::map<int, int64_t> sizes;
    for (const Labelled &operand : operands)
      for (auto [label, size] : llvm::zip(operand.labels, operand.type().getShape())) {
        int64_t &known = sizes.try_emplace(label, size).first->second;
        if (known != size && known != 1 && size != 1)
          return importer.error() << "label '" << (llvm::isAlpha(char(label)) ? std::string(1, char(label)) : "...")
                                  << "' has the sizes " << known << " and " << size;
        known = std::max(known, size);
      }
    for (Labelled &operand : operands) {
      SmallVector<int64_t> shape;
      for (int label : operand.labels)
        shape.push_back(sizes[label]);
      std::set<int> distinct(operand.labels.begin(), operand.labels.end());
      if (distinct.size() != operand.labels.size())
        return mismatch();
      operand.value = importer.stretch(operand.value, shape);
    }
    return success();
  }

  bool isNeeded(int label, ArrayRef<Labelled> later) const {
    return llvm::is_contained(output, label) ||
           llvm::any_of(later, [&](const Labelled &operand) { return operand.has(label); });
  }

  /// Sums over labels that neither the output nor an operand in `later` has.
  void dropLabels(Labelled &operand, ArrayRef<Labelled> later) {
    SmallVector<int64_t> dims;
    SmallVector<int> kept;
    for (auto [dim, label] : llvm::enumerate(operand.labels))
      if (isNeeded(label, later))
        kept.push_back(label);
      else
        dims.push_back(dim);
    operand.value = importer.reduceSum(operand.value, dims);
    operand.labels = kept;
  }

  Labelled multiply(Labelled lhs, Labelled rhs, ArrayRef<Labelled> later) {
    SmallVector<Labelled> others(later);
    others.push_back(rhs);
    dropLabels(lhs, others);
    others.back() = lhs;
    dropLabels(rhs, others);
    SmallVector<int64_t> lhsBatch, rhsBatch, lhsSum, rhsSum;
    Labelled result;
    for (int label : lhs.labels)
      if (rhs.has(label)) {
        bool kept = isNeeded(label, later);
        (kept ? lhsBatch : lhsSum).push_back(lhs.dimOf(label));
        (kept ? rhsBatch : rhsSum).push_back(rhs.dimOf(label));
        if (kept)
          result.labels.push_back(label);
      }
    for (const Labelled *operand : {&lhs, &rhs})
      for (int label : operand->labels)
        if (!(operand == &lhs ? rhs : lhs).has(label))
          result.labels.push_back(label);
    if (!lhsSum.empty()) {
      result.value = buildDot(builder, loc, lhs.value, rhs.value, lhsSum, rhsSum, lhsBatch, rhsBatch);
      return result;
    }
    SmallVector<int64_t> shape;
    for (int label : result.labels)
      shape.push_back(lhs.has(label) ? lhs.type().getDimSize(lhs.dimOf(label))
                                     : rhs.type().getDimSize(rhs.dimOf(label)));
    result.value =
        MultiplyOp::create(builder, loc, placed(lhs, result.labels, shape), placed(rhs, result.labels, shape));
    return result;
  }

  Value placed(const Labelled &operand, ArrayRef<int> labels, ArrayRef<int64_t> shape) {
    SmallVector<int64_t> order, dims;
    for (auto [dim, label] : llvm::enumerate(labels))
      if (operand.has(label)) {
        order.push_back(operand.dimOf(label));
        dims.push_back(dim);
      }
    return buildBroadcast(builder, loc, importer.transpose(operand.value, order), dims, shape);
  }

  NodeImporter &importer;
  OpBuilder &builder;
  Location loc;
  std::string equation;
  SmallVector<Labelled> operands;
  SmallVector<int> output;
  int64_t ellipsis = 0;
};

LogicalResult importEinsum(NodeImporter &importer) { return Einsum(importer).run(); }

} // namespace

void addEinsumImports(ImportTable &table) { table["Einsum"] = importEinsum; }

} // namespace par
