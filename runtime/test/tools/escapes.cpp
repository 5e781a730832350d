// Breaks bundles in what they mean, and counts what par-verify takes.
#include "Alike.h"
#include "Simulate.h"
#include "par/verify/Verify.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

using namespace par;

namespace {
/// Sums in another order differ by less.
constexpr double noise = 1e-5;

struct Row {
  unsigned total = 0, rejected = 0, harmless = 0, wrong = 0;
};

struct Options {
  unsigned each = 4, seconds = 20;
  uint64_t seed = 1;
  std::string faults; ///< names, with commas; empty: all
  bool runs = true;   ///< false: what is taken is not run, and counts as wrong
};

/// Breaks one bundle `each` times in each way.
void breakOne(const format::Bundle &bundle, const std::string &folder, const Options &options,
              std::map<toy::Fault, Row> &rows) {
  toy::Random random(options.seed);
  std::optional<toy::Ran> original;
  for (size_t kind = 0; kind < toy::faultKinds; ++kind) {
    auto fault = toy::Fault(kind);
    if (!options.faults.empty() &&
        ("," + options.faults + ",").find("," + std::string(toy::toString(fault)) + ",") == std::string::npos)
      continue;
    unsigned made = 0;
    for (unsigned tries = 0; made < options.each && tries < 20 * options.each; ++tries) {
      std::optional<uint32_t> rank;
      if (made % 4 == 3)
        rank = uint32_t(random.below(bundle.manifest.ranks.size()));
      std::string what;
      std::optional<format::Bundle> broken = toy::breakAlike(bundle, fault, rank, random, what);
      if (!broken)
        continue;
      ++made;
      Row &row = rows[fault];
      ++row.total;
      verify::Verdict verdict = verify::verifyBundle(*broken);
      if (!verdict) {
        ++row.rejected;
        continue;
      }
      double difference = 1;
      if (options.runs) {
        if (!original)
          original = toy::runApart(bundle, folder, 60);
        toy::Ran ran = toy::runApart(*broken, folder, options.seconds);
        difference = ran.trouble.empty() ? toy::largestDifference(*original, ran) : 1e9;
      }
      ++(difference > noise ? row.wrong : row.harmless);
      if (difference > noise)
        std::printf("taken: %s: %s: %.2g\n", folder.c_str(), what.c_str(), difference);
    }
  }
}

void print(const std::map<toy::Fault, Row> &rows) {
  Row all;
  std::printf("%-16s %7s %9s %9s %6s\n", "fault", "mutants", "rejected", "harmless", "wrong");
  auto line = [](const char *name, const Row &row) {
    std::printf("%-16s %7u %9u %9u %6u\n", name, row.total, row.rejected, row.harmless, row.wrong);
  };
  for (const auto &[fault, row] : rows) {
    line(std::string(toy::toString(fault)).c_str(), row);
    all.total += row.total, all.rejected += row.rejected, all.harmless += row.harmless, all.wrong += row.wrong;
  }
  line("all", all);
}
} // namespace

/// escapes [--each N] [--seed S] [--faults NAME,...] [--no-run] BUNDLE... Exit status 0: nothing was taken that
/// computes something else; 3: some was; 1: a bundle is not proved as it is.
int main(int argc, char **argv) {
  Options options;
  std::vector<std::string> folders;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--each" && i + 1 < argc)
      options.each = unsigned(std::atoi(argv[++i]));
    else if (word == "--seed" && i + 1 < argc)
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--faults" && i + 1 < argc)
      options.faults = argv[++i];
    else if (word == "--no-run")
      options.runs = false;
    else
      folders.push_back(word);
  }
  if (folders.empty())
    return std::fputs("usage: escapes [--each N=4] [--seed S=1] [--faults NAME,...] [--no-run] BUNDLE...\n", stderr), 2;
  std::map<toy::Fault, Row> rows;
  bool sound = true;
  for (const std::string &folder : folders) {
    format::Expected<format::Bundle> bundle = format::readPrograms(folder);
    if (!bundle) {
      std::printf("%s: error: %s\n", folder.c_str(), bundle.message().c_str());
      sound = false;
      continue;
    }
    verify::Verdict verdict = verify::verifyBundle(*bundle);
    if (!verdict) {
      std::fputs(verify::format(verdict, folder).c_str(), stdout);
      sound = false;
    } else if (options.each) {
      breakOne(*bundle, folder, options, rows);
    }
    std::fflush(stdout);
  }
  std::printf("%zu bundles\n", folders.size());
  print(rows);
  unsigned wrong = 0;
  for (const auto &[fault, row] : rows)
    wrong += row.wrong;
  return !sound ? 1 : wrong ? 3 : 0;
}
