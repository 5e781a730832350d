// Adds the update of every parameter that has a gradient: the optimizer of its group with its settings, its states as
// variables, and the shared learning rate and step count.
#include "par/Dialect/Interfaces/Optimizer.h"
#include "par/Dialect/Term.h"
#include "par/Phases/Train/Passes.h"
#include "par/Plan/Model/Optimizers.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_ADDOPTIMIZERPASS
#include "par/Phases/Train/Passes.h.inc"

namespace {

/// One optimizer, and the attributes of its updates but for the weight decay.
struct UpdateKind {
  Optimizer optimizer;
  SmallVector<std::pair<StringRef, Attribute>> attributes;
};

/// Adds updates to one training step.
class Updates {
public:
  Updates(StepOp step, const AddOptimizerPassOptions &options)
      : step(step), module(step->getParentOfType<ModuleOp>()), builder(step.getTerminator()), options(options) {}

  LogicalResult run();

private:
  LogicalResult readSettings(ArrayRef<std::string> texts, StringRef option, llvm::StringMap<double> &settings);
  FailureOr<VariableOp> declare(const Twine &name, VariableKind kind, RankedTensorType type, VariableOp of);
  FailureOr<Value> readState(VariableOp parameter, StringRef suffix);
  void writeState(Value state, const Twine &name);
  LogicalResult readOptions();
  FailureOr<UpdateKind> makeKind(StringRef word, const llvm::StringMap<double> &said);
  FailureOr<UpdateKind> kindOf(StringRef parameter);
  LogicalResult addScalars(bool counts);
  Value scaledRate(StringRef parameter);
  LogicalResult update(GradientOp gradient, const UpdateKind &kind);
  void write(Value value, const Twine &name) { WriteOp::create(builder, value.getLoc(), value, name.str()); }

  StepOp step;
  ModuleOp module;
  OpBuilder builder;
  const AddOptimizerPassOptions &options;
  llvm::StringMap<double> common, lrScales, decays; ///< common settings; those of single parameters
  llvm::StringMap<std::string> kinds;               ///< of parameters with another optimizer
  llvm::StringMap<llvm::StringMap<double>> own;     ///< settings of single parameters
  llvm::StringMap<Value> weights;                   ///< the value that each parameter was read as
  Value lr, count;                                  ///< learning rate; number of this step, from 1, if a kind needs it
  llvm::DenseMap<uint64_t, Value> rates;
};

} // namespace

/// Reads `name=number` settings.
LogicalResult Updates::readSettings(ArrayRef<std::string> texts, StringRef option, llvm::StringMap<double> &settings) {
  for (StringRef text : texts) {
    auto [name, number] = text.rsplit('=');
    double value;
    if (number.getAsDouble(value))
      return step.emitOpError() << option << " has \"" << text << "\", expected "
                                << (option == "settings" ? "name" : "parameter") << "=number";
    settings[name] = value;
  }
  return success();
}

/// A new variable. A state is placed after its parameter, with the parameter's sharding.
FailureOr<VariableOp> Updates::declare(const Twine &name, VariableKind kind, RankedTensorType type, VariableOp of) {
  StringAttr symbol = builder.getStringAttr(name);
  if (Operation *taken = module.lookupSymbol(symbol)) {
    InFlightDiagnostic error = step.emitError() << "training needs a variable @" << symbol.getValue() << " of its own";
    error.attachNote(taken->getLoc()) << "the name is taken here";
    return error;
  }
  OpBuilder outside(*module.getOps<StepOp>().begin());
  FlatSymbolRefAttr parameter;
  if (of) {
    parameter = FlatSymbolRefAttr::get(of.getSymNameAttr());
    outside.setInsertionPointAfter(of);
    auto next = dyn_cast<VariableOp>(*outside.getInsertionPoint());
    if (next && next.getOfAttr() == parameter) // its first state
      outside.setInsertionPointAfter(next);
  }
  TypeAttr stored = of ? of.getStoredAttr() : TypeAttr();
  if (stored)
    stored = TypeAttr::get(cast<RankedTensorType>(stored.getValue()).clone(type.getElementType()));
  return VariableOp::create(outside, of ? of.getLoc() : step.getLoc(), symbol,
                            VariableKindAttr::get(module.getContext(), kind), parameter, TypeAttr::get(type), stored,
                            of ? of.getShardingAttr() : ShardingAttr(), ArrayAttr(), ElementsAttr(),
                            builder.getStringAttr("zeros"), DictionaryAttr());
}

