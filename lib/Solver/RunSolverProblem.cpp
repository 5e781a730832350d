#include "par/Solver/Cut/StageCut.h"
#include "par/Solver/Order/GlobalOrder.h"
#include "par/Solver/Order/OrderTable.h"
#include "par/Solver/Pack/Packing.h"
#include "par/Solver/Recompute/RecomputeChoice.h"
#include "par/Solver/Reshard/ReshardPath.h"

using namespace par;
using llvm::Error;
using llvm::raw_ostream;

namespace {

/// Reads, solves, verifies and prints one problem; `print` says how its solution prints.
template <typename Problem, typename Print>
Error runProblem(ProblemText &text, raw_ostream &out, Print print) {
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
  print(*problem, *solution);
  return Error::success();
}

struct ProblemKind {
  llvm::StringLiteral name;
  Error (*run)(ProblemText &text, raw_ostream &out);
};

const ProblemKind kinds[] = {
    {"order_table",
     [](ProblemText &text, raw_ostream &out) {
       return runProblem<OrderTableProblem>(text, out, [&](auto &, auto &table) { table.print(out); });
     }},
    {"global_order",
     [](ProblemText &text, raw_ostream &out) {
       return runProblem<GlobalOrderProblem>(text, out, [&](auto &p, auto &order) { order.print(out, p); });
     }},
    {"stage_cut",
     [](ProblemText &text, raw_ostream &out) {
       return runProblem<StageCutProblem>(text, out, [&](auto &p, auto &cut) { cut.print(out, p); });
     }},
    {"packing",
     [](ProblemText &text, raw_ostream &out) {
       return runProblem<PackingProblem>(text, out, [&](auto &p, auto &packing) { packing.print(out, p); });
     }},
    {"recompute",
     [](ProblemText &text, raw_ostream &out) {
       return runProblem<RecomputeProblem>(text, out, [&](auto &p, auto &choice) { choice.print(out, p); });
     }},
    {"reshard",
     [](ProblemText &text, raw_ostream &out) {
       return runProblem<ReshardProblem>(text, out, [&](auto &p, auto &path) { path.print(out, p); });
     }},
};

Error runAny(ProblemText &text, raw_ostream &out) {
  if (Error error = text.takeError())
    return error;
  for (const ProblemKind &kind : kinds)
    if (kind.name == text.kind())
      return kind.run(text, out);
  std::string known;
  for (const ProblemKind &kind : kinds)
    known += (known.empty() ? "" : ", ") + kind.name.str();
  return solverError("unknown problem '" + text.kind() + "'; there are " + known);
}

} // namespace

int par::runSolverProblem(llvm::StringRef text, raw_ostream &out, raw_ostream &err) {
  ProblemText reader(text);
  Error error = runAny(reader, out);
  if (!error)
    return 0;
  err << "error: " << llvm::toString(std::move(error)) << '\n';
  return 1;
}
