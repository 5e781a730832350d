// Times that were measured on a machine, rows of its hardware file.
#pragma once

#include "par/Base/WorkShapes.h"

#include "llvm/Support/Error.h"

#include <vector>

namespace par {

/// Work that was measured, and its ns, the launch included.
template <typename Shape>
struct MeasuredRow {
  Shape shape;
  int64_t ns = 0;
};

/// A loop over elements.
struct KernelShape {
  int64_t bytes = 0, flops = 0;
};

struct CollectiveShape {
  format::CollKind kind = format::CollKind::AllReduce;
  int64_t bytes = 0; ///< of the instruction's n
  int64_t members = 1, hosts = 1;
};

struct CopyShape {
  bool host = false; ///< between a device and its host's memory; else within the device's
  int64_t bytes = 0;
};

struct SendShape {
  int64_t bytes = 0, hosts = 1;
};

/// An input that a step reads from the data, or an output that it gives back.
struct FeedShape {
  bool fetch = false;
  int64_t bytes = 0;
};

/// A time before a meeting of ranks: for how long one has waited there, or has computed since the last one.
struct TimeShape {
  int64_t ns = 0;
};

/// Work of several processes of a host at once.
struct TogetherShape {
  bool matmul = false; ///< else kernels
  int64_t processes = 1;
};

/// `measured` of a hardware file.
struct MeasuredRows {
  std::vector<MeasuredRow<MatmulShape>> matmuls;
  std::vector<MeasuredRow<AttentionShape>> attentions;
  std::vector<MeasuredRow<ConvolutionShape>> convolutions;
  std::vector<MeasuredRow<KernelShape>> kernels;
  std::vector<MeasuredRow<CollectiveShape>> collectives;
  std::vector<MeasuredRow<CopyShape>> copies;
  std::vector<MeasuredRow<SendShape>> sends;
  std::vector<MeasuredRow<FeedShape>> feeds;
  /// ns until a rank that has waited so long for another sees that it has come.
  std::vector<MeasuredRow<TimeShape>> wakeups;
  /// ns by which the last of several ranks is later than their mean after the same compute of so long.
  std::vector<MeasuredRow<TimeShape>> spread;
  int64_t launch = 0; ///< ns; 0: not measured
  /// `ns` is 1/1000 of the time that one by itself takes.
  std::vector<MeasuredRow<TogetherShape>> together;

  bool empty() const {
    return matmuls.empty() && attentions.empty() && convolutions.empty() && kernels.empty() && collectives.empty() &&
           copies.empty() && sends.empty() && feeds.empty() && wakeups.empty() && spread.empty() && launch == 0 &&
           together.empty();
  }
};

/// Rows of one key as words, `[bf16, nn, 1, 1024, 1024, 1024, 81000]`, a list each.
using RowTexts = std::vector<std::vector<std::string>>;

/// Appends rows of `measured.KEY`; fails on a key that there is not, and on a row that does not fit its key, with its
/// number and what it should hold.
llvm::Error readMeasured(llvm::StringRef key, const RowTexts &texts, MeasuredRows &rows);

/// The keys of `measured`.
llvm::ArrayRef<llvm::StringRef> measuredKeys();

} // namespace par
