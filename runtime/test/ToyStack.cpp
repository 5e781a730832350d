// Programs as a compiler would emit them.
#include "ToyBundles.h"

#include "par/format/Sha256.h"

#include <algorithm>
#include <tuple>

using namespace par::format;
using namespace par::toy;

namespace {
/// A run of a block at a time of the simulated step; communication first where times are equal.
struct Timed {
  int64_t time;
  int kind;
  uint32_t id;
  std::string block;
  int64_t microbatch;
};

class StackBuilder {
public:
  explicit StackBuilder(const Stack &stack);
  Program stage(uint32_t s);
  uint32_t rank(uint32_t stage, uint32_t dp, uint32_t tp) const { return (stage * stack.dp + dp) * stack.tp + tp; }
  Manifest manifest(const std::vector<Program> &programs) const;

private:
  void simulate();
  void buffers(ProgramBuilder &b, uint32_t s);
  void forward(ProgramBuilder &b, uint32_t s);
  void backward(ProgramBuilder &b, uint32_t s, bool first, bool last);
  void transfers(ProgramBuilder &b, uint32_t s);
  void order(ProgramBuilder &b, uint32_t s);
  std::string queue(const char *name) const { return stack.oneQueue ? "compute" : name; }
  void signal(ProgramBuilder &b, const char *on, const std::string &event);
  void wait(ProgramBuilder &b, const char *on, const std::string &event);

  const Stack &stack;
  std::vector<std::vector<int64_t>> forwardEnd, backwardEnd; ///< [stage][microbatch]
};
} // namespace

/// 1F1B: stage s runs S - s forwards ahead; a forward takes 1, a backward 2, transfers nothing.
void StackBuilder::simulate() {
  uint32_t S = stack.stages, M = stack.microbatches;
  forwardEnd.assign(S, std::vector<int64_t>(M, -1));
  backwardEnd = forwardEnd;
  std::vector<uint32_t> f(S), b(S);
  std::vector<int64_t> now(S);
  for (uint32_t left = 2 * S * M; left;) {
    for (uint32_t s = 0; s < S; ++s) {
      bool goForward = f[s] < M && f[s] < b[s] + (S - s);
      const auto &needs = goForward ? forwardEnd : backwardEnd;
      uint32_t m = goForward ? f[s] : b[s];
      if (m >= M)
        continue;
      bool edge = goForward ? s == 0 : s + 1 == S;
      int64_t ready = goForward ? (edge ? 0 : needs[s - 1][m]) : edge ? forwardEnd[s][m] : needs[s + 1][m];
      if (ready < 0)
        continue;
      now[s] = std::max(now[s], ready) + (goForward ? 1 : 2);
      (goForward ? forwardEnd : backwardEnd)[s][m] = now[s];
      ++(goForward ? f : b)[s];
      --left;
    }
  }
}

StackBuilder::StackBuilder(const Stack &stack) : stack(stack) { simulate(); }

void StackBuilder::signal(ProgramBuilder &b, const char *on, const std::string &event) {
  if (!stack.oneQueue)
    b.signal(on, event);
}

void StackBuilder::wait(ProgramBuilder &b, const char *on, const std::string &event) {
  if (!stack.oneQueue)
    b.wait(on, event);
}

void StackBuilder::buffers(ProgramBuilder &b, uint32_t s) {
  for (uint32_t l = 0; l < stack.layers; ++l)
    b.buffer("p" + std::to_string(l), BufferKind::State, {16, 16}, Index::None, 1,
             "w" + std::to_string(s * stack.layers + l));
  uint32_t depth = std::min(stack.microbatches, stack.stages - s + 1);
  for (uint32_t l = 0; l <= stack.layers; ++l)
    b.buffer("x" + std::to_string(l), s == 0 && l == 0 ? BufferKind::Input : BufferKind::Temp, {4, 16}, Index::Mb,
             depth);
  b.buffer("gin", BufferKind::Temp, {4, 16}, Index::Mb, std::min(2u, stack.microbatches));
  b.buffer("gout", BufferKind::Temp, {4, 16}, Index::Mb, std::min(2u, stack.microbatches));
  for (const char *name : {"t1", "t2", "t3"})
    b.buffer(name, BufferKind::Temp, {4, 16});
  for (uint32_t l = 0; l < stack.layers; ++l)
    b.buffer("g" + std::to_string(l), BufferKind::Temp, {16, 16});
  b.comm("tp", "compute"), b.comm("dp", queue("dp")), b.comm("pf", queue("pf")), b.comm("pb", queue("pb"));
  // Events of a buffer have its depth: a wait for the last user of a slot sees that slot's last signal.
  for (const char *name : {"xin", "xfree", "out", "sent"})
    b.event(name, Index::Mb, depth);
  for (const char *name : {"gin", "gfree", "gout", "gsent"})
    b.event(name, Index::Mb, std::min(2u, stack.microbatches));
  b.event("bucket"), b.event("reduced");
}

