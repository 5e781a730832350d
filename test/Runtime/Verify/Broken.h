// par-verify's output for a bundle that a test has changed.
#pragma once

#include "par/verify/Verify.h"

namespace par::verify {
using namespace par::format;

inline Instruction &at(Program &program, const char *block, size_t n) {
  return program.blocks[program.findBlock(block)].instructions[n];
}

/// The verifier's message: "" when proved, else "V3 message | note | note".
inline std::string complaint(const Bundle &bundle) {
  Verdict verdict = verifyBundle(bundle);
  if (verdict)
    return "";
  std::string text = std::string(toString(verdict.counterexample->property)) + " " + verdict.counterexample->message;
  for (const std::string &note : verdict.counterexample->notes)
    text += " | " + note;
  return text;
}

template <typename Change>
std::string broken(Bundle bundle, Change change) {
  change(bundle);
  return complaint(bundle);
}

} // namespace par::verify
