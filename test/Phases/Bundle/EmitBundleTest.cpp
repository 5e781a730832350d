// Programs after Memory become a bundle that the verifier proves.
#include "par/Phases/Bundle/Bundle.h"
#include "par/Phases/Memory/Passes.h"
#include "par/verify/Verify.h"

#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace par;

namespace {

constexpr const char *tables = R"ir(
par.stage @s0 <"dp"=2> ranks [0, 1]
par.stage @s1 <"dp"=2> ranks [2, 3]
par.variable @w parameter : tensor<3x4xf32> stored tensor<12xf32> init "normal(0.02)" source {file = "m.onnx",
    offset = 16 : i64, length = 48 : i64}
par.variable @step counter : tensor<f32> value dense<2.0> : tensor<f32>
par.variable @lr hyperparameter : tensor<f32> value dense<0.125> : tensor<f32>
par.kernel @mul(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) -> tensor<2x4xf32>
    attributes {implementation = "generated", tied = array<i64: -1>} {
  %0 = par.multiply %a, %b : tensor<2x4xf32>
  par.return %0 : tensor<2x4xf32>
}
par.kernel @sum(%a: tensor<2x4xf32>) -> tensor<f32> attributes {implementation = "generated"} {
  %0 = par.reduce sum %a dims [0, 1] : tensor<2x4xf32> to tensor<f32>
  par.return %0 : tensor<f32>
}
par.kernel @sgd(%w: tensor<2x4xf32>, %g: tensor<2x4xf32>, %lr: tensor<f32>) -> tensor<2x4xf32>
    attributes {implementation = "generated", tied = array<i64: 0>} {
  %0 = par.sgd %w, %g, %lr decay 0.0 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<f32>
  par.return %0 : tensor<2x4xf32>
}
par.kernel @inc(%s: tensor<f32>, %l: tensor<f32>) -> tensor<f32>
    attributes {implementation = "generated", tied = array<i64: 0>} {
  %0 = par.add %s, %l : tensor<f32>
  par.return %0 : tensor<f32>
}
)ir";

constexpr const char *programs = R"ir(
par.program @p0 on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<2x4xf32> as !par.dist<tensor<3x4xf32>, @s0, [{"dp"}, {}]>
  par.buffer @step state of "step" : tensor<f32> as !par.dist<tensor<f32>, @s0, []>
  par.buffer @lr hyperparameter of "lr" : tensor<f32>
  par.buffer @x input of "x" sliced by microbatch depth 2 : tensor<2x4xf32>
    as !par.dist<tensor<4x4xf32>, @s0, [{"dp"}, {}]>
  par.buffer @g temp by microbatch depth 2 : tensor<2x4xf32>
  par.block @forward {
    %w = par.load @w : tensor<2x4xf32>
    %x = par.load @x : tensor<2x4xf32>
    %y = par.launch @mul(%w, %x) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    par.send %y, %x to [2, 3] tag 0 : tensor<2x4xf32>, tensor<2x4xf32>
  }
  par.block @backward {
    %g = par.recv from [2, 3] tag 1 : tensor<2x4xf32>
    %x = par.load @x : tensor<2x4xf32>
    %h = par.launch @mul(%g, %x) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %r = par.all_reduce sum %h over ["dp"] : (tensor<2x4xf32>) -> tensor<2x4xf32>
    par.store %r to @g : tensor<2x4xf32>
  }
  par.block @update {
    %g = par.load @g : tensor<2x4xf32>
    %n = par.launch @sum(%g) : (tensor<2x4xf32>) -> tensor<f32>
    %t = par.world_all_reduce sum %n groups [array<i64: 0, 2>, array<i64: 1, 3>] tag 2 : (tensor<f32>) -> tensor<f32>
    par.fetch %t as "norm" : tensor<f32>
    %w = par.load @w : tensor<2x4xf32>
    %lr = par.load @lr : tensor<f32>
    %u = par.launch @sgd(%w, %g, %lr) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    par.store %u to @w : tensor<2x4xf32>
    %s = par.load @step : tensor<f32>
    %i = par.launch @inc(%s, %lr) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    par.store %i to @step : tensor<f32>
  }
  par.entry @train runs [@forward, @forward, @backward, @backward, @update] microbatches [0, 1, 0, 1, 1]
}
par.program @p1 on @s1 ranks [2, 3] {
  par.buffer @step state of "step" : tensor<f32> as !par.dist<tensor<f32>, @s1, []>
  par.buffer @lr hyperparameter of "lr" : tensor<f32>
  par.buffer @sum temp by microbatch depth 2 : tensor<f32>
  par.buffer @a temp by microbatch depth 2 : tensor<2x4xf32>
  par.buffer @b temp by microbatch depth 2 : tensor<2x4xf32>
  par.block @receive {
    %y, %x = par.recv from [0, 1] tag 0 : tensor<2x4xf32>, tensor<2x4xf32>
    par.store %y to @a : tensor<2x4xf32>
    par.store %x to @b : tensor<2x4xf32>
  }
  par.block @compute {
    %y = par.load @a : tensor<2x4xf32>
    %x = par.load @b : tensor<2x4xf32>
    %z = par.launch @mul(%y, %x) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %l = par.launch @sum(%z) : (tensor<2x4xf32>) -> tensor<f32>
    %r = par.all_reduce sum %l over ["dp"] : (tensor<f32>) -> tensor<f32>
    par.fetch %r as "loss" : tensor<f32>
    par.store %r to @sum : tensor<f32>
    par.send %z to [0, 1] tag 1 : tensor<2x4xf32>
  }
  par.block @update {
    %n = par.load @sum : tensor<f32>
    %t = par.world_all_reduce sum %n groups [array<i64: 0, 2>, array<i64: 1, 3>] tag 2 : (tensor<f32>) -> tensor<f32>
    par.fetch %t as "norm" : tensor<f32>
    %lr = par.load @lr : tensor<f32>
    %s = par.load @step : tensor<f32>
    %i = par.launch @inc(%s, %lr) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    par.store %i to @step : tensor<f32>
  }
  par.entry @train runs [@receive, @receive, @compute, @compute, @update] microbatches [0, 1, 0, 1, 1]
}
)ir";

