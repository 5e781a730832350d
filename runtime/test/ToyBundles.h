// Small valid bundles, built by hand for tests. They use matmuls, copies, fills and communication only: no kernel
// library is needed to run them.
#pragma once

#include "par/format/Bundle.h"

namespace par::toy {

/// Writes programs line by line; names are looked up (a missing one aborts the test).
class ProgramBuilder {
public:
  format::Program program;

  explicit ProgramBuilder(std::string name, std::vector<std::string> queues);
  /// Places the buffer after all others of its kind (state first: add state buffers before any other).
  uint32_t buffer(std::string name, format::BufferKind kind, std::vector<int64_t> shape,
                  format::Index index = format::Index::None, uint32_t depth = 1, std::string tensor = "");
  /// Dense f32 elements of another buffer, from byte `offset` of each slot on.
  uint32_t alias(std::string name, const std::string &of, std::vector<int64_t> shape, uint64_t offset);
  void comm(std::string name, std::string queue);
  void event(std::string name, format::Index index = format::Index::None, uint32_t depth = 1);
  /// Row-major f32 matmul with dense operands; C [m,n] = alpha op(A) op(B) + beta C.
  void product(std::string name, int64_t m, int64_t n, int64_t k, bool transA, bool transB, double alpha, double beta);

  /// Blocks are filled by the calls below until the next block().
  void block(std::string name);
  format::Instruction &call(std::string queue, std::string call, std::vector<std::string> args);
  /// A kernel of the name, added to the table when new. Arguments as in the file: "r x", "acc g".
  format::Instruction &kernel(std::string queue, std::string name, std::vector<std::string> args);
  format::Instruction &collective(std::string queue, std::string comm, format::CollKind kind, uint64_t n,
                                  std::string arg, uint64_t tag);
  format::Instruction &send(std::string queue, std::string comm, uint32_t peer, uint64_t n, std::string arg,
                            uint64_t tag);
  format::Instruction &recv(std::string queue, std::string comm, uint32_t peer, uint64_t n, std::string arg,
                            uint64_t tag);
  format::Instruction &copy(std::string queue, uint64_t n, std::string from, std::string to);
  format::Instruction &fill(std::string queue, uint64_t n, double value, std::string to);
  format::Instruction &group(std::string queue, uint64_t n);
  void signal(std::string queue, std::string event);
  void wait(std::string queue, std::string event);
  void feed(std::string queue, std::string name, std::string to);
  void fetch(std::string queue, std::string name, std::string from);
  /// "forward 0".
  void run(std::string entry, std::string block, int64_t microbatch = 0);

private:
  format::Instruction &add(format::Op op, const std::string &queue);
  void operand(format::Instruction &it, format::Access access, const std::string &name);
};

/// One role, `ranks` ranks. Entry train: feeds x [ranks, 8] (one row a rank), y = x; all_reduce sum y;
/// total += y; fetches y. State: total [8], starting from 0.
format::Bundle allReduce(uint32_t ranks = 2);

/// Two stages of `width` copies each, 1F1B with 4 microbatches; rank = stage * width + copy. Width 4.
/// Stage 0: act = x w0; stage 1: out = act w1, g1 += act^T out, gact = out w1^T; stage 0: g0 += x^T gact.
/// Then, for width > 1, an all_reduce of g0 and g1 over `dp`, on its own queue, and w -= 0.1 g.
/// x is [8 * width, 4]: each microbatch 2 rows a copy. Fetches out of the last microbatch.
format::Bundle pipeline(uint32_t width = 1);

/// One role, `ranks` ranks, three microbatches: x is fed into the low half of a pair, whose high half is filled with 2;
/// the low half is reduced on its own queue while the high one is filled, then total += pair, half by half. Everything
/// but the fetch goes through aliases.
format::Bundle halves(uint32_t ranks = 2);

/// One role, two ranks, one group of two all_reduces and a group that exchanges a value by send and receive.
format::Bundle groups();

/// Programs as a compiler would emit them for a stack of sharded layers: a role a stage, 1F1B, reductions over `tp`
/// inside the blocks with shared scratch, sends and receives on their own queues, gradient buckets over `dp` as groups
/// on their queue in the last backward. Ranks in the order stage, dp, tp. The kernels exist in name only.
struct Stack {
  uint32_t stages = 2, dp = 2, tp = 2, microbatches = 4, layers = 2;
  /// Everything on one queue, without events.
  bool oneQueue = false;
};
format::Bundle stack(const Stack &stack);

/// A bundle of one program on one rank, without tensors, inputs and outputs.
format::Bundle alone(format::Program program);

/// One rank: a step copies the state m from the host's memory, adds x w to it, copies it back beside what makes w of
/// it, and fetches that as y.
format::Bundle offloaded();

/// One rank, three batches of two microbatches, each with an update: w -= lr g. The second and third begin with the
/// weights of one update ago, which the update has copied aside.
format::Bundle delayed();

} // namespace par::toy
