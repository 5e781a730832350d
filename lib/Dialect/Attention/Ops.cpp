#include "par/Dialect/Attention.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "par/Dialect/AttentionOps.cpp.inc"

namespace par {

/// "tensor" of the given dims, for messages.
static RankedTensorType shaped(RankedTensorType like, ArrayRef<int64_t> shape) { return like.clone(shape); }

template <typename Op>
static LogicalResult verifyHeads(Op op) {
  auto query = cast<RankedTensorType>(op.getQuery().getType()), key = cast<RankedTensorType>(op.getKey().getType()),
       value = cast<RankedTensorType>(op.getValue().getType());
  for (RankedTensorType type : {query, key, value})
    if (type.getRank() != 4 || type.getElementType() != query.getElementType())
      return op.emitOpError() << "takes " << query << ", " << key << " and " << value
                              << ", expected batch, heads, sequence and head dim of one element type";
  ArrayRef<int64_t> q = query.getShape(), k = key.getShape(), v = value.getShape();
  if (k[0] != q[0] || k[3] != q[3] || k[1] == 0 || q[1] % k[1] != 0)
    return op.emitOpError() << "has queries " << query << " for keys " << key
                            << ", expected the same batch and head dim, and heads of the queries for each of the keys'";
  if (ArrayRef(k).take_front(3) != ArrayRef(v).take_front(3))
    return op.emitOpError() << "has keys " << key << " and values " << value << ", which differ before the last dim";
  if (!op.getMask())
    return success();
  auto mask = cast<RankedTensorType>(op.getMask().getType());
  int64_t scores[] = {q[0], q[1], q[2], k[2]};
  bool fits = mask.getRank() == 4 && llvm::all_of(llvm::zip(mask.getShape(), scores), [](auto pair) {
                auto [size, whole] = pair;
                return size == whole || size == 1;
              });
  if (!fits)
    return op.emitOpError() << "has the mask " << mask << " for scores " << shaped(query, scores)
                            << ", expected its dims or 1";
  return success();
}

static LogicalResult expectType(Operation *op, Value value, RankedTensorType expected, StringRef what) {
  if (value.getType() == expected)
    return success();
  return op->emitOpError() << "has " << what << " " << value.getType() << ", expected " << expected;
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyHeads(*this)))
    return failure();
  Heads heads(*this);
  return success(succeeded(expectType(*this, getResult(), heads.attendedType(), "the result")) &&
                 succeeded(expectType(*this, getLse(), heads.lseType(), "lse")));
}

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyHeads(*this)))
    return failure();
  Heads heads(*this);
  auto typeOf = [](Value value) { return cast<RankedTensorType>(value.getType()); };
  return success(succeeded(expectType(*this, getCotangent(), heads.attendedType(), "the cotangent")) &&
                 succeeded(expectType(*this, getAttended(), heads.attendedType(), "the forward result")) &&
                 succeeded(expectType(*this, getLse(), heads.lseType(), "lse")) &&
                 succeeded(expectType(*this, getQueryCotangent(), typeOf(getQuery()), "the queries' cotangent")) &&
                 succeeded(expectType(*this, getKeyCotangent(), typeOf(getKey()), "the keys' cotangent")) &&
                 succeeded(expectType(*this, getValueCotangent(), typeOf(getValue()), "the values' cotangent")));
}

} // namespace par
