//===- Compile.h - from a model and a plan to a bundle
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef PAR_DRIVER_COMPILE_H
#define PAR_DRIVER_COMPILE_H

#include "par/Driver/Flags.h"

namespace par {

/// What par-compile was asked for.
struct CompileOptions {
  std::string model;              ///< .onnx
  std::vector<std::string> plans; ///< left to right
  std::vector<std::string> settings; ///< KEY=VALUE of --set, -n and --target, left to right
  std::string output;             ///< bundle folder; empty: model name + ".par"
  bool printPlan = false;
  bool quiet = false, verbose = false;
};

/// Runs par-compile. Results go to `out`, errors to `err`. Returns the exit code.
int compile(const CompileOptions &options, llvm::raw_ostream &out, llvm::raw_ostream &err);

} // namespace par

#endif // PAR_DRIVER_COMPILE_H
