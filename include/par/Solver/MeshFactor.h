//===- MeshFactor.h - mesh axes refined to primes ---------------*- C++ -*-===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAR_SOLVER_MESHFACTOR_H
#define PAR_SOLVER_MESHFACTOR_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace par {

/// Prime factors, ascending: 12 -> 2, 2, 3; 1 -> none. `number` is at least 1.
std::vector<int64_t> primeFactors(int64_t number);

/// An axis as axes of prime size, major first: "tp" of 4 -> "tp.0" of 2, "tp.1" of 2; "dp" of 3 -> "dp" of 3;
/// an axis of size 1 -> none. Larger primes are major, so that halves of an axis of size 6 are contiguous
/// ranks.
std::vector<std::pair<std::string, int64_t>> refineAxis(llvm::StringRef name, int64_t size);

} // namespace par

#endif // PAR_SOLVER_MESHFACTOR_H
