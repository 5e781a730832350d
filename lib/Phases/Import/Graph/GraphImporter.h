// Imports an ONNX graph node by node, and the view of a node that an op's import function gets.
#pragma once

#include "../Parameters/Parameters.h"
#include "../Parameters/TrainingMarks.h"
#include "JoinedIndices.h"
#include "par/Base/Provenance.h"
#include "par/Dialect/Term.h"
#include "par/Phases/Import/Fold.h"
#include "par/Phases/Import/Import.h"

namespace par {

struct Recipe;

/// One ONNX value: known when compiling, or computed by an op, or a sequence of such.
struct GraphValue {
  std::shared_ptr<const StaticTensor> known;
  mlir::Value computed;
  std::vector<GraphValue> sequence;
  bool isSequence = false;
  bool isUnsigned = false;                  ///< integers of `computed` are unsigned; the dialect's types do not say so
  std::shared_ptr<Recipe> recipe = nullptr; ///< of a large known value

  /// An optional that holds nothing.
  bool isAbsent() const { return !known && !computed && !isSequence; }
};

/// How a large known value was computed: a step may do so again rather than read a table (Materialize.cpp).
struct Recipe {
  onnx::Node node; ///< with unique names for inputs and result
  std::vector<GraphValue> inputs;
  int64_t opset;
  mlir::Location loc;
  bool rejected = false; ///< keeping the table costs less, or no op computes it
};

/// Whether a known value is so large, and so irregular, that it is worth computing again.
bool needsRecipe(const StaticTensor &value);

/// Equal static nodes (one mask a layer) are evaluated once.
struct Folded {
  std::shared_ptr<const StaticTensor> result;
  std::shared_ptr<Recipe> recipe;
  std::vector<std::shared_ptr<const StaticTensor>> inputs; ///< alive, so that no other gets their place
};

class GraphImporter;

/// The inputs of one node's random numbers besides the element: f32 scalars, and a name that no other node has.
struct RandomState {
  mlir::Value seed;
  mlir::Value step; ///< the number of this training step, from 1; 0 in inference
  std::string stream;
};

class NodeImporter {
public:
  NodeImporter(GraphImporter &graph, const onnx::Node &node, mlir::Location loc);

  const onnx::Node &node;
  mlir::Location loc;
  mlir::OpBuilder &builder;

