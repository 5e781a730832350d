//===- Compile.cpp - from a model and a plan to a bundle
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "par/Driver/Compile.h"
#include "par/Plan/NameTable.h"

using namespace llvm;

namespace par {

int compile(const CompileOptions &options, raw_ostream &out, raw_ostream &err) {
  PlanErrors errors;
  std::optional<Plan> plan = readPlan(options.plans, options.settings, errors);
  NameTable names;
  if (plan && !options.model.empty()) {
    err << options.model << ": error: compiling a model is not supported yet\n";
    return WrongInput;
  }
  if (plan)
    completePlan(*plan, names, errors);
  if (errors.any()) {
    errors.print(err);
    return WrongInput;
  }
  if (options.printPlan)
    plan->print(out, /*origins=*/true);
  return Done;
}

} // namespace par
