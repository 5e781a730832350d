// Mutates a bundle and holds par-verify and the device `sim` against each other.
#include "SimulateMany.h"
#include "ToyBundles.h"
#include "par/verify/Verify.h"

#include <cstdio>
#include <cstdlib>

using namespace par;

/// judge BUNDLE|--toys [COUNT=1000] [SEED=1] [INTERLEAVINGS=20] [both]. Exit status 0: they never disagree on
/// an accepted program.
int main(int argc, char **argv) {
  if (argc < 2)
    return std::fputs("usage: judge BUNDLE|--toys [COUNT=1000] [SEED=1] [INTERLEAVINGS=20] [both]\n", stderr), 2;
  auto number = [&](int at, uint64_t otherwise) {
    return argc > at ? std::strtoull(argv[at], nullptr, 10) : otherwise;
  };
  uint64_t count = number(2, 1000), seed = number(3, 1);
  sim::Options options{seed, static_cast<uint32_t>(number(4, 20))};
  std::string name = argv[1];
  std::vector<format::Bundle> bundles = {toy::pipeline(2), toy::halves(),    toy::allReduce(3),
                                         toy::groups(),    toy::pipeline(1), toy::offloaded()};
  if (name != "--toys") {
    format::Expected<format::Bundle> read = format::readPrograms(name);
    if (!read)
      return std::fprintf(stderr, "%s: error: %s\n", name.c_str(), read.message().c_str()), 1;
    bundles = {std::move(*read)};
  }
  bool disagree = false;
  for (const format::Bundle &bundle : bundles) {
    toy::Judgement judgement =
        toy::judgeMany(bundle, name == "--toys" ? "toy.par" : name, count / bundles.size(), seed, options, argc > 5);
    std::printf("seed %llu, %u interleavings\n%s", static_cast<unsigned long long>(seed), options.interleavings,
                toy::format(judgement).c_str());
    disagree = disagree || !judgement.disagreements.empty();
  }
  return disagree ? 3 : 0;
}