  int64_t opset() const;
  size_t numInputs() const { return node.inputs.size(); }
  bool has(size_t i) const { return value(i) && !value(i)->isAbsent(); }
  /// Null if the input is left out; an absent optional holds nothing.
  const GraphValue *value(size_t i) const;
  const StaticTensor *known(size_t i) const;
  /// Type of an input that `has`; fails with an error if it is a sequence.
  llvm::FailureOr<mlir::RankedTensorType> type(size_t i);
  /// The input as a value of its own shape; fails with an error if it is left out or a sequence.
  llvm::FailureOr<mlir::Value> tensor(size_t i);
  /// The input stretched to `shape` by numpy's rule.
  llvm::FailureOr<mlir::Value> stretched(size_t i, llvm::ArrayRef<int64_t> shape);
  mlir::Value stretch(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  /// `replacement` in place of the known input i.
  llvm::FailureOr<mlir::Value> knownAs(size_t i, const StaticTensor &replacement);
  /// Numbers known at import as a value; `suffix` names those that must be kept with the model. An error for element
  /// types that ONNX does not have.
  llvm::FailureOr<mlir::Value> constant(mlir::Type element, llvm::ArrayRef<int64_t> shape, std::vector<double> values,
                                        llvm::StringRef suffix);
  /// If the model is trained and input i is a variable, or its value moved by earlier nodes: a training step writes
  /// `next` to the variable, in place of theirs.
  void update(size_t i, mlir::Value next);
  /// The value that earlier nodes write to it; null if there are none.
  mlir::Value updated(size_t i);
  /// Makes `result` the input of the next node that moves the variable of input i: PyTorch calls one module several
  /// times.
  void handOn(size_t i, mlir::Value result);
  /// For a batch norm whose moving mean, input i, is the mean of all steps': the number of steps including this call, a
  /// scalar of `element`. Null for others.
  llvm::FailureOr<mlir::Value> stepsAveraged(size_t i, mlir::Type element);
  /// Number of groups of consecutive samples of a batch with statistics of their own.
  int64_t batchNormGroups() const;
  /// Whether the model is to be trained.
  bool trains() const;
  /// Whether the model is to predict as after module.eval().
  bool serves() const;
  /// Integers from an attribute or a known input; nothing if in neither place; an error if the input is not known.
  llvm::FailureOr<std::optional<llvm::SmallVector<int64_t>>> ints(llvm::StringRef attribute, size_t position);
  /// A dim given by attribute, counted from the end if negative.
  llvm::FailureOr<int64_t> dim(llvm::StringRef attribute, int64_t otherwise, int64_t rank);

  mlir::Value splat(mlir::RankedTensorType type, double value) { return buildSplat(builder, loc, type, value); }
  /// Reshape that looks through an earlier one.
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value slice(mlir::Value value, int64_t dim, int64_t start, int64_t size);
  /// The last element along a dim first.
  mlir::Value reverse(mlir::Value value, int64_t dim);
  mlir::Value reduceSum(mlir::Value value, llvm::ArrayRef<int64_t> dims);
  mlir::Value transpose(mlir::Value value, llvm::ArrayRef<int64_t> order);

  /// Element type that an attribute names by ONNX's number; fails with an error if the dialect has none such.
  llvm::FailureOr<mlir::Type> elementType(llvm::StringRef attribute);
  /// If the model is to be trained: `trained` in the steps that do so, `otherwise` in those that evaluate it.
  llvm::FailureOr<mlir::Value> whereTrained(mlir::Value trained, mlir::Value otherwise);
  /// The same numbers, which no gradient passes: the value itself where none would reach a parameter.
  mlir::Value stopGradient(mlir::Value value);
  /// The file's entry about this embedding's gradient, if the model is trained; else null.
  const EmbeddingMark *embeddingMark() const;
  /// The random state of this node, the same for each call; declares the variables @seed and @draws.
  llvm::FailureOr<RandomState> randomState();
  /// Makes `value` the node's result `k`.
  mlir::LogicalResult bind(mlir::Value value, size_t k = 0);
  /// The same for integers without a sign, whose bits `value` holds.
  mlir::LogicalResult bindUnsigned(mlir::Value value, size_t k = 0);
  /// True if the integers of input i have no sign. Functions of most ops need not ask: see UnsignedOps.cpp.
  bool isUnsigned(size_t i) const;
  mlir::LogicalResult bindSequence(std::vector<GraphValue> values);
  mlir::LogicalResult bindValue(GraphValue value, size_t k = 0);
  /// A tensor of the graph as a value; fails with an error if it is a sequence or holds nothing.
  llvm::FailureOr<mlir::Value> materialize(const GraphValue &value);
  /// Imports the graph in `attribute` once more, its inputs being `inputs`, and gives its outputs.
  llvm::FailureOr<std::vector<GraphValue>> runBody(llvm::StringRef attribute, llvm::ArrayRef<GraphValue> inputs);
  /// Counts the nodes that `times` rounds of `nodes` nodes unroll to; an error if there are too many.
  mlir::LogicalResult unroll(int64_t times, int64_t nodes);
  /// Number of inputs of the graph in `attribute`; nothing if there is no such graph.
  std::optional<size_t> bodyInputs(llvm::StringRef attribute) const;
  /// True if some node or the graph uses result k.
  bool isUsed(size_t k) const;

  /// `node "NAME": ` + the message, at the model file, with a note on the node's origin.
  mlir::InFlightDiagnostic error();
  mlir::LogicalResult unsupported(const llvm::Twine &what);

private:
  VariableOp movedVariable(size_t i);
  llvm::FailureOr<mlir::Value> readShared(llvm::StringRef name, VariableKind kind, mlir::DenseElementsAttr value,
                                          llvm::StringRef need);
  llvm::FailureOr<mlir::Value> readRandom(llvm::StringRef name, VariableKind kind, float value);

  GraphImporter &graph;
};

using ImportFunction = mlir::LogicalResult (*)(NodeImporter &);
using ImportTable = llvm::StringMap<ImportFunction>;
/// Bits of integers without a sign, as integers of twice the width that have one.
mlir::Value widenUnsigned(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);
void addElementwiseImports(ImportTable &table);
void addFunctionImports(ImportTable &table);
void addPowerImports(ImportTable &table);
void addCastImports(ImportTable &table);
void addRandomImports(ImportTable &table);
void addSortImports(ImportTable &table);
void addScatterImports(ImportTable &table);
void addPositionImports(ImportTable &table);
void addSoftmaxImports(ImportTable &table);
void addAttentionImports(ImportTable &table);
void addSpectralImports(ImportTable &table);
void addActivationImports(ImportTable &table);
void addShapeImports(ImportTable &table);
void addIndexImports(ImportTable &table);
void addReduceImports(ImportTable &table);
void addContractImports(ImportTable &table);
void addNormImports(ImportTable &table);
void addLossImports(ImportTable &table);
void addSequenceImports(ImportTable &table);
void addControlImports(ImportTable &table);
void addConvolutionImports(ImportTable &table);
void addPoolImports(ImportTable &table);
void addStatisticsImports(ImportTable &table);
void addResizeImports(ImportTable &table);
void addImageImports(ImportTable &table);
void addEinsumImports(ImportTable &table);
void addRecurrentImports(ImportTable &table);
void addGridImports(ImportTable &table);
void addRegionImports(ImportTable &table);
void addStateImports(ImportTable &table);

/// The tables of all supported operators.
ImportTable importTable();

/// `[product of the first dims] + rest` written as a reshape of `dims + rest`: exporters flatten batch and sequence
/// around matmuls, and the batch dim must stay a dim of its own to be sharded. `inner` is null if nothing is merged.
struct MergedDims {
  mlir::Value inner;
  Shape dims;
};
MergedDims findMergedDims(mlir::Value value);

class GraphImporter {
public:
  GraphImporter(const onnx::Model &model, const ImportOptions &options, mlir::MLIRContext *context);
  mlir::OwningOpRef<mlir::ModuleOp> run();
  /// After a refusal: the inputs that the values depend on which some node needed to know.
  std::set<std::string> findAsked() const;
  /// The inputs of the graph that values depend on.
  std::set<std::string> inputsBehind(llvm::ArrayRef<mlir::Value> values) const;

private:
  friend class NodeImporter;
  mlir::LogicalResult checkModel();
  mlir::LogicalResult checkInputs();
  mlir::LogicalResult checkFunctions();
  mlir::LogicalResult checkNames();
  /// As many inputs and outputs as the operator takes.
  mlir::LogicalResult checkArity(NodeImporter &importer);
  /// Training needs every parameter of the module; the exporter may have folded some.
  mlir::LogicalResult checkLost();
  mlir::LogicalResult readMarks();
  /// Whether a change of a parameter changes the value smoothly.
  bool hasGradient(mlir::Value value);
  mlir::LogicalResult bindDims();
  mlir::LogicalResult declareInputs();
  int64_t batchDimOf(const onnx::ValueInfo &input, llvm::ArrayRef<int64_t> shape) const;
  mlir::LogicalResult declareInitializers();
  mlir::LogicalResult importNodes();
  /// A node's results are no larger than a memory may be.
  mlir::LogicalResult checkSizes(NodeImporter &importer);
  mlir::LogicalResult importNode(const onnx::Node &node, const Provenance &place);
  mlir::LogicalResult countInner(int64_t times, int64_t nodes, NodeImporter &caller);
  /// Imports the nodes of a body or a function that `caller` stands for.
  mlir::LogicalResult importInner(llvm::ArrayRef<onnx::Node> nodes, NodeImporter &caller);
  llvm::FailureOr<std::vector<GraphValue>> importBody(const onnx::Graph &body, llvm::ArrayRef<GraphValue> inputs,
                                                      NodeImporter &caller);
  mlir::LogicalResult importCall(const onnx::Function &function, NodeImporter &caller);
  /// Declares an input that is a sequence or an optional, with the values in `held`.
  mlir::LogicalResult declareHeld(const onnx::ValueInfo &input);
  GraphValue addInput(llvm::StringRef name, onnx::ElementType type, mlir::RankedTensorType tensor, int64_t batchDim);
  bool hasUnsignedInput(const onnx::Node &node) const;
  /// Runs a table's function on inputs some of which have no sign.
  mlir::LogicalResult importUnsigned(NodeImporter &importer, ImportFunction function);
  /// An error if an output's value does not have the type that the file declares; a warning if it has other sizes.
  mlir::LogicalResult checkDeclared(const onnx::ValueInfo &output, const GraphValue &value);
  /// Nothing if a symbol has no size.
  std::optional<int64_t> sizeOf(const onnx::Dim &dim) const;
  /// Adds an output's value to the step's results.
  mlir::LogicalResult addOutput(const onnx::ValueInfo &output, const GraphValue &value, llvm::StringRef name);
  mlir::LogicalResult foldNode(const onnx::Node &node, mlir::Location loc, bool &folded);
  mlir::LogicalResult finish();
  /// The buffers that a step of this kind writes: one that trains.
  llvm::ArrayRef<onnx::BufferUpdate> writtenBuffers() const;
  mlir::LogicalResult writeBuffers();
  mlir::Location locationOf(const onnx::ValueInfo &output);
  /// `node "r": output "y" ` + the message.
  mlir::InFlightDiagnostic errorAt(const onnx::ValueInfo &output);
  mlir::FailureOr<mlir::Value> findLoss();
  mlir::FailureOr<mlir::Value> attachLoss();
  mlir::LogicalResult checkLabelBatch(const onnx::ValueInfo &output, mlir::RankedTensorType type, int64_t batchDim,
                                      int64_t labelRank);
  /// Samples of a step; nothing if neither the plan nor the model gives it.
  std::optional<int64_t> batchSize() const;
  mlir::LogicalResult missingLoss(llvm::ArrayRef<const onnx::ValueInfo *> candidates);

