// Bundle in, proof or counterexample out.
#include "par/format/Family.h"
#include "par/format/NearestWord.h"
#include "par/format/OutOfMemory.h"
#include "par/format/PlainFile.h"
#include "par/format/Printable.h"
#include "par/format/Process.h"
#include "par/verify/Verify.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <string>

using namespace par::verify;

static constexpr const char *usageText =
    "usage: par-verify BUNDLE [--rank R] [--json]\n"
    "Proves a bundle's communication and memory, and its members' of one family; reads only its files.\n"
    "exit status: 0 proved, 3 counterexample, 1 not a bundle (or one that cannot be read), 2 wrong arguments\n";

/// Prints the proof or the counterexample of one bundle, and returns the exit status.
static int say(const Verdict &verdict, const std::string &folder, bool json) {
  std::string text = json ? formatJson(verdict, folder) : format(verdict, folder);
  std::fwrite(text.data(), 1, text.size(), verdict || json ? stdout : stderr); // a zero would end it for fputs
  return verdict ? 0 : verdict.read ? 3 : 1;
}

/// Proves the members that a proved bundle has in its folder.
static int proveMembers(const std::string &folder, bool json) {
  auto members = par::format::membersIn(folder);
  if (!members)
    return std::fprintf(stderr, "%s: error: %s\n", par::format::printable(folder).c_str(), members.message().c_str()),
           1;
  int worst = 0;
  for (const par::format::FamilyMember &member : *members) {
    std::string where = par::format::folderOf(folder, member);
    worst = std::max(worst, say(verifyBundle(where), where, json));
  }
  return worst;
}

static int run(int argc, char **argv) {
  std::string folder;
  Options options;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--help") {
      std::fputs(usageText, stdout);
      return 0;
    }
    if (argument == "--version") {
      std::printf("par 0.1, bundle format %u.%u\n", unsigned(par::format::formatMajor),
                  unsigned(par::format::formatMinor));
      return 0;
    }
    if (argument == "--json") {
      json = true;
    } else if (argument == "--rank" && i + 1 < argc) {
      std::string text = argv[++i];
      uint32_t rank = 0;
      if (options.rank)
        return std::fprintf(stderr, "par-verify: error: --rank is given twice, with %u and '%s'; it takes one\n",
                            unsigned(*options.rank), par::format::printable(text).c_str()),
               2;
      auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
      if (error != std::errc() || end != text.data() + text.size())
        return std::fprintf(stderr, "par-verify: error: --rank takes a number, got '%s'\n",
                            par::format::printable(text).c_str()),
               2;
      options.rank = rank;
    } else if (!argument.starts_with("-") && folder.empty()) {
      folder = argument;
    } else {
      static constexpr std::string_view flags[] = {"--rank", "--json", "--help", "--version"};
      std::fprintf(stderr, "par-verify: error: unexpected argument '%s'%s\n%s",
                   par::format::excerpt(par::format::printable(argument)).c_str(),
                   par::format::didYouMean(argument, flags).c_str(), usageText);
      return 2;
    }
  }
  if (folder.empty())
    return std::fputs(usageText, stderr), 2;
  auto there = par::format::isThere(folder + "/manifest.json");
  if (!there || !*there)
    return std::fprintf(stderr, "%s: error: %s\n", par::format::printable(folder).c_str(),
                        there ? "not a bundle: it has no manifest.json"
                              : ("cannot open manifest.json: " + there.message()).c_str()),
           1;
  Verdict verdict = verifyBundle(folder, options);
  if (uint64_t ranks = verdict.proof.ranks; ranks > 0 && options.rank && *options.rank >= ranks)
    return std::fprintf(stderr, "par-verify: error: --rank %u: %s has %llu ranks, the first is 0\n",
                        unsigned(*options.rank), par::format::printable(folder).c_str(),
                        static_cast<unsigned long long>(ranks)),
           2;
  if (int code = say(verdict, folder, json))
    return code;
  return options.rank ? 0 : proveMembers(folder, json);
}

int main(int argc, char **argv) {
  par::format::nameFailedAllocations();
  if (auto status = par::format::prepareProcess(); !status)
    return std::fprintf(stderr, "par-verify: error: %s\n", status.message().c_str()), 1;
  int code = 1;
  try {
    code = run(argc, argv);
  } catch (const std::exception &error) { // no memory
    std::fprintf(stderr, "par-verify: error: %s\n", error.what());
  }
  if (auto status = par::format::flushOutput(); !status)
    return std::fprintf(stderr, "par-verify: error: standard output: %s\n", status.message().c_str()), 1;
  return code;
}