void StackBuilder::forward(ProgramBuilder &b, uint32_t s) {
  bool last = s + 1 == stack.stages;
  b.block("forward");
  if (s == 0)
    b.feed("compute", "x", "x0");
  else
    wait(b, "compute", "xin");
  if (!last)
    wait(b, "compute", "sent");
  for (uint32_t l = 0; l < stack.layers; ++l) {
    std::string x = "x" + std::to_string(l), y = "x" + std::to_string(l + 1);
    b.kernel("compute", "product", {"r " + x, "r p" + std::to_string(l), "w t1"});
    b.collective("compute", "tp", CollKind::AllReduce, 64, "t1", 100 + l);
    b.kernel("compute", "add", {"r " + x, "r t1", "w " + y});
  }
  if (last)
    b.fetch("compute", "y", "x" + std::to_string(stack.layers));
  else
    signal(b, "compute", "out");
}

void StackBuilder::backward(ProgramBuilder &b, uint32_t s, bool first, bool last) {
  b.block(first ? "backward.first" : last ? "backward.last" : "backward");
  if (s + 1 == stack.stages) {
    b.kernel("compute", "loss", {"r x" + std::to_string(stack.layers), "w t2"});
  } else {
    wait(b, "compute", "gin");
    b.copy("compute", 64, "gin", "t2");
    signal(b, "compute", "gfree");
  }
  uint32_t bucket = 0;
  for (uint32_t l = stack.layers; l-- > 0;) {
    std::string n = std::to_string(l);
    b.kernel("compute", first ? "gradient.first" : "gradient", {"r x" + n, "r t2", (first ? "w g" : "acc g") + n});
    ++bucket;
    if (last && (bucket == 2 || l == 0)) {
      signal(b, "compute", "bucket");
      wait(b, queue("dp").c_str(), "bucket");
      if (bucket > 1)
        b.group(queue("dp"), bucket);
      for (uint32_t k = l + bucket; k-- > l;)
        b.collective(queue("dp"), "dp", CollKind::AllReduce, 256, "g" + std::to_string(k), 200 + s * stack.layers + k);
      bucket = 0;
    }
    b.kernel("compute", "product.t", {"r t2", "r p" + n, "w t3"});
    b.collective("compute", "tp", CollKind::AllReduce, 64, "t3", 300 + l);
    b.kernel("compute", "add.in", {"r t3", "rw t2"});
  }
  if (s > 0) {
    signal(b, "compute", "xfree");
    wait(b, "compute", "gsent");
    b.copy("compute", 64, "t2", "gout");
    signal(b, "compute", "gout");
  } else {
    b.fetch("compute", "gx", "t2"); // so that the last matmul is used
  }
  if (last)
    signal(b, queue("dp").c_str(), "reduced");
}

void StackBuilder::transfers(ProgramBuilder &b, uint32_t s) {
  std::string out = "x" + std::to_string(stack.layers);
  auto block = [&](const char *name, const char *on, const char *before, const char *after, auto emit) {
    b.block(name);
    wait(b, on, before);
    emit(queue(on));
    signal(b, on, after);
  };
  if (s + 1 < stack.stages) {
    block("sendact", "pf", "out", "sent", [&](const std::string &q) { b.send(q, "pf", s + 1, 64, out, 10 + s); });
    block("recvgrad", "pb", "gfree", "gin", [&](const std::string &q) { b.recv(q, "pb", s + 1, 64, "gin", 20 + s); });
  }
  if (s > 0) {
    block("recvact", "pf", "xfree", "xin", [&](const std::string &q) { b.recv(q, "pf", s - 1, 64, "x0", 9 + s); });
    block("sendgrad", "pb", "gout", "gsent", [&](const std::string &q) { b.send(q, "pb", s - 1, 64, "gout", 19 + s); });
  }
  b.block("update");
  wait(b, "compute", "reduced");
  for (uint32_t l = 0; l < stack.layers; ++l)
    b.kernel("compute", "descend", {"r g" + std::to_string(l), "rw p" + std::to_string(l)});
}

/// The restriction of one global order: transfers at their producer's end, blocks at their start.
void StackBuilder::order(ProgramBuilder &b, uint32_t s) {
  std::vector<Timed> runs;
  uint32_t M = stack.microbatches;
  for (uint32_t m = 0; m < M; ++m) {
    runs.push_back({forwardEnd[s][m] - 1, 1, m, "forward", m});
    runs.push_back({backwardEnd[s][m] - 2, 1, M + m,
                    m == 0       ? "backward.first"
                    : m + 1 == M ? "backward.last"
                                 : "backward",
                    m});
    if (s + 1 < stack.stages) {
      runs.push_back({forwardEnd[s][m], 0, s, "sendact", m});
      runs.push_back({backwardEnd[s + 1][m], 0, stack.stages + s + 1, "recvgrad", m});
    }
    if (s > 0) {
      runs.push_back({forwardEnd[s - 1][m], 0, s - 1, "recvact", m});
      runs.push_back({backwardEnd[s][m], 0, stack.stages + s, "sendgrad", m});
    }
  }
  std::sort(runs.begin(), runs.end(), [](const Timed &x, const Timed &y) {
    return std::tie(x.time, x.kind, x.id, x.microbatch) < std::tie(y.time, y.kind, y.id, y.microbatch);
  });
  for (const Timed &run : runs)
    b.run("train", run.block, run.microbatch);
  b.run("train", "update");
}

