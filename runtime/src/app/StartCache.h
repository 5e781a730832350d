// The state with which a bundle starts, in a file of --cache: the next start maps it instead of reading weights,
// converting, comparing and packing them.
#pragma once

#include "par/files/BlockFile.h"

#include <functional>
#include <memory>

namespace par::core {

struct Job;
class Session;

/// For a job of one rank on the CPU, in this process, whose weights come from plain files. The file depends on the
/// bundle, on the identities of these files, and on processor, library and threads.
class StartCache {
public:
  /// Before weights are opened. Null where the job has no --cache or cannot use it; `remark` gets a line where the user
  /// should know why. Throws Failure where the model file cannot be looked for.
  static std::shared_ptr<StartCache> open(const Job &job, std::string &remark);

  /// Whether there is a file of an earlier start that is whole and of the same facts.
  bool isFilled() const { return file.has_value(); }
  /// Lines for the user from the start that wrote the file.
  std::string remark() const;
  /// The line about the weights that were read, which is kept with them.
  void note(const std::string &said) { saidOfWeights = said; }
  /// Gives all tensors their values. Only if it is filled.
  void give(Session &session, uint64_t seed) const;

  /// After a run on the state that the job's weights gave: writes the file, once, unless the files of weights are
  /// others than they were when open() looked, or the state has changed. If it cannot be written, `say` gets a line.
  void keep(const Session &session, const Job &job, const std::function<void(const std::string &)> &say);
  /// The caller has changed the state: it is not kept.
  void stateChanged() { isOver = true; }

private:
  StartCache(std::string folder, std::string about, std::vector<std::string> sources);
  std::string path() const;

  std::string folder, about;        ///< `about`: facts but for the files
  std::vector<std::string> sources; ///< files of weights
  std::string facts;                ///< empty: a file of weights is too new for them
  std::optional<BlockFile> file;
  std::string saidOfWeights;
  bool isOver = false;
};

} // namespace par::core
