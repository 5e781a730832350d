// The file that keeps the algorithms of matmuls and the engines of graphs beside a run.
#pragma once

#include "par/cuda/blas/Gemm.h"
#include "par/cuda/dnn/DnnGraph.h"

#include <map>
#include <string>

namespace par::cuda {

/// The environment for which algorithms are valid.
struct TunedFor {
  std::string gpu, library, bundle; ///< "NVIDIA H100 80GB HBM3", "13.1.0", a hash
  bool operator==(const TunedFor &) const = default;
};

struct TunedGemm {
  Algorithms algorithms;
  double microseconds = 0; ///< 0: not timed
};
/// By all that an algorithm depends on, as one word.
using TunedGemms = std::map<std::string, TunedGemm>;

struct TunedGraph {
  DnnChoice choice;
  double microseconds = 0; ///< 0: not timed
};
/// Engines of cuDNN's graphs, by builtin and sizes.
using TunedGraphs = std::map<std::string, TunedGraph>;

struct TuningFile {
  TunedFor of;
  TunedGemms products;
  std::string dnn; ///< whose engines the graphs are for: "cuDNN 9.14.0"; "" without graphs
  TunedGraphs graphs;
};

/// Whole or not there. Throws core::Failure.
void writeTuning(const std::string &path, const TuningFile &file);
/// Throws core::Failure, with the place in the file, where it is not as it was written.
TuningFile readTuning(const std::string &path);

} // namespace par::cuda
