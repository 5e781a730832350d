// What a par.fetch hands out of a result that ranks have in parts.
#ifndef PAR_DIALECT_FETCH_H
#define PAR_DIALECT_FETCH_H

#include "par/Dialect/Par.h"

namespace par {

/// `of` says what the fetched value is a shard of; without it every rank has the same. `sliced`: it is one microbatch
/// of the result, whose rows stand one microbatch behind the other. Both are attributes of the op:
/// `par.fetch %y as "logits" {of = !par.dist<tensor<8xf32>, @s1, [{"dp"}]>, sliced} : tensor<4xf32>`.
inline void setPart(FetchOp fetch, DistType dist, bool sliced) {
  fetch->setAttr("of", mlir::TypeAttr::get(dist));
  if (sliced)
    fetch->setAttr("sliced", mlir::UnitAttr::get(fetch.getContext()));
}

/// Null where every rank has the same.
inline DistType getPart(FetchOp fetch) {
  auto of = fetch->getAttrOfType<mlir::TypeAttr>("of");
  return of ? llvm::dyn_cast<DistType>(of.getValue()) : DistType();
}
inline bool isSliced(FetchOp fetch) { return fetch->hasAttr("sliced"); }

} // namespace par

#endif // PAR_DIALECT_FETCH_H
