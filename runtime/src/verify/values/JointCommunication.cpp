// Receives give the expressions that were sent. The k-th collective of a player on a communicator is the k-th of all
// others whose ranks are in its ranks' groups, its party; the k-th send from member i to j is the k-th receive of j
// from i: V2 has compared them. A received value has the sender's expression, and the class of the sender's data.
#include "JointRun.h"
#include "verify/Names.h"

#include <algorithm>
#include <numeric>

using namespace par;
using namespace par::format;
using namespace par::verify;

/// The players that wait for each other on each communicator.
void JointRun::meet() {
  routes.readGroups();
  for (const Communicator &comm : bundle.manifest.communicators) {
    JointComm &meeting = meetings.emplace_back();
    std::vector<uint32_t> leader(players.size());
    std::iota(leader.begin(), leader.end(), 0);
    auto find = [&](uint32_t player) {
      while (leader[player] != player)
        player = leader[player] = leader[leader[player]];
      return player;
    };
    for (const std::vector<uint32_t> &group : comm.groups)
      for (uint32_t rank : group)
        leader[find(playerOf[rank])] = find(playerOf[group[0]]);
    meeting.parties.resize(players.size());
    for (uint32_t player = 0; player < players.size(); ++player)
      for (uint32_t other = 0; other < players.size(); ++other)
        if (find(player) == find(other))
          meeting.parties[player].push_back(other);
    meeting.ranks.resize(players.size());
    meeting.posts.resize(players.size());
    meeting.taken.resize(players.size());
  }
}

std::optional<Counterexample> JointRun::give(uint32_t index, const Run &run, uint32_t n) {
  Cursor &player = players[index];
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  uint32_t comm = stepOf(player, run, n).comm;
  uint64_t bytes = it.n * sizeOf(it.type), all = bytes * routes.membersOf(comm, player.ranks.front());
  if (it.op == Op::Send)
    read(player, run, n, 0, bytes,
         sent[{comm, index, it.peer[uint64_t(run.microbatch) % it.peer.size()]}].emplace_back());
  if (it.op != Op::Coll)
    return std::nullopt;
  bool inPlace = it.operands.size() == 1;
  bool parted = it.coll == CollKind::ReduceScatter || it.coll == CollKind::AllToAll ||
                (it.coll == CollKind::AllGather && inPlace);
  bool gives = it.coll != CollKind::Broadcast ||
               std::ranges::any_of(player.ranks, [&](uint32_t rank) { return routes.memberOf(comm, rank) == it.root; });
  Content content;
  if (gives)
    read(player, run, n, 0, parted ? all : bytes, content);
  else
    content = whole({}, bytes);
  Found found = gives ? this->gives(index, run, n, content) : std::nullopt;
  meetings[comm].posts[index].push_back({&run, n, std::move(content)});
  return found;
}

bool JointRun::complete(uint32_t index, const Run &run, uint32_t n, std::map<uint64_t, size_t> &ahead) {
  const Cursor &player = players[index];
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  if (it.op == Op::Send)
    return true;
  uint32_t comm = stepOf(player, run, n).comm;
  const JointComm &meeting = meetings[comm];
  if (it.op == Op::Coll) {
    size_t k = meeting.taken[index] + ahead[uint64_t(comm) << 32 | noIndex]++;
    return std::ranges::all_of(meeting.parties[index], [&](uint32_t other) { return meeting.posts[other].size() > k; });
  }
  uint32_t peer = it.peer[uint64_t(run.microbatch) % it.peer.size()];
  size_t k = received[{comm, index, peer}] + ahead[uint64_t(comm) << 32 | peer]++;
  const std::vector<Channel> &channels = routes.sentTo(comm, index, player.ranks, peer).channels;
  return std::ranges::all_of(channels, [&](Channel channel) { return sent[channel].size() > k; });
}

