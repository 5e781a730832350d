// Mutates a bundle and counts what par-verify rejects.
#include "Mutations.h"
#include "ToyBundles.h"
#include "par/verify/Verify.h"

#include <cstdio>
#include <cstdlib>

using namespace par;

/// mutations BUNDLE|--toys [COUNT] [SEED] [FOLDER]. With a folder, mutants are judged from files there. Exit
/// status 0: every effective mutation was rejected.
int main(int argc, char **argv) {
  if (argc < 2)
    return std::fputs("usage: mutations BUNDLE|--toys [COUNT=1000] [SEED=1] [FOLDER]\n", stderr), 2;
  uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000;
  uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  std::string name = argv[1];
  std::vector<format::Bundle> bundles = {toy::pipeline(2),
                                         toy::allReduce(3),
                                         toy::groups(),
                                         toy::halves(),
                                         toy::offloaded(),
                                         toy::stack({}),
                                         toy::stack({3, 2, 2, 6, 3, true}),
                                         toy::pipeline(1),
                                         toy::stack({4, 1, 1, 8, 2, true}),
                                         toy::stack({4, 1, 1, 8, 2})};
  if (name != "--toys") {
    format::Expected<format::Bundle> read = format::readPrograms(name);
    if (!read)
      return std::fprintf(stderr, "%s: error: %s\n", name.c_str(), read.message().c_str()), 1;
    bundles = {std::move(*read)};
  }
  bool escaped = false;
  for (const format::Bundle &bundle : bundles) {
    verify::Verdict verdict = verify::verifyBundle(bundle);
    std::fputs(verify::format(verdict, name).c_str(), stdout);
    if (!verdict)
      return 3;
    toy::Tally tally = toy::mutateMany(bundle, count, seed, argc > 4 ? argv[4] : "");
    std::printf("seed %llu\n%s", static_cast<unsigned long long>(seed), toy::format(tally).c_str());
    escaped = escaped || !tally.escaped.empty();
  }
  return escaped ? 3 : 0;
}
