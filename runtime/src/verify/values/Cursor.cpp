#include "Cursor.h"

#include <algorithm>

using namespace par::format;
using namespace par::verify;

std::vector<std::pair<uint32_t, uint32_t>> Cursor::usersOf(uint32_t of) const {
  std::vector<std::pair<uint32_t, uint32_t>> users;
  for (uint32_t use = made[made[of].family].uses; use; use = uses[use].before)
    if (uses[use].from <= of && of < uses[use].to)
      users.push_back({uses[use].first, uses[use].end});
  std::reverse(users.begin(), users.end());
  return users;
}

void Cursor::noteUsers(const Content &content, size_t first) {
  uint32_t begin = uint32_t(first), end = uint32_t(made.size());
  for (size_t i = 0; i < content.size();) {
    uint32_t from = content[i].made, to = from + 1, family = made[from].family;
    for (++i; i < content.size() && content[i].made == to && made[to].family == family; ++i)
      ++to;
    if (from == 0)
      continue;
    uint32_t &last = made[family].uses;
    Use &use = uses[last];
    bool again = last && use.first == begin && use.end == end;
    if (again && from == use.to)
      use.to = to;
    else if (!again || from < use.from || to > use.to) {
      uses.push_back({from, to, begin, end, last});
      last = uint32_t(uses.size() - 1);
    }
  }
}

bool Cursor::addsUp(const Run &run, const Content &content, bool inPlace) const {
  return anyFamily(content, [&](const Made &it) {
    const Buffer &buffer = program->buffers[instruction(it).operands[it.operand].buffer];
    bool kept = buffer.kind == BufferKind::Temp && buffer.index == Index::None;
    return kept && ((inPlace && it.adds) || (own[it.run->block] && it.run->microbatch < run.microbatch));
  });
}

void Cursor::noteWritten(bool computes, uint32_t buffer, uint32_t slot, uint64_t begin, uint64_t bytes) {
  std::vector<Written> &list = state[{buffer, slot}];
  std::vector<Written> after;
  uint64_t at = begin, end = begin + bytes;
  auto add = [&](uint64_t from, uint64_t to, const Written &before, bool here) {
    if (from < to)
      after.push_back({from, to, before.computed + (here && computes), before.moved + (here && !computes)});
  };
  for (const Written &before : list) {
    add(before.begin, std::min(before.end, begin), before, false);
    if (before.end > begin && before.begin < end) {
      add(at, std::max(before.begin, begin), {}, true);
      at = std::min(before.end, end);
      add(std::max(before.begin, begin), at, before, true);
    }
    if (before.begin >= end && at < end)
      add(at, end, {}, true), at = end;
    add(std::max(before.begin, end), before.end, before, false);
  }
  add(at, end, {}, true);
  list = std::move(after);
}