Program StackBuilder::stage(uint32_t s) {
  ProgramBuilder b("stage" + std::to_string(s), stack.oneQueue ? std::vector<std::string>{"compute"}
                                                               : std::vector<std::string>{"compute", "pf", "pb", "dp"});
  buffers(b, s);
  forward(b, s);
  backward(b, s, true, false);
  backward(b, s, false, false);
  backward(b, s, false, true);
  transfers(b, s);
  order(b, s);
  return b.program;
}

Manifest StackBuilder::manifest(const std::vector<Program> &programs) const {
  Manifest m;
  m.planHash = sha256("toy stack");
  m.model = {"toy.onnx", 0, sha256("")};
  m.roles = stack.stages;
  for (const Program &program : programs)
    m.peak.push_back({program.arena.state, program.arena.pool, 0});
  m.mesh = {{"pp", stack.stages}, {"dp", stack.dp}, {"tp", stack.tp}};
  RankGroups::Lists tp, dp, pf;
  std::vector<std::vector<uint32_t>> ofStage(stack.stages);
  for (uint32_t s = 0; s < stack.stages; ++s)
    for (uint32_t d = 0; d < stack.dp; ++d)
      for (uint32_t t = 0; t < stack.tp; ++t) {
        m.ranks.push_back({s, {s, d, t}});
        ofStage[s].push_back(rank(s, d, t));
      }
  auto line = [&](RankGroups::Lists &groups, uint32_t n, auto of) {
    std::vector<uint32_t> group;
    for (uint32_t i = 0; i < n; ++i)
      group.push_back(of(i));
    groups.push_back(std::move(group));
  };
  for (uint32_t s = 0; s < stack.stages; ++s)
    for (uint32_t d = 0; d < stack.dp; ++d)
      line(tp, stack.tp, [&](uint32_t i) { return rank(s, d, i); });
  for (uint32_t s = 0; s < stack.stages; ++s)
    for (uint32_t t = 0; t < stack.tp; ++t)
      line(dp, stack.dp, [&](uint32_t i) { return rank(s, i, t); });
  for (uint32_t d = 0; d < stack.dp; ++d)
    for (uint32_t t = 0; t < stack.tp; ++t)
      line(pf, stack.stages, [&](uint32_t i) { return rank(i, d, t); });
  m.communicators = {{"tp", tp}, {"dp", dp}, {"pf", pf}, {"pb", pf}};
  // Dim 0 in `count` parts.
  auto cut = [](std::vector<int64_t> local, uint32_t count, auto partOf, const std::vector<uint32_t> &ranks) {
    Layout layout{local, local, {}};
    layout.shape[0] *= count;
    for (uint32_t part = 0; part < count; ++part) {
      layout.parts.push_back({{int64_t(part) * local[0], 0}, local, {}});
      for (uint32_t rank : ranks)
        if (partOf(rank) == part)
          layout.parts.back().ranks.push_back(rank);
    }
    return layout;
  };
  auto rows = [&](const std::vector<uint32_t> &ranks) {
    return cut({4, 16}, stack.dp, [&](uint32_t rank) { return rank / stack.tp % stack.dp; }, ranks);
  };
  for (uint32_t p = 0; p < stack.stages * stack.layers; ++p)
    m.tensors.push_back(
        {"w" + std::to_string(p),
         TensorKind::Parameter,
         "",
         DType::F32,
         {16 * int64_t(stack.tp), 16},
         cut(
             {16, 16}, stack.tp, [&](uint32_t rank) { return rank % stack.tp; }, ofStage[p / stack.layers]),
         {InitRule::Normal, 0, 0.1},
         std::nullopt});
  m.microbatches = stack.microbatches;
  m.batch = 4 * stack.dp * stack.microbatches;
  m.inputs = {{"x", DType::F32, {int64_t(m.batch), 16}, true, rows(ofStage[0])}};
  m.outputs = {{"y", DType::F32, {4 * int64_t(stack.dp), 16}, false, ofStage.back(), false, rows(ofStage.back())},
               {"gx", DType::F32, {4 * int64_t(stack.dp), 16}, false, ofStage[0], false, rows(ofStage[0])}};
  return m;
}

Bundle par::toy::stack(const Stack &stack) {
  StackBuilder builder(stack);
  Bundle bundle;
  for (uint32_t s = 0; s < stack.stages; ++s)
    bundle.programs.push_back(builder.stage(s));
  bundle.manifest = builder.manifest(bundle.programs);
  return bundle;
}
