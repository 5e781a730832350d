#include "par/Report/PrintDiagnostic.h"

#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

using namespace par;

// Messages quote names of a model; a terminal must not take one for a command.
TEST(CompileDiagnostic, IsPrintedWithoutControlCharacters) {
  CompileDiagnostic finding;
  finding.file = "m.onnx";
  finding.message = "node \"\x1b[2J\": op\nFoo";
  finding.notes = {"\x07"};
  std::string text;
  llvm::raw_string_ostream os(text);
  printDiagnostic(finding, os, "par-compile");
  EXPECT_EQ(os.str(), "m.onnx: error: node \"?[2J\": op\nFoo\n  note: ?\n");
}