/// Declares and reads one state of a parameter, in the parameter's format.
FailureOr<Value> Updates::readState(VariableOp parameter, StringRef suffix) {
  RankedTensorType type = parameter.getTensorType(), kept = type;
  if (options.states == "bf16" && type.getElementType().isF32())
    kept = type.clone(builder.getBF16Type());
  FailureOr<VariableOp> state = declare(parameter.getSymName() + suffix, VariableKind::state, kept, parameter);
  if (failed(state))
    return failure();
  Value read = ReadOp::create(builder, parameter.getLoc(), kept, state->getSymName());
  return buildConvert(builder, parameter.getLoc(), read, type.getElementType());
}

/// Writes a new state in the format that it is kept in.
void Updates::writeState(Value state, const Twine &name) {
  auto variable = module.lookupSymbol<VariableOp>(name.str());
  write(buildConvert(builder, state.getLoc(), state, variable.getTensorType().getElementType()), name);
}

/// Reads `lr` and, if a kind counts steps, `count`, and writes the count back.
LogicalResult Updates::addScalars(bool counts) {
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  FailureOr<VariableOp> rate = declare("lr", VariableKind::hyperparameter, scalar, {});
  if (failed(rate))
    return failure();
  rate->removeInitAttr();
  rate->setValueAttr(DenseElementsAttr::get(scalar, static_cast<float>(options.lr)));
  lr = ReadOp::create(builder, step.getLoc(), scalar, "lr");
  if (!counts)
    return success();
  if (failed(declare("step", VariableKind::counter, scalar, {})))
    return failure();
  Term before(builder, step.getLoc(), ReadOp::create(builder, step.getLoc(), scalar, "step"));
  count = before + 1.0;
  write(count, "step");
  return success();
}

/// The learning rate of one parameter; parameters with one scale share it.
Value Updates::scaledRate(StringRef parameter) {
  auto at = lrScales.find(parameter);
  if (at == lrScales.end() || at->second == 1)
    return lr;
  Value &rate = rates[llvm::bit_cast<uint64_t>(at->second)];
  if (!rate)
    rate = Term(builder, step.getLoc(), lr) * at->second;
  return rate;
}

/// Updates the parameter of one gradient and writes it and its state.
LogicalResult Updates::update(GradientOp gradient, const UpdateKind &kind) {
  StringRef name = gradient.getVariable();
  auto parameter = module.lookupSymbol<VariableOp>(name);
  Value weight = weights.lookup(name), rate = scaledRate(name);
  ArrayRef<int64_t> shape = parameter.getTensorType().getShape(), updated = shape;
  if (TypeAttr stored = parameter.getStoredAttr(); stored && kind.optimizer.updatesMatrices())
    updated = cast<RankedTensorType>(stored.getValue()).getShape();
  auto reshaped = [&](Value value, ArrayRef<int64_t> to) { return buildReshape(builder, value.getLoc(), value, to); };
  OperationState state(gradient.getLoc(), kind.optimizer.op);
  auto add = [&](Value value) { state.addOperands(updated == shape ? value : reshaped(value, updated)); };
  add(weight);
  add(gradient);
  state.addTypes(state.operands[0].getType());
  for (StringRef suffix : kind.optimizer.getStates()) {
    FailureOr<Value> old = readState(parameter, suffix);
    if (failed(old))
      return failure();
    add(*old);
    state.addTypes(state.operands.back().getType());
  }
  if (kind.optimizer.countsSteps())
    state.addOperands(count);
  state.addOperands(rate);
  if (Value rows = gradient.getRows())
    state.addOperands(rows);
  for (auto &[setting, value] : kind.attributes)
    state.addAttribute(setting, value);
  state.addAttribute("weight_decay",
                     builder.getF64FloatAttr(decays.contains(name) ? decays.lookup(name) : options.decay));
  Operation *update = builder.create(state);
  write(reshaped(update->getResult(0), shape), name);
  for (auto [suffix, result] : llvm::zip(kind.optimizer.getStates(), update->getResults().drop_front()))
    writeState(reshaped(result, shape), name + suffix);
  return success();
}

