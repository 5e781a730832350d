#include "TrainingToy.h"

#include "par/format/Sha256.h"
#include "par/kernels/Builtins.h"

using namespace par::format;
using namespace par::toy;

namespace {

constexpr int64_t rows = 8, cols = 8, sequence = 16;

/// A kernel of the table with its operands' sizes, and an instruction that runs it.
void builtin(ProgramBuilder &b, const std::string &name, std::vector<int64_t> imms, std::vector<Operand> operands) {
  Kernel kernel;
  kernel.name = kernel.symbol = name;
  kernel.builtin = true;
  kernel.imms = uint32_t(imms.size());
  Instruction it;
  it.op = Op::Kernel;
  it.kernel = uint32_t(b.program.kernels.size());
  for (const Operand &operand : operands)
    kernel.operands.push_back({operand.access, b.program.buffers[operand.buffer].bytes()});
  for (int64_t value : imms)
    it.imms.push_back({value, "", 1});
  it.operands = std::move(operands);
  b.program.kernels.push_back(std::move(kernel));
  b.program.blocks.back().instructions.push_back(std::move(it));
}

Program programOf(uint32_t ranks) {
  int64_t local = rows / ranks;
  ProgramBuilder b("all", {"compute"});
  uint32_t w = b.buffer("w", BufferKind::State, {local, cols}, Index::None, 1, "w");
  b.buffer("step", BufferKind::State, {1}, Index::None, 1, "step");
  b.buffer("ids", BufferKind::Input, {2, sequence});
  b.buffer("labels", BufferKind::Input, {2, sequence});
  b.program.buffers[2].type = b.program.buffers[3].type = DType::I64;
  for (size_t i : {2, 3}) // eight bytes an element, where the builder reserved four
    b.program.buffers[i].at[0] = b.program.arena.state + (i - 2) * 2 * sequence * 8;
  b.program.arena.pool = 2 * 2 * sequence * 8;
  uint32_t lr = b.buffer("lr", BufferKind::Hyper, {}, Index::None, 1, "lr");
  uint32_t g = b.buffer("g", BufferKind::Temp, {local, cols});
  uint32_t loss = b.buffer("loss", BufferKind::Temp, {1});
  b.buffer("one", BufferKind::Temp, {1});
  b.comm("dp", "compute");
  b.product("count", 1, 1, 1, false, false, 1, 1);
  auto real = [](double value) { return static_cast<int64_t>(par::kernels::realImmediate(value)); };
  b.block("loss");
  b.feed("compute", "input_ids", "ids");
  b.feed("compute", "labels", "labels");
  b.fill("compute", 1, 0, "loss");
  b.fill("compute", 1, 1, "one");
  builtin(b, "sum_squares", {local * cols, real(1)}, {{Access::Read, w, {}}, {Access::Accumulate, loss, {}}});
  if (ranks > 1)
    b.collective("compute", "dp", CollKind::AllReduce, 1, "loss", 1);
  b.fetch("compute", "loss", "loss");
  b.fetch("compute", "grad_norm", "one");
  b.block("update");
  b.fill("compute", static_cast<uint64_t>(local * cols), 1, "g");
  builtin(b, "sgd", {local * cols, 0, real(1), 0},
          {{Access::ReadWrite, w, {}}, {Access::Read, g, {}}, {Access::Read, lr, {}}});
  b.call("compute", "count", {"one", "one", "step"});
  b.run("train", "loss");
  b.run("train", "update");
  b.run("eval", "loss");
  return b.program;
}

Layout rowsOver(uint32_t ranks, int64_t height, int64_t width) {
  Layout layout{{height, width}, {height / ranks, width}, {}};
  for (uint32_t r = 0; r < ranks; ++r)
    layout.parts.push_back({{int64_t(r) * layout.local[0], 0}, layout.local, {r}});
  return layout;
}

} // namespace

Bundle par::toy::training(uint32_t ranks) {
  Bundle bundle;
  bundle.programs = {programOf(ranks)};
  Manifest &m = bundle.manifest;
  m.planHash = sha256("plan of " + std::to_string(ranks));
  m.model = {"squares.onnx", 0, sha256("")};
  m.roles = 1;
  m.peak = {{bundle.programs[0].arena.state, bundle.programs[0].arena.pool, 0}};
  m.mesh = {{"dp", ranks}};
  std::vector<uint32_t> all;
  for (uint32_t r = 0; r < ranks; ++r) {
    m.ranks.push_back({0, {r}});
    all.push_back(r);
  }
  m.communicators = {{"dp", {all}}};
  Layout scalar{{1}, {1}, {{{0}, {1}, all}}};
  m.tensors = {{"w",
                TensorKind::Parameter,
                "",
                DType::F32,
                {rows, cols},
                rowsOver(ranks, rows, cols),
                {InitRule::Normal, 1, 0.1},
                std::nullopt},
               {"step", TensorKind::Counter, "", DType::F32, {1}, scalar, {InitRule::Constant, 0, 0}, std::nullopt}};
  for (const char *name : {"input_ids", "labels"})
    m.inputs.push_back(
        {name, DType::I64, {2 * ranks, sequence}, true, rowsOver(ranks, 2 * ranks, sequence), {{1, 128}}});
  m.inputs[1].limits[0].ignored = -100;
  m.outputs = {{"loss", DType::F32, {1}, true, all}, {"grad_norm", DType::F32, {1}, true, all}};
  m.hypers = {{"lr", 0.1}};
  m.text = TextFeed{"input_ids", "labels", TextFeed::Next};
  m.batch = 2 * ranks;
  return bundle;
}