/// If the contents are one expression, that one, on each rank with its own class; otherwise an expression of all of
/// them.
Content JointRun::choose(Sources &from, const std::vector<Content> &given, uint64_t bytes) {
  std::vector<const Content *> contents;
  if (given.empty())
    return whole({}, bytes);
  if (given.size() == 1)
    return move(from, given[0], bytes);
  for (const Content &content : given)
    contents.push_back(&content);
  std::vector<uint64_t> borders = bordersOf(contents);
  std::vector<size_t> place(contents.size());
  Content result;
  for (size_t i = 0; i + 1 < borders.size() && borders[i] < bytes; ++i) {
    std::vector<Spread> spreads;
    uint64_t name = 0;
    uint32_t set = 0;
    Term first = termAt(*contents[0], borders[i], place[0]);
    bool same = true;
    for (size_t which = 0; which < contents.size(); ++which) {
      Term term = termAt(*contents[which], borders[i], place[which]);
      same &= term.name == first.name && term.offset == first.offset;
      name = mix(mix(name, term.name), term.offset);
      set = microbatches.both(set, term.microbatches);
      spreads.push_back(term.spread);
    }
    auto [spread, kept] = from.moved(classes, spreads);
    if (!same)
      spread = classes.both(spread, from.apart(classes));
    Term term = same ? Term{first.name, first.offset, spread, set} : Term{name, 0, spread, set};
    result.push_back({borders[i], std::min(borders[i + 1], bytes), arrived(from, term, kept), 0});
  }
  return result;
}

/// A term on the other side of a communication, where ranks have kept their classes or have not.
Term JointRun::arrived(const Sources &from, Term term, bool kept) {
  if (kept || term.name <= zerosTerm)
    return term;
  bool old = initial.count(term.name) > 0;
  term.name = mix(term.name, from.number);
  if (old)
    initial.insert(term.name);
  return term;
}

/// One expression, on each rank with its own class.
Content JointRun::move(Sources &from, const Content &given, uint64_t bytes) {
  Content result;
  result.reserve(given.size());
  for (const Piece &piece : given) {
    if (piece.begin >= bytes)
      break;
    auto [spread, kept] = from.moved(classes, piece.term.spread);
    Term term{piece.term.name, piece.term.offset, spread, piece.term.microbatches};
    result.push_back({piece.begin, std::min(piece.end, bytes), arrived(from, term, kept), 0});
  }
  return result;
}

void JointRun::receive(uint32_t index, const Run &run, uint32_t n) {
  Cursor &player = players[index];
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  uint32_t comm = stepOf(player, run, n).comm, peer = it.peer[uint64_t(run.microbatch) % it.peer.size()];
  uint64_t bytes = it.n * sizeOf(it.type);
  size_t k = received[{comm, index, peer}]++;
  Sources &from = routes.sentTo(comm, index, player.ranks, peer);
  std::vector<Content> given;
  for (const Channel &channel : from.channels)
    given.push_back(sent[channel][k]);
  Content content = choose(from, given, bytes);
  write(player, run, n, 0, 0, bytes, content);
}

/// The content that `member` of each group gives, from a byte on.
Content JointRun::gathered(uint32_t index, uint32_t comm, size_t k, uint32_t member, uint64_t offset, uint64_t bytes) {
  JointComm &meeting = meetings[comm];
  if (meeting.ranks[index].empty()) {
    for (uint32_t other : meeting.parties[index])
      meeting.ranks[index].insert(meeting.ranks[index].end(), players[other].ranks.begin(), players[other].ranks.end());
    std::ranges::sort(meeting.ranks[index]);
  }
  Sources &from = routes.gatheredBy(comm, meeting.parties[index], meeting.ranks[index], member);
  if (from.players.size() == 1) {
    cut(postOf(from.players[0], comm, k).content, offset, offset + bytes, cutting);
    return move(from, cutting, bytes);
  }
  std::vector<Content> given;
  for (uint32_t other : from.players)
    given.push_back(cut(postOf(other, comm, k).content, offset, offset + bytes));
  return choose(from, given, bytes);
}

