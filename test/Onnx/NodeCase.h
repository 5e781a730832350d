// One case of ONNX's node tests: a model of one node, inputs, and the outputs that it must give.
#pragma once

#include <string>

namespace par::test {

enum class Verdict { Passed, Refused, Wrong, Crashed };

struct CaseResult {
  Verdict verdict = Verdict::Crashed;
  std::string reason; ///< the error it was refused with, or the first difference; of one that passed, the inputs that
                      ///< were given when compiling
};

/// Imports `folder`/model.onnx for the shapes of `folder`/test_data_set_0, without a loss, interprets it on the
/// inputs and holds the outputs against the expected ones. Inputs are data; where a node must know one when
/// compiling (a shape, axes), and only then, it is given as known. An error is located if its place is the model.
/// With `gradients` the outputs are not looked at, but the gradients (GradientCheck.h).
CaseResult runCase(const std::string &folder, bool gradients = false);

/// The same in a process of its own, ended after `seconds`: a crash or a hang is a verdict.
CaseResult runCaseApart(const std::string &folder, unsigned seconds, bool gradients = false);

/// The op that a case tests, and whether the case should pass.
struct CaseScope {
  std::string op;      ///< type of the model's first node, "" where the file cannot be read
  std::string outside; ///< why it is none of the cases that should pass, "" for those (scopeRule)
};

/// The model of `folder`, an expansion of an op into others being a case of that op: test_gelu_default_1_expanded is
/// Gelu's.
CaseScope scopeOf(const std::string &folder);

/// Which cases should pass, in words.
extern const char *const scopeRule;

} // namespace par::test
