// Lowers convolutions, patches and pooling to linalg.generic. The three forms of a convolution (result, input gradient,
// filter gradient) are one loop nest with the tensors' roles exchanged.
#include "par/Dialect/Lower.h"
#include "../TensorTypes.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Windows.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace par {
namespace {

/// A position in a tensor, possibly out of bounds, computed dim by dim.
struct Place {
  OpBuilder &builder;
  Location loc;
  SmallVector<Value> indices;
  Value holds; ///< an i1 that is true inside; null: always

  void require(Value condition) {
    holds = holds ? arith::AndIOp::create(builder, loc, holds, condition).getResult() : condition;
  }
  void requireBelow(Value index, int64_t length) {
    // As unsigned numbers, those below 0 are large.
    require(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, index,
                                  buildIndexConstant(builder, loc, length)));
  }
  Value number(int64_t value) { return buildIndexConstant(builder, loc, value); }
  Value add(Value index, int64_t value) {
    return value == 0 ? index : arith::AddIOp::create(builder, loc, index, number(value)).getResult();
  }
  Value scale(Value index, int64_t by) {
    return by == 1 ? index : arith::MulIOp::create(builder, loc, index, number(by)).getResult();
  }

  /// The operand's element that is element `element` of window `window`.
  void addPosition(const Windows &windows, int64_t dim, int64_t length, Value window, Value element) {
    Value index = arith::AddIOp::create(builder, loc, scale(window, windows.strides[dim]),
                                        scale(element, windows.dilations[dim]));
    index = add(index, -windows.low[dim]);
    if (!windows.isInside(dim, length))
      requireBelow(index, length);
    indices.push_back(index);
  }

  /// The window of which the operand's element at `position` is element `element`.
  void addWindow(const Windows &windows, int64_t dim, int64_t length, Value position, Value element) {
    Value shifted = add(position, windows.low[dim]);
    Value start = arith::SubIOp::create(builder, loc, shifted, scale(element, windows.dilations[dim]));
    int64_t stride = windows.strides[dim], count = windows.count(dim, length);
    if (stride == 1) {
      requireBelow(start, count);
      indices.push_back(start);
      return;
    }
    // A start below 0 is a large unsigned number, whose quotient is past all windows.
    Value window = arith::DivUIOp::create(builder, loc, start, number(stride));
    Value rest = arith::RemUIOp::create(builder, loc, start, number(stride));
    require(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, rest, number(0)));
    requireBelow(window, count);
    indices.push_back(window);
  }

  /// The element there, or `otherwise` outside.
  Value read(Value tensor, Value otherwise) {
    if (!holds)
      return tensor::ExtractOp::create(builder, loc, tensor, indices);
    auto inside = [&](OpBuilder &nested, Location loc) {
      Value element = tensor::ExtractOp::create(nested, loc, tensor, indices);
      scf::YieldOp::create(nested, loc, element);
    };
    auto outside = [&](OpBuilder &nested, Location loc) { scf::YieldOp::create(nested, loc, otherwise); };
    return scf::IfOp::create(builder, loc, holds, inside, outside).getResult(0);
  }
};

struct PatchesLowering : LowerableOpInterface::ExternalModel<PatchesLowering, PatchesOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto made = cast<PatchesOp>(op);
    Windows windows = Windows::of(made, made.getWindow());
    RankedTensorType from = typeOf(operands[0]), to = typeOf(made.getResult());
    int64_t spatial = windows.rank(), leading = from.getRank() - spatial;
    bool inside = true;
    SmallVector<AffineExpr> exprs;
    for (int64_t dim = 0; dim < leading; ++dim)
      exprs.push_back(builder.getAffineDimExpr(dim));
    for (int64_t dim = 0; dim < spatial; ++dim) {
      inside &= windows.isInside(dim, from.getDimSize(leading + dim));
      exprs.push_back(builder.getAffineDimExpr(leading + dim) * windows.strides[dim] +
                      builder.getAffineDimExpr(leading + spatial + dim) * windows.dilations[dim] - windows.low[dim]);
    }
    if (inside)
      return SmallVector<Value>{buildElements(builder, op->getLoc(), to, operands[0],
                                              AffineMap::get(to.getRank(), 0, exprs, builder.getContext()),
                                              [](OpBuilder &, Location, ValueRange args) { return args[0]; })};
    auto body = [&](OpBuilder &nested, Location loc, ValueRange) -> Value {
      Place place{nested, loc, {}, {}};
      for (int64_t dim = 0; dim < leading; ++dim)
        place.indices.push_back(buildIndex(nested, loc, dim));
      for (int64_t dim = 0; dim < spatial; ++dim)
        place.addPosition(windows, dim, from.getDimSize(leading + dim), buildIndex(nested, loc, leading + dim),
                          buildIndex(nested, loc, leading + spatial + dim));
      return place.read(operands[0], arith::ConstantOp::create(nested, loc, made.getValue()));
    };
    return SmallVector<Value>{buildElements(builder, op->getLoc(), to, {}, {}, body)};
  }
};