/// Each piece of each member's part is made by itself.
void JointRun::allGather(uint32_t index, const Run &run, uint32_t n, size_t k) {
  Cursor &player = players[index];
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  uint32_t comm = stepOf(player, run, n).comm, members = routes.membersOf(comm, player.ranks.front());
  uint64_t part = it.n * sizeOf(it.type);
  bool inPlace = it.operands.size() == 1;
  Content all;
  for (uint32_t member = 0; member < members; ++member)
    for (Piece piece : gathered(index, comm, k, member, inPlace ? part * member : 0, part)) {
      piece.begin += part * member, piece.end += part * member;
      all.push_back(piece);
    }
  write(player, run, n, inPlace ? 0 : 1, 0, part * members, all, true);
}

/// Ranks whose groups have the same summands have the same sum.
RankClasses::Spread JointRun::spreadOfSum(uint32_t comm, const std::vector<uint32_t> &party,
                                          const std::vector<Spread> &of) {
  std::vector<uint64_t> key{comm, party.front()};
  key.insert(key.end(), of.begin(), of.end());
  auto [known, fresh] = sums.try_emplace(key, 0);
  if (!fresh)
    return known->second;
  std::vector<RankClasses::Key> keys;
  for (const std::vector<uint32_t> &group : bundle.manifest.communicators[comm].groups) {
    std::vector<std::pair<uint32_t, uint32_t>> members;
    if (!std::ranges::count(party, playerOf[group.front()]))
      continue;
    for (uint32_t rank : group) {
      auto place = size_t(std::ranges::find(party, playerOf[rank]) - party.begin());
      members.push_back({uint32_t(place), classes.classOf(of[place], rank)});
    }
    std::sort(members.begin(), members.end());
    uint64_t name = 3;
    for (auto [place, data] : members)
      name = mix(mix(name, place), data);
    for (uint32_t rank : group)
      keys.push_back({rank, name});
  }
  return known->second = classes.byKeys(keys);
}

std::optional<Counterexample> JointRun::reduced(uint32_t index, uint32_t comm, size_t k, uint64_t offset,
                                                uint64_t bytes, Content &result) {
  const std::vector<uint32_t> &party = meetings[comm].parties[index];
  std::vector<Content> given;
  std::vector<const Content *> contents;
  for (uint32_t other : party)
    given.push_back(cut(postOf(other, comm, k).content, offset, offset + bytes));
  for (const Content &content : given)
    contents.push_back(&content);
  const Post &own = postOf(index, comm, k);
  const Instruction &it = players[index].program->blocks[own.run->block].instructions[own.n];
  std::vector<uint64_t> borders = bordersOf(contents);
  std::vector<size_t> place(contents.size());
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    std::vector<Term> terms;
    std::vector<Spread> spreads;
    uint64_t name = mix(4, uint64_t(it.reduction));
    bool zero = true;
    uint32_t set = 0;
    for (size_t which = 0; which < contents.size(); ++which) {
      Term term = terms.emplace_back(termAt(*contents[which], borders[i], place[which]));
      zero &= term.name == zerosTerm;
      set = microbatches.both(set, term.microbatches);
      name = mix(mix(name, term.name), term.offset - terms[0].offset);
      spreads.push_back(term.spread);
    }
    if (Found found = it.reduction == Reduction::Sum ? summands(comm, k, party, terms) : std::nullopt)
      return found;
    Term sum{name, terms[0].offset, spreadOfSum(comm, party, spreads), set};
    result.push_back({borders[i], borders[i + 1], zero ? Term{zerosTerm, 0, 0, 0} : sum, 0});
  }
  return std::nullopt;
}

