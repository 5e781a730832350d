#include "par/Solver/Cut/StageCut.h"
#include "par/Solver/Order/GlobalOrder.h"
#include "par/Solver/Order/OrderTable.h"
#include "par/Solver/Pack/Packing.h"
#include "par/Solver/Recompute/RecomputeChoice.h"
#include "par/Solver/Reshard/ReshardPath.h"

using namespace par;
using llvm::Error;
using llvm::Expected;

namespace {

/// Reads, solves and verifies one problem; gives its solution as text.
template <typename Problem>
Expected<std::string> solveProblem(ProblemText &text) {
  auto problem = Problem::parse(text);
  if (!problem)
    return problem.takeError();
  if (Error error = problem->check())
    return error;
  auto solution = problem->solve();
  if (!solution)
    return solution.takeError();
  if (Error error = problem->verify(*solution))
    return error;
  if constexpr (requires { solution->toText(*problem); })
    return solution->toText(*problem);
  else
    return solution->toText();
}

struct ProblemKind {
  llvm::StringLiteral name;
  Expected<std::string> (*solve)(ProblemText &text);
};

const ProblemKind kinds[] = {
    {"order_table", solveProblem<OrderTableProblem>}, {"global_order", solveProblem<GlobalOrderProblem>},
    {"stage_cut", solveProblem<StageCutProblem>},     {"packing", solveProblem<PackingProblem>},
    {"recompute", solveProblem<RecomputeProblem>},    {"reshard", solveProblem<ReshardProblem>},
};

} // namespace

Expected<std::string> par::solveText(llvm::StringRef text) {
  ProblemText reader(text);
  if (Error error = reader.takeError())
    return error;
  for (const ProblemKind &kind : kinds)
    if (kind.name == reader.kind())
      return kind.solve(reader);
  std::string known;
  for (const ProblemKind &kind : kinds)
    known += (known.empty() ? "" : ", ") + kind.name.str();
  return solverError("unknown problem '" + reader.kind() + "'; there are " + known);
}