struct FoldPatchesLowering : LowerableOpInterface::ExternalModel<FoldPatchesLowering, FoldPatchesOp> {
  /// Loops over the result's dims, then over a window's elements, each of which at most one window has there.
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto made = cast<FoldPatchesOp>(op);
    RankedTensorType from = typeOf(operands[0]), to = typeOf(made.getResult());
    Windows windows = Windows::of(made, from.getShape().take_back(made.getStrides().size()));
    int64_t spatial = windows.rank(), rank = to.getRank(), leading = rank - spatial;
    // Nothing is read of it: it has the window's shape, which bounds the loops.
    Value bounds =
        tensor::EmptyOp::create(builder, op->getLoc(), ArrayRef<int64_t>(windows.size), builder.getIntegerType(8));
    AffineMap all = builder.getMultiDimIdentityMap(rank + spatial);
    auto body = [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
      Place place{nested, loc, {}, {}};
      for (int64_t dim = 0; dim < leading; ++dim)
        place.indices.push_back(buildIndex(nested, loc, dim));
      for (int64_t dim = 0; dim < spatial; ++dim)
        place.addWindow(windows, dim, to.getDimSize(leading + dim), buildIndex(nested, loc, leading + dim),
                        buildIndex(nested, loc, rank + dim));
      for (int64_t dim = 0; dim < spatial; ++dim)
        place.indices.push_back(buildIndex(nested, loc, rank + dim));
      Value zero = buildNumber(nested, loc, to.getElementType(), 0);
      return buildSum(nested, loc, args[1], place.read(operands[0], zero));
    };
    return SmallVector<Value>{buildReduction(builder, op->getLoc(), to, builder.getZeroAttr(to.getElementType()),
                                             bounds, all.getMinorSubMap(spatial), all.getMajorSubMap(rank), body)};
  }
};

RankedTensorType splitType(RankedTensorType type, int64_t dim, int64_t groups) {
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + dim, groups);
  shape[dim + 1] /= groups;
  return type.clone(shape);
}

/// `value` with the dim `dim` of channels as [groups, channels of one], or back.
Value splitChannels(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t groups) {
  RankedTensorType type = typeOf(value);
  SmallVector<ReassociationIndices> joined;
  for (int64_t from = 0, to = 0; from < type.getRank(); ++from) {
    joined.push_back({to++});
    if (from == dim)
      joined.back().push_back(to++);
  }
  return tensor::ExpandShapeOp::create(builder, loc, splitType(type, dim, groups), value, joined);
}
Value joinChannels(OpBuilder &builder, Location loc, RankedTensorType type, Value value, int64_t dim) {
  SmallVector<ReassociationIndices> joined;
  for (int64_t to = 0, from = 0; to < type.getRank(); ++to) {
    joined.push_back({from++});
    if (to == dim)
      joined.back().push_back(from++);
  }
  return tensor::CollapseShapeOp::create(builder, loc, type, value, joined);
}

/// The loops of a convolution's three forms: one each over images, groups, their output and input channels, windows (or
/// the input's elements, in the gradient of the input) and elements of the window. Two tensors are read or written
/// through maps; the third is indexed by the windows.
struct ConvolutionLoops {
  ConvolutionLoops(OpBuilder &builder, int64_t spatial, ArrayRef<unsigned> order) : builder(builder), spatial(spatial) {
    // order: the positions of n, g, o, c, x, k; the last two stand for `spatial` loops each.
    unsigned next = 0;
    for (unsigned which : order) {
      first[which] = next;
      next += which >= 4 ? spatial : 1;
    }
    loops = next;
  }
  enum { N, G, O, C, X, K };
  AffineMap map(ArrayRef<unsigned> which) const {
    SmallVector<AffineExpr> exprs;
    for (unsigned loop : which)
      for (int64_t i = 0, count = loop >= 4 ? spatial : 1; i < count; ++i)
        exprs.push_back(builder.getAffineDimExpr(first[loop] + i));
    return AffineMap::get(loops, 0, exprs, builder.getContext());
  }
  Value index(OpBuilder &nested, Location loc, unsigned loop, int64_t dim = 0) const {
    return buildIndex(nested, loc, first[loop] + dim);
  }

  OpBuilder &builder;
  int64_t spatial;
  unsigned first[6] = {}, loops = 0;
};

using Loops = ConvolutionLoops;

/// One of the three forms: every element of the result, indexed by the loops `result`, is a sum of multiplications of
/// `mapped`, indexed by its own loops, and `placed`, indexed by the loops `leading` and then by the windows.
struct ConvolutionForm {
  Value placed, mapped;
  /// Order of the loops: those of the result come first.
  SmallVector<unsigned> order, leading, byMapped, byResult;
  int64_t channels; ///< the dim of the result that the groups cut
  /// `placed` is the input, read at a window's element; else it is laid out as windows, read where one covers the
  /// input's element.
  bool placedIsInput;
};

