// par-compile --explain.
#pragma once

#include "par/Inspect/Facts.h"
#include "par/Inspect/Named.h"

#include "llvm/Support/raw_ostream.h"

namespace par {

/// Reasons of the keys that a search has chosen, from the comments of plans that it wrote.
void addReasons(llvm::ArrayRef<std::string> plans, std::vector<KeyFact> &keys);

/// The subject of --explain: a word, or a name of the model.
class Explanation {
public:
  explicit Explanation(llvm::StringRef subject) : subject(subject) {}

  /// Whether it takes the place of the summary.
  bool isAlone() const { return !subject.empty() && subject != "collectives" && subject != "memory"; }
  /// Finds the name; the message of a name that the model does not have, else empty.
  std::string findName(const Model &model);
  bool isOfName() const { return !named.empty(); }
  bool needsSaved() const { return subject == "memory" || subject == "recompute"; }
  bool needsPrediction() const { return subject == "cuts"; }
  /// `facts` are those of the bundle. If it is of a name, `compiled` kept its module after Propagate.
  void print(const Compiled &compiled, const Facts &facts, llvm::raw_ostream &out) const;

private:
  llvm::StringRef subject;
  std::vector<NamedThing> named;
};

} // namespace par
