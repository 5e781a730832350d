#include "par/Simulator/Simulator.h"

using namespace par;

/// The sum over ranks of one part of their time, in 1/1000 of all.
static int64_t share(const Simulation &simulation, int64_t RankTime::*part) {
  __int128 sum = 0, all = static_cast<__int128>(simulation.step) * simulation.ranks.size();
  for (const RankTime &rank : simulation.ranks)
    sum += rank.*part;
  return all == 0 ? 0 : static_cast<int64_t>((sum * 1000 + all / 2) / all);
}

llvm::ArrayRef<PlayedInstruction> Simulation::instructionsOf(uint32_t rank) const {
  size_t begin = classBegins[classOf[rank]], end = classBegins[classOf[rank] + 1];
  return llvm::ArrayRef(instructions).slice(begin, end - begin);
}

int64_t Simulation::computePermille() const { return share(*this, &RankTime::compute); }
int64_t Simulation::bubblePermille() const { return share(*this, &RankTime::idle); }
int64_t Simulation::corePermille() const { return share(*this, &RankTime::core); }
int64_t Simulation::communicationPermille() const { return share(*this, &RankTime::communication); }

std::array<int64_t, 3> Simulation::sourcePermille() const {
  std::vector<int64_t> ranksOf(classBegins.size());
  for (uint32_t ofRank : classOf)
    ++ranksOf[ofRank];
  std::array<__int128, 3> sums{};
  for (size_t number = 0; number + 1 < classBegins.size(); ++number)
    for (size_t at = classBegins[number]; at < classBegins[number + 1]; ++at)
      sums[static_cast<size_t>(instructions[at].source)] +=
          static_cast<__int128>(instructions[at].duration) * ranksOf[number];
  __int128 all = sums[0] + sums[1] + sums[2];
  std::array<int64_t, 3> shares{};
  for (size_t i = 0; i < shares.size() && all > 0; ++i)
    shares[i] = static_cast<int64_t>((sums[i] * 1000 + all / 2) / all);
  return shares;
}

int64_t Simulation::peakLive(uint32_t role) const {
  int64_t most = 0;
  for (const MemorySample &sample : memory[role])
    most = std::max(most, sample.bytes);
  return most;
}