  /// A parameter, or a buffer if there is no rule by which it begins.
  GraphValue declareVariable(const onnx::Tensor &tensor, llvm::StringRef rule);
  mlir::LogicalResult declareFiled(const onnx::ValueInfo &info, llvm::StringRef file);
  mlir::FailureOr<StaticTensor> listedInput(const onnx::ValueInfo &info, mlir::RankedTensorType type,
                                            llvm::StringRef list);
  mlir::FailureOr<StaticTensor> filedInput(const onnx::ValueInfo &info, mlir::RankedTensorType type,
                                           llvm::StringRef file);
  mlir::FailureOr<GraphValue> constantInput(const onnx::ValueInfo &info, mlir::RankedTensorType type,
                                            llvm::StringRef rule);
  mlir::RankedTensorType typeOf(onnx::ElementType type, llvm::ArrayRef<int64_t> shape);
  /// A known value as ops: a small one as a constant, a band of a matrix as iotas and comparisons, else a `constant`
  /// variable. The result has the value's shape.
  mlir::Value materialize(const StaticTensor &value, llvm::StringRef name, mlir::Location loc);
  mlir::Value materializeCore(const StaticTensor &value, llvm::StringRef name, mlir::Location loc);
  /// The same stretched to `shape`. A large value is made once, and computed again if that costs less than a table.
  mlir::Value materialize(const GraphValue &known, llvm::ArrayRef<int64_t> shape, llvm::StringRef name,
                          mlir::Location loc);
  /// A variable of these elements, one for all that are equal; its name begins with `constant.`.
  mlir::Value readTable(mlir::DenseElementsAttr elements, llvm::StringRef name, mlir::Location loc);
  /// A known value computed by its recipe; null if it has none or keeping the value costs less.
  mlir::Value computeAgain(const GraphValue &value);
  mlir::Value runRecipe(Recipe &recipe);
  /// The recipe of `node`, which was folded to `result`; null for small results and if no op computes it.
  std::shared_ptr<Recipe> recipeFor(const onnx::Node &node, const StaticTensor &result, mlir::Location loc);
  mlir::InFlightDiagnostic error() { return mlir::emitError(fileLoc); }

