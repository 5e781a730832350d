// The output of par-verify.
#include "format/Json.h"
#include "par/format/Printable.h"
#include "par/verify/Verify.h"

#include <algorithm>
#include <cstdio>

using namespace par;
using namespace par::verify;
using par::format::Word;
using par::format::Writer;

static std::string plural(uint64_t n, const char *word) { return std::to_string(n) + " " + word + (n == 1 ? "" : "s"); }

/// Distinct sizes in MiB, largest first.
static std::string arenas(const Proof &proof) {
  std::vector<uint64_t> sizes = proof.arenas;
  std::sort(sizes.rbegin(), sizes.rend());
  std::vector<std::string> texts;
  for (uint64_t size : sizes) {
    char text[32];
    std::snprintf(text, sizeof text, size < (1 << 20) ? "%.3f" : "%.1f", double(size) / (1 << 20));
    if (texts.empty() || texts.back() != text)
      texts.push_back(text);
  }
  std::string line;
  for (size_t i = 0; i < texts.size(); ++i)
    line += (i == 0 ? "" : i + 1 == texts.size() ? " and " : ", ") + texts[i];
  return (texts.size() == 1 ? "arena " : "arenas ") + line + " MiB";
}

std::string par::verify::format(const Verdict &verdict, const std::string &name) {
  if (const auto &found = verdict.counterexample) {
    auto shown = [](const std::string &line) { return format::excerpt(format::printable(line), 2000); };
    std::string text = format::printable(name) + ": error: " + shown(found->message) + " (" +
                       std::string(toString(found->property)) + ")\n";
    for (const std::string &note : found->notes)
      text += "  " + shown(note) + "\n";
    return text;
  }
  const Proof &proof = verdict.proof;
  return format::printable(name) + ": proved: " + plural(proof.programs, "program") + ", " +
         plural(proof.ranks, "rank") + ": " + plural(proof.communications, "communication") + ", " +
         plural(proof.groups, "group") + ", longest wait chain " + std::to_string(proof.longestChain) + "; " +
         arenas(proof) + (proof.together ? "" : "; programs not compared together (a bundle from before format 1.12)") +
         (proof.hashed ? "; hashes match\n" : "\n");
}

std::string par::verify::formatJson(const Verdict &verdict, const std::string &name) {
  Writer w;
  w.raw("{").key("bundle").text(name).key("proved").boolean(bool(verdict));
  if (const auto &found = verdict.counterexample) {
    w.key("property").text(toString(found->property)).key("message").text(found->message);
    w.key("notes").texts(found->notes);
  } else {
    const Proof &proof = verdict.proof;
    w.key("programs").number(int64_t(proof.programs)).key("ranks").number(int64_t(proof.ranks));
    w.key("communications").number(int64_t(proof.communications)).key("groups").number(int64_t(proof.groups));
    w.key("longest_wait_chain").number(int64_t(proof.longestChain)).key("arena_bytes").numbers(proof.arenas);
    w.key("compared_together").boolean(proof.together);
  }
  w.raw("}\n");
  return w.take();
}