Lowered lowerForm(Operation *op, OpBuilder &builder, const ConvolutionForm &form, const Windows &windows,
                  int64_t groups) {
  RankedTensorType type = typeOf(op->getResult(0)), placed = typeOf(form.placed);
  Loops loops(builder, windows.rank(), form.order);
  Type element = type.getElementType();
  auto body = [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
    Place place{nested, loc, {}, {}};
    for (unsigned loop : form.leading)
      place.indices.push_back(loops.index(nested, loc, loop));
    for (int64_t dim = 0; dim < windows.rank(); ++dim) {
      Value x = loops.index(nested, loc, Loops::X, dim), k = loops.index(nested, loc, Loops::K, dim);
      if (form.placedIsInput)
        place.addPosition(windows, dim, placed.getDimSize(3 + dim), x, k);
      else
        place.addWindow(windows, dim, type.getDimSize(2 + dim), x, k);
    }
    Value read = place.read(form.placed, buildNumber(nested, loc, placed.getElementType(), 0));
    return buildSum(nested, loc, args[1],
                    buildProduct(nested, loc, buildPromote(nested, loc, read, element),
                                 buildPromote(nested, loc, args[0], element)));
  };
  Value sum =
      buildReduction(builder, op->getLoc(), splitType(type, form.channels, groups), builder.getZeroAttr(element),
                     form.mapped, loops.map(form.byMapped), loops.map(form.byResult), body);
  return SmallVector<Value>{joinChannels(builder, op->getLoc(), type, sum, form.channels)};
}

struct ConvolutionLowering : LowerableOpInterface::ExternalModel<ConvolutionLowering, ConvolutionOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto made = cast<ConvolutionOp>(op);
    int64_t groups = made.getGroups();
    ConvolutionForm form{splitChannels(builder, op->getLoc(), operands[0], 1, groups),
                         splitChannels(builder, op->getLoc(), operands[1], 0, groups),
                         {Loops::N, Loops::G, Loops::O, Loops::X, Loops::C, Loops::K},
                         {Loops::N, Loops::G, Loops::C},
                         {Loops::G, Loops::O, Loops::C, Loops::K},
                         {Loops::N, Loops::G, Loops::O, Loops::X},
                         /*channels=*/1,
                         /*placedIsInput=*/true};
    return lowerForm(op, builder, form, Windows::of(made, typeOf(operands[1]).getShape().drop_front(2)), groups);
  }
};

struct InputGradLowering : LowerableOpInterface::ExternalModel<InputGradLowering, ConvolutionInputGradOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto made = cast<ConvolutionInputGradOp>(op);
    int64_t groups = made.getGroups();
    ConvolutionForm form{splitChannels(builder, op->getLoc(), operands[0], 1, groups),
                         splitChannels(builder, op->getLoc(), operands[1], 0, groups),
                         {Loops::N, Loops::G, Loops::C, Loops::X, Loops::O, Loops::K},
                         {Loops::N, Loops::G, Loops::O},
                         {Loops::G, Loops::O, Loops::C, Loops::K},
                         {Loops::N, Loops::G, Loops::C, Loops::X},
                         /*channels=*/1,
                         /*placedIsInput=*/false};
    return lowerForm(op, builder, form, Windows::of(made, typeOf(operands[1]).getShape().drop_front(2)), groups);
  }
};

struct FilterGradLowering : LowerableOpInterface::ExternalModel<FilterGradLowering, ConvolutionFilterGradOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto made = cast<ConvolutionFilterGradOp>(op);
    int64_t groups = made.getGroups();
    ConvolutionForm form{splitChannels(builder, op->getLoc(), operands[0], 1, groups),
                         splitChannels(builder, op->getLoc(), operands[1], 1, groups),
                         {Loops::G, Loops::O, Loops::C, Loops::K, Loops::N, Loops::X},
                         {Loops::N, Loops::G, Loops::C},
                         {Loops::N, Loops::G, Loops::O, Loops::X},
                         {Loops::G, Loops::O, Loops::C, Loops::K},
                         /*channels=*/0,
                         /*placedIsInput=*/true};
    return lowerForm(op, builder, form, Windows::of(made, typeOf(made.getResult()).getShape().drop_front(2)), groups);
  }
};

} // namespace

void registerWindowLowerings(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<PatchesOp, PatchesLowering>(*context);
    attachOnce<FoldPatchesOp, FoldPatchesLowering>(*context);
    attachOnce<ConvolutionOp, ConvolutionLowering>(*context);
    attachOnce<ConvolutionInputGradOp, InputGradLowering>(*context);
    attachOnce<ConvolutionFilterGradOp, FilterGradLowering>(*context);
  });
}

} // namespace par