/// Codegen's result for the kernels above.
CompiledKernels compiledKernels() {
  auto info = [](std::string name, std::vector<OperandInfo> operands, uint64_t scratch) {
    KernelInfo made;
    made.kernel = name;
    made.symbol = "k_" + name;
    made.operands = std::move(operands);
    made.scratchBytes = scratch;
    return made;
  };
  using enum OperandAccess;
  CompiledKernels compiled;
  compiled.object = "code";
  compiled.isa = "x86-64";
  compiled.kernels = {
      info("mul", {{Read, 32}, {Read, 32}, {Write, 32}}, 0), info("sum", {{Read, 32}, {Write, 4}, {Write, 100}}, 100),
      info("sgd", {{ReadWrite, 32}, {Read, 32}, {Read, 4}}, 0), info("inc", {{ReadWrite, 4}, {Read, 4}}, 0)};
  compiled.kernels[0].immediates.push_back({{"dp"}, 0});
  return compiled;
}

class EmitBundle : public ::testing::Test {
protected:
  EmitBundle() : handler(&context, [this](Diagnostic &diagnostic) { errors += diagnostic.str() + "\n"; }) {
    DialectRegistry registry;
    registerDialect(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  FailureOr<format::Bundle> emit(const std::string &text, const BundleOptions &options = {}) {
    return emitWhole(tables + text, options);
  }
  /// With the model's name and the batch of the programs here, against which a proof checks the inputs' shapes.
  FailureOr<format::Bundle> emitWhole(const std::string &text, BundleOptions options = {}) {
    if (options.model.name.empty()) {
      options.model.name = "model.onnx";
      options.batch = 8;
    }
    module = parseSourceString<ModuleOp>(text, &context);
    PassManager manager(&context);
    buildMemoryPipeline(manager, {});
    if (!module || failed(manager.run(*module)))
      return failure();
    return emitBundle(*module, compiledKernels(), options);
  }
  /// All of the above with one piece of text replaced.
  FailureOr<format::Bundle> emitWith(StringRef from, StringRef to) {
    std::string text = std::string(tables) + programs;
    size_t at = text.find(from.str());
    EXPECT_NE(at, std::string::npos) << from.str();
    text.replace(at, from.size(), to.str());
    return emitWhole(text);
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::string errors;
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> module;
};

TEST_F(EmitBundle, isProved) {
  FailureOr<format::Bundle> bundle = emit(programs);
  ASSERT_TRUE(succeeded(bundle)) << errors;
  verify::Verdict verdict = verify::verifyBundle(*bundle);
  EXPECT_TRUE(bool(verdict)) << verify::format(verdict, "bundle");
  EXPECT_EQ(verdict.proof.programs, 2u);
  // The receive of two values is one group.
  EXPECT_GT(verdict.proof.groups, 0u);
}

TEST_F(EmitBundle, manifestSaysWhereThingsLie) {
  BundleOptions options;
  options.aliases["w"] = {"head"};
  options.inputLimits["x"] = std::vector<format::Limits>{{1, 7, true}};
  FailureOr<format::Bundle> bundle = emit(programs, options);
  ASSERT_TRUE(succeeded(bundle)) << errors;
  const format::Manifest &manifest = bundle->manifest;
  // Three rows over two ranks: two, and one that is padded.
  const format::Tensor *w = manifest.findTensor("w");
  ASSERT_TRUE(w);
  EXPECT_EQ(w->layout.local, (std::vector<int64_t>{2, 4}));
  ASSERT_EQ(w->layout.parts.size(), 2u);
  EXPECT_EQ(w->layout.parts[1], (format::Rectangle{{2, 0}, {1, 4}, {1}}));
  EXPECT_EQ(w->stored, std::vector<int64_t>{12});
  EXPECT_EQ(w->aliases, std::vector<std::string>{"head"});
  EXPECT_EQ(w->init.kind, format::InitRule::Normal);
  EXPECT_EQ(w->init.b, 0.02);
  ASSERT_TRUE(w->source);
  EXPECT_EQ(w->source->file, "m.onnx");
  // Both stages hold the counter: one tensor.
  const format::Tensor *step = manifest.findTensor("step");
  ASSERT_TRUE(step);
  EXPECT_EQ(step->init.a, 2);
  ASSERT_EQ(step->layout.parts.size(), 1u);
  EXPECT_EQ(step->layout.parts[0].ranks, (std::vector<uint32_t>{0, 1, 2, 3}));
  const format::Input *x = manifest.findInput("x");
  ASSERT_TRUE(x);
  EXPECT_TRUE(x->microbatched);
  EXPECT_EQ(x->shape, (std::vector<int64_t>{8, 4}));
  EXPECT_EQ(x->layout.shape, (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(x->limits, (std::vector<format::Limits>{{1, 7, true}}));
  EXPECT_EQ(manifest.findOutput("norm")->ranks.size(), 4u);
  EXPECT_EQ(manifest.findOutput("loss")->ranks, (std::vector<uint32_t>{2, 3}));
  ASSERT_EQ(manifest.hypers.size(), 1u);
  EXPECT_EQ(manifest.hypers[0].value, 0.125);
  EXPECT_EQ(manifest.microbatches, 2u);
  EXPECT_EQ(manifest.needs, std::vector<std::string>{"isa: x86-64"});
}

TEST_F(EmitBundle, communicatorsJoinStages) {
  FailureOr<format::Bundle> bundle = emit(programs);
  ASSERT_TRUE(succeeded(bundle)) << errors;
  using Groups = std::vector<std::vector<uint32_t>>;
  auto groups = [&](const char *name) {
    const format::Communicator *found = bundle->manifest.findCommunicator(name);
    return found ? found->groups.lists() : Groups();
  };
  EXPECT_EQ(groups("dp"), (Groups{{0, 1}, {2, 3}}));
  EXPECT_EQ(groups("s0>s1"), (Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(groups("s1>s0"), (Groups{{2, 0}, {3, 1}}));
  EXPECT_EQ(groups("stages"), (Groups{{0, 2}, {1, 3}}));
}

TEST_F(EmitBundle, inputsAreFedWhereTheyAreFirstLoaded) {
  FailureOr<format::Bundle> bundle = emit(programs);
  ASSERT_TRUE(succeeded(bundle)) << errors;
  const format::Program &first = bundle->programs[0];
  auto feeds = [](const format::Block &block) {
    return llvm::count_if(block.instructions, [](const auto &it) { return it.op == format::Op::Feed; });
  };
  EXPECT_EQ(feeds(first.blocks[first.findBlock("forward")]), 1);
  EXPECT_EQ(feeds(first.blocks[first.findBlock("backward")]), 0);
}

/// A reduction on its own queue waits for the gradient, and the update for it.
TEST_F(EmitBundle, reductionsBesideComputeAreOrderedByEvents) {
  FailureOr<format::Bundle> bundle =
      emitWith("par.all_reduce sum %h over [\"dp\"] :", "par.all_reduce sum %h over [\"dp\"] {queue = \"data\"} :");
  ASSERT_TRUE(succeeded(bundle)) << errors;
  verify::Verdict verdict = verify::verifyBundle(*bundle);
  EXPECT_TRUE(bool(verdict)) << verify::format(verdict, "bundle");
  format::Program &first = bundle->programs[0];
  EXPECT_EQ(first.queues, (std::vector<std::string>{"compute", "data", "sends", "receives"}));
  EXPECT_TRUE(bundle->manifest.findCommunicator("dp.data"));
  format::Block &update = first.blocks[first.findBlock("update")];
  EXPECT_EQ(update.instructions[0].op, format::Op::Wait);
  // Without that wait the verifier finds the race.
  update.instructions.erase(update.instructions.begin());
  verdict = verify::verifyBundle(*bundle);
  ASSERT_FALSE(bool(verdict));
  EXPECT_EQ(verdict.counterexample->property, verify::Property::Race);
}

/// A send is on a queue of its own. Its slot is computed again only after the end of that slot's send.
TEST_F(EmitBundle, sendsStandBesideCompute) {
  FailureOr<format::Bundle> bundle = emitWith("par.all_reduce", "par.all_reduce");
  ASSERT_TRUE(succeeded(bundle)) << errors;
  format::Program &first = bundle->programs[0];
  ASSERT_EQ(first.queues, (std::vector<std::string>{"compute", "sends", "receives"}));
  for (const format::Comm &comm : first.comms)
    EXPECT_EQ(comm.queue, comm.name == "s0>s1" ? 1u : comm.name == "s1>s0" ? 2u : 0u) << comm.name;
  std::vector<format::Instruction> &forward = first.blocks[first.findBlock("forward")].instructions;
  auto ops = llvm::map_to_vector(forward, [](const format::Instruction &it) { return it.op; });
  using format::Op;
  EXPECT_EQ(ops, (SmallVector<Op, 8>{Op::Wait, Op::Feed, Op::Wait, Op::Kernel, Op::Signal, Op::Wait, Op::Group,
                                     Op::Send, Op::Send, Op::Signal, Op::Signal}));
  EXPECT_EQ(forward[0].eventSlot.base, format::SlotExpr::Mb);
  verify::Verdict verdict = verify::verifyBundle(*bundle);
  EXPECT_TRUE(bool(verdict)) << verify::format(verdict, "bundle");
  // Without the wait before the kernel the verifier finds the race of the second microbatch.
  forward.erase(forward.begin() + 2);
  verdict = verify::verifyBundle(*bundle);
  ASSERT_FALSE(bool(verdict));
  EXPECT_EQ(verdict.counterexample->property, verify::Property::Race);
}

/// A receive is on a queue of its own, after earlier compute. A reader of its slot waits for that slot's receive.
TEST_F(EmitBundle, receivesStandBesideCompute) {
  FailureOr<format::Bundle> bundle = emitWith("par.all_reduce", "par.all_reduce");
  ASSERT_TRUE(succeeded(bundle)) << errors;
  format::Program &second = bundle->programs[1];
  ASSERT_EQ(second.queues, (std::vector<std::string>{"compute", "sends", "receives"}));
  for (const format::Comm &comm : second.comms)
    EXPECT_EQ(comm.queue, comm.name == "s1>s0" ? 1u : comm.name == "s0>s1" ? 2u : 0u) << comm.name;
  auto opsOf = [&](StringRef block) {
    return llvm::map_to_vector(second.blocks[second.findBlock(block)].instructions,
                               [](const format::Instruction &it) { return it.op; });
  };
  using format::Op;
  EXPECT_EQ(opsOf("receive"),
            (SmallVector<Op, 8>{Op::Signal, Op::Wait, Op::Group, Op::Recv, Op::Recv, Op::Signal, Op::Signal}));
  verify::Verdict verdict = verify::verifyBundle(*bundle);
  EXPECT_TRUE(bool(verdict)) << verify::format(verdict, "bundle");
  std::vector<format::Instruction> &compute = second.blocks[second.findBlock("compute")].instructions;
  auto waits = [&](const format::Instruction &it) {
    return it.op == Op::Wait && StringRef(second.events[it.event].name).starts_with("received");
  };
  EXPECT_EQ(llvm::count_if(compute, waits), 2);
  EXPECT_EQ(llvm::find_if(compute, waits)->eventSlot.base, format::SlotExpr::Mb);
  // Without them the verifier finds the race.
  llvm::erase_if(compute, waits);
  verdict = verify::verifyBundle(*bundle);
  ASSERT_FALSE(bool(verdict));
  EXPECT_EQ(verdict.counterexample->property, verify::Property::Race);
}

/// Each case replaces one piece of the programs by another, and gives a part of the error.
TEST_F(EmitBundle, refusesWhatTheFormatCannotSay) {
  struct Case {
    const char *from, *to, *error;
  };
  const Case cases[] = {
      {"to [2, 3] tag 0", "to [3, 2] tag 0",
       "talks to ranks that are not those of a stage as large as its own: not supported yet"},
      {"par.world_all_reduce sum %n groups [array<i64: 0, 2>, array<i64: 1, 3>] tag 2 : (tensor<f32>) -> "
       "tensor<f32>\n"
       "    par.fetch %t as \"norm\" : tensor<f32>\n    %w",
       "par.world_all_reduce and %n groups [array<i64: 0, 2>, array<i64: 1, 3>] tag 2 : (tensor<f32>) -> "
       "tensor<f32>\n"
       "    %w",
       "reduces 'tensor<f32>' by and; over ranks that is supported only for booleans"},
      {"par.store %i to @step", "%neg = par.negate %i : tensor<f32>\n    par.store %neg to @step",
       "is left in a program that is to be a bundle; Kernels puts such ops into kernels"},
      {"par.store %r to @g",
       "%q = par.all_gather %h dims [1] over [\"dp\"] : (tensor<2x4xf32>) -> tensor<2x8xf32>\n"
       "    par.store %r to @g",
       "works along another dim than 0; -par-flatten-collectives must come before"},
      {"par.program @p1 on @s1 ranks [2, 3] {",
       "par.program @p1 on @s1 ranks [2, 3] {\n"
       "  par.buffer @w state of \"w\" : tensor<3x2xf32> as !par.dist<tensor<3x4xf32>, @s1, [{}, {\"dp\"}]>",
       "lies on this stage in other parts than on an earlier one: not supported yet"},
      {"par.buffer @sum temp by microbatch depth 2 : tensor<f32>",
       "par.buffer @x input of \"x\" : tensor<2x4xf32> as !par.dist<tensor<4x4xf32>, @s1, [{\"dp\"}, {}]>\n"
       "  par.block @other {\n    %x = par.load @x : tensor<2x4xf32>\n  }\n"
       "  par.buffer @sum temp by microbatch depth 2 : tensor<f32>",
       "takes input \"x\" in other microbatches than another stage or step does: not supported yet"},
      {"par.buffer @sum temp by microbatch depth 2 : tensor<f32>",
       "par.buffer @n input of \"n\" : tensor<i64> as !par.dist<tensor<i64>, @s1, []>\n"
       "  par.block @other {\n    %n = par.load @n : tensor<i64>\n    par.fetch %n as \"norm\" : tensor<i64>\n  }\n"
       "  par.buffer @sum temp by microbatch depth 2 : tensor<f32>",
       "gives \"norm\" in another shape than another block does"},
      {"as !par.dist<tensor<3x4xf32>, @s0, [{\"dp\"}, {}]>", "", "has no sharding (`as`)"},
      {"runs [@forward, @forward, @backward, @backward, @update] microbatches [0, 1, 0, 1, 1]",
       "runs [@forward, @forward, @backward, @backward, @update] microbatches [0, 1, 0, 1, 1]\n"
       "  par.block @other {\n    %w = par.load @w : tensor<2x4xf32>\n"
       "    par.fetch %w as \"w\" : tensor<2x4xf32>\n  }",
       "has no sharding of \"w\" (`of`)"},
  };
  for (const Case &one : cases) {
    errors.clear();
    EXPECT_TRUE(failed(emitWith(one.from, one.to))) << one.error;
    EXPECT_NE(errors.find(one.error), std::string::npos) << one.error << "\nfound: " << errors;
  }
}

/// The same for pieces outside the programs.
TEST_F(EmitBundle, refusesVariablesAndKernelsItCannotPlace) {
  struct Case {
    const char *from, *to, *error;
  };
  const Case cases[] = {
      {"init \"normal(0.02)\"", "init \"orthogonal\"",
       "has the initialisation rule \"orthogonal\", which is not supported yet"},
      {"hyperparameter : tensor<f32> value dense<0.125> : tensor<f32>",
       "hyperparameter : tensor<2xf32> value dense<[0.5, 1.0]> : tensor<2xf32>",
       "is a hyperparameter of several numbers"},
      {"@inc(%s: tensor<f32>, %l: tensor<f32>) -> tensor<f32>\n    attributes {implementation = \"generated\"",
       "@inc(%s: tensor<f32>, %l: tensor<f32>) -> tensor<f32>\n    attributes {implementation = \"magic\"",
       "has the unknown implementation \"magic\""},
      {"@inc(%s: tensor<f32>, %l: tensor<f32>) -> tensor<f32>\n    attributes {implementation = \"generated\"",
       "@inc(%s: tensor<f32>, %l: tensor<f32>) -> tensor<f32>\n    attributes {implementation = "
       "\"library:matmul\"",
       "is to be a library matmul, but its body is not a matmul"},
      {"@inc(%s: tensor<f32>, %l: tensor<f32>) -> tensor<f32>\n    attributes {implementation = \"generated\"",
       "@inc(%s: tensor<f32>, %l: tensor<f32>) -> tensor<f32>\n    attributes {implementation = \"builtin:sgd\"",
       "is to be a builtin:sgd, but its body is none"},
      {"tied = array<i64: -1>", "tied = array<i64: 0>", "values for the 3 operands of the code of @mul"},
  };
  for (const Case &one : cases) {
    errors.clear();
    EXPECT_TRUE(failed(emitWith(one.from, one.to))) << one.error;
    EXPECT_NE(errors.find(one.error), std::string::npos) << one.error << "\nfound: " << errors;
  }
  errors.clear();
  EXPECT_TRUE(failed(emit("", {})));
  EXPECT_NE(errors.find("has no program to make a bundle of"), std::string::npos) << errors;
  errors.clear();
  module = parseSourceString<ModuleOp>(std::string(tables) + programs, &context);
  EXPECT_TRUE(failed(emitBundle(*module, compiledKernels(), {})));
  EXPECT_NE(errors.find("has no offsets; a bundle is made after Memory"), std::string::npos) << errors;
  errors.clear();
  EXPECT_TRUE(failed(emit("par.program @p on @s1 ranks [2, 3] {}")));
  EXPECT_NE(errors.find("has rank 2; the programs' ranks must be 0 to 1, each once"), std::string::npos) << errors;
}

TEST_F(EmitBundle, refusesKernelsWithoutCode) {
  EXPECT_TRUE(
      failed(emit("par.kernel @neg(%a: tensor<f32>) -> tensor<f32> attributes {implementation = \"generated\"} {\n"
                  "  %0 = par.negate %a : tensor<f32>\n  par.return %0 : tensor<f32>\n}\n"
                  "par.program @p on @s0 ranks [0, 1] {\n"
                  "  par.buffer @s state of \"step\" : tensor<f32>\n"
                  "  par.block @b {\n    %s = par.load @s : tensor<f32>\n"
                  "    %n = par.launch @neg(%s) : (tensor<f32>) -> tensor<f32>\n"
                  "    par.store %n to @s : tensor<f32>\n  }\n"
                  "  par.entry @train runs [@b] microbatches [0]\n}\n")));
  EXPECT_NE(errors.find("launches @neg, which Codegen has not compiled"), std::string::npos) << errors;
}

} // namespace
