// V5: every value is read. A compiler emits no unused work, so an unused value shows that its reader is missing: a
// summand that was not added, a run that was left out, an operand that names something else. Two kinds may be unused:
// numbers made only of counters and hyperparameters, once for each stage, if a stage updates nothing; and values
// without bytes.
#include "JointRun.h"

using namespace par;
using namespace par::format;
using namespace par::verify;

/// Zeros after the last row may be unused: a reader of padded rows may take only the rows. An input that the model does
/// not read may be unused, too.
static bool isWork(const Instruction &it) { return it.op == Op::Kernel || it.op == Op::Call; }

std::optional<Counterexample> par::verify::checkUnread(const JointRun &joint, Uses &uses) {
  for (const Cursor &player : joint.players) {
    std::map<std::array<uint32_t, 4>, std::pair<const Made *, const Made *>> found; // read, unread
    for (size_t i = 1; i < player.made.size(); ++i) {
      const Made &made = player.made[i];
      const Instruction &it = joint.instruction(player, made);
      if (!isWork(it) || player.program->buffers[it.operands[made.operand].buffer].bytes() == 0)
        continue;
      std::array<uint32_t, 4> place{player.role, made.run->block, made.n, made.operand};
      bool stays = player.program->buffers[it.operands[made.operand].buffer].kind == BufferKind::State;
      bool read = stays || made.read || made.counts;
      uses[place] |= read;
      (read ? found[place].first : found[place].second) = &made;
    }
    for (const auto &[place, some] : found)
      if (some.first && some.second)
        return Counterexample{Property::Value,
                              "unread: what microbatch " + std::to_string(some.second->run->microbatch) +
                                  " makes is never read in entry " + joint.entry + ", that of microbatch " +
                                  std::to_string(some.first->run->microbatch) + " is",
                              {joint.line(player, *some.second->run, some.second->n)}};
  }
  return std::nullopt;
}

std::optional<Counterexample> par::verify::checkUseless(const Bundle &bundle, const Uses &uses) {
  for (auto it = uses.begin(); it != uses.end();) {
    auto [role, block, n, operand] = it->first;
    bool any = false;
    for (; it != uses.end() && it->first[0] == role && it->first[1] == block && it->first[2] == n; ++it)
      any |= it->second;
    if (any)
      continue;
    uint32_t rank = 0;
    while (bundle.manifest.ranks[rank].role != role)
      ++rank;
    Run run;
    run.block = block;
    return Counterexample{Property::Value,
                          "unread: nothing of what an instruction makes is ever read",
                          {describeStep(bundle, rank, run, n)}};
  }
  return std::nullopt;
}