/// One value from parts of which each rank has its own.
Term JointRun::ownPart(uint32_t comm, const std::vector<Content> &parts) {
  uint64_t name = 5;
  uint32_t set = 0;
  std::vector<uint64_t> spreads{comm};
  for (const Content &part : parts) {
    Spread spread = 0;
    name = mixContent(name, part, classes, spread);
    for (const Piece &piece : part)
      set = microbatches.both(set, piece.term.microbatches);
    spreads.push_back(spread);
  }
  auto [known, fresh] = parted.try_emplace(spreads, 0);
  if (fresh) {
    std::vector<RankClasses::Key> keys;
    for (uint32_t rank = 0; rank < playerOf.size(); ++rank)
      if (uint32_t member = routes.memberOf(comm, rank); member < parts.size())
        keys.push_back({rank, mix(mix(0, member), classes.classOf(Spread(spreads[1 + member]), rank))});
    known->second = classes.byKeys(keys);
  }
  return {name, 0, known->second, set};
}

std::optional<Counterexample> JointRun::reduceScatter(uint32_t index, const Run &run, uint32_t n, size_t k) {
  Cursor &player = players[index];
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  uint32_t comm = stepOf(player, run, n).comm, members = routes.membersOf(comm, player.ranks.front());
  uint64_t part = it.n * sizeOf(it.type);
  std::vector<Content> parts(members);
  for (uint32_t member = 0; member < members; ++member)
    if (Found found = reduced(index, comm, k, part * member, part, parts[member]))
      return found;
  if (it.operands.size() == 2) {
    writeWhole(player, run, n, 1, 0, part, ownPart(comm, parts));
    return std::nullopt;
  }
  for (uint32_t member = 0; member < members; ++member) {
    if (!routes.membersIn(comm, index, player.ranks)[member])
      parts[member] = whole({}, part);
    write(player, run, n, 0, part * member, part, parts[member]);
  }
  return std::nullopt;
}

std::optional<Counterexample> JointRun::takeCollective(uint32_t index, const Run &run, uint32_t n) {
  Cursor &player = players[index];
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  uint32_t comm = stepOf(player, run, n).comm, members = routes.membersOf(comm, player.ranks.front()),
           result = uint32_t(it.operands.size() - 1);
  uint64_t part = it.n * sizeOf(it.type);
  size_t k = meetings[comm].taken[index]++;
  Content content;
  switch (it.coll) {
  case CollKind::ReduceScatter:
    return reduceScatter(index, run, n, k);
  case CollKind::AllReduce:
  case CollKind::Reduce:
    if (Found found = reduced(index, comm, k, 0, part, content))
      return found;
    write(player, run, n, result, 0, part, content);
    return std::nullopt;
  case CollKind::Broadcast:
    content = gathered(index, comm, k, it.root, 0, part);
    write(player, run, n, result, 0, part, content);
    return std::nullopt;
  case CollKind::AllGather:
    allGather(index, run, n, k);
    return std::nullopt;
  case CollKind::AllToAll:
    break;
  }
  for (uint32_t member = 0; member < members; ++member) {
    std::vector<Content> parts;
    for (uint32_t own = 0; own < members; ++own)
      parts.push_back(gathered(index, comm, k, member, part * own, part));
    writeWhole(player, run, n, result, part * member, part, ownPart(comm, parts));
  }
  return std::nullopt;
}

std::optional<Counterexample> JointRun::take(uint32_t index, const Run &run, uint32_t n) {
  Cursor &player = players[index];
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  if (it.op == Op::Recv)
    receive(index, run, n);
  if (it.op != Op::Coll)
    return std::nullopt;
  uint32_t comm = stepOf(player, run, n).comm;
  const Content &given = postOf(index, comm, meetings[comm].taken[index]).content;
  size_t first = player.made.size();
  player.family = uint32_t(first);
  Found found = takeCollective(index, run, n);
  player.family = 0;
  bool adds = player.addsUp(run, given, true);
  for (size_t i = first; i < player.made.size(); ++i)
    player.made[i].adds = adds;
  if (first < player.made.size())
    player.noteUsers(given, first);
  return found;
}