  const onnx::Model &model;
  const ImportOptions &options;
  mlir::MLIRContext *context;
  mlir::Location fileLoc;
  mlir::OpBuilder builder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  StepOp step;
  ParameterTable parameters;
  TrainingMarks marks;
  Folder folder;
  ImportTable table;
  llvm::StringMap<GraphValue> values;
  llvm::StringSet<> used;
  llvm::SetVector<mlir::Value> asked;               ///< computed values that some node needed to know
  RandomState random;                               ///< null until a random op asks
  mlir::Value training;                             ///< null until an op asks for the mode
  llvm::DenseMap<mlir::Value, VariableOp> handedOn; ///< the value of a moved variable, by the node that moved it last
  llvm::DenseMap<VariableOp, WriteOp> moves;        ///< its one write
  llvm::DenseMap<mlir::Value, bool> reached;        ///< hasGradient's answers
  llvm::StringMap<unsigned> averaged;               ///< calls of each batch norm that averages over all steps
  llvm::StringMap<unsigned> streams; ///< how often each name was drawn from: a body or function is imported many times
  std::map<std::string, int64_t> dims;
  llvm::SmallVector<std::string> inputNames, outputNames;
  llvm::SmallVector<mlir::Value> results;
  llvm::SetVector<mlir::Attribute> unsignedValues; ///< names of inputs and outputs
  llvm::SmallVector<int64_t> batchDims;
  bool batchOfOne = false;                                      ///< of an input
  llvm::SmallVector<mlir::NamedAttribute> outputBatchDims = {}; ///< where outputs have it, by name
  std::map<std::string, Folded> folds;
  std::optional<JoinedIndices> joinedIndices;
  llvm::DenseMap<mlir::Attribute, mlir::Value> tables; ///< elements -> what reads the variable that has them
  /// Large known values and their ops, whole or as stored.
  struct Made {
    std::shared_ptr<const StaticTensor> known; ///< alive, so that no other gets its place
    mlir::Value value;
  };
  llvm::MapVector<const StaticTensor *, Made> made;
  size_t recipes = 0;     ///< so far
  int64_t opset;          ///< of the graph or function whose nodes are being imported
  unsigned depth = 0;     ///< of bodies and functions around them
  int64_t innerNodes = 0; ///< imported from bodies and functions, each time counted
};

} // namespace par