/// An optimizer with the given settings, and defaults for the others.
FailureOr<UpdateKind> Updates::makeKind(StringRef word, const llvm::StringMap<double> &said) {
  std::optional<Optimizer> optimizer = findOptimizer(step.getContext(), word);
  if (!optimizer) {
    step.emitOpError() << "has the optimizer \"" << word << "\", expected one of "
                       << llvm::join(optimizerKinds(step.getContext()), ", ");
    return failure();
  }
  UpdateKind made{*optimizer, {}};
  size_t taken = 0;
  const OptimizerKind *kind = findOptimizerKind(word);
  for (const OptimizerSetting &setting : kind ? kind->settings : ArrayRef<OptimizerSetting>()) {
    auto own = said.find(setting.attribute);
    taken += own != said.end();
    double value = own == said.end() ? setting.value : own->second;
    made.attributes.emplace_back(setting.attribute, setting.flag ? Attribute(builder.getBoolAttr(value != 0))
                                                                 : builder.getF64FloatAttr(value));
  }
  if (taken == said.size())
    return made;
  for (StringRef name : said.keys())
    if (llvm::none_of(made.attributes, [&](auto &attribute) { return attribute.first == name; }))
      return step.emitOpError() << "has the setting \"" << name << "\", which " << optimizer->op << " does not take";
  return failure();
}

/// The update of one parameter: another optimizer starts from its own defaults, all others from the common settings.
FailureOr<UpdateKind> Updates::kindOf(StringRef parameter) {
  auto word = kinds.find(parameter);
  bool others = word != kinds.end() && word->second != options.kind;
  llvm::StringMap<double> said = others ? llvm::StringMap<double>() : common;
  if (auto settings = own.find(parameter); settings != own.end())
    for (auto &entry : settings->second)
      said[entry.getKey()] = entry.second;
  return makeKind(others ? StringRef(word->second) : StringRef(options.kind), said);
}

/// Reads the options and checks that they name parameters.
LogicalResult Updates::readOptions() {
  llvm::StringMap<double> ownSettings;
  if (failed(readSettings(options.settings, "settings", common)) ||
      failed(readSettings(options.lrScales, "lr-scales", lrScales)) ||
      failed(readSettings(options.decays, "decays", decays)) ||
      failed(readSettings(options.ownSettings, "own-settings", ownSettings)))
    return failure();
  for (auto &entry : ownSettings) {
    auto [name, attribute] = entry.getKey().rsplit(':');
    own[name][attribute] = entry.second;
  }
  for (StringRef text : options.kinds) {
    auto [name, kind] = text.rsplit('=');
    kinds[name] = kind.str();
  }
  auto check = [&](auto &settings) -> LogicalResult {
    for (StringRef name : settings.keys())
      if (auto variable = module.lookupSymbol<VariableOp>(name);
          !variable || variable.getKind() != VariableKind::parameter)
        return step.emitOpError() << "has a setting for @" << name << ", which is no parameter";
    return success();
  };
  return success(succeeded(check(lrScales)) && succeeded(check(decays)) && succeeded(check(kinds)) &&
                 succeeded(check(own)));
}

LogicalResult Updates::run() {
  if (options.states != "f32" && options.states != "bf16")
    return step.emitOpError() << "keeps states in \"" << options.states << "\", expected f32 or bf16";
  if (failed(readOptions()) || failed(makeKind(options.kind, common)))
    return failure();
  SmallVector<std::pair<GradientOp, UpdateKind>> updates;
  for (auto gradient : step.getBlock().getOps<GradientOp>()) {
    FailureOr<UpdateKind> kind = kindOf(gradient.getVariable());
    if (failed(kind))
      return failure();
    updates.emplace_back(gradient, *kind);
  }
  for (auto read : step.getBlock().getOps<ReadOp>())
    weights.try_emplace(read.getVariable(), read);
  if (failed(addScalars(llvm::any_of(updates, [](auto &each) { return each.second.optimizer.countsSteps(); }))))
    return failure();
  for (auto &[gradient, kind] : updates)
    if (failed(update(gradient, kind)))
      return failure();
  return success();
}

namespace {
struct AddOptimizerPass : impl::AddOptimizerPassBase<AddOptimizerPass> {
  using Base::Base;
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<StepOp>("train");
    AddOptimizerPassOptions options{kind, lr, {}, decay, {}, {}, {}, {}, states};
    options.settings.assign(settings.begin(), settings.end());
    options.lrScales.assign(lrScales.begin(), lrScales.end());
    options.decays.assign(decays.begin(), decays.end());
    options.kinds.assign(kinds.begin(), kinds.end());
    options.ownSettings.assign(ownSettings.begin(), ownSettings.end());
    if (step && failed(Updates(step, options).run()))
      signalPassFailure();
  }
};
} // namespace

} // namespace par
