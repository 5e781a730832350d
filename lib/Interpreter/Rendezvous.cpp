// Communication between interpreted programs: a send meets its receive, and a reduction runs when all members have
// reached it. If no program can advance, the deadlock is reported with each one's position.
#include "Rendezvous.h"
#include "par/Dialect/Combine.h"

using namespace mlir;

namespace par::interp {

/// Member of `program` with a world rank; -1 if it has none.
static int64_t memberOf(ProgramOp program, int64_t rank) {
  auto found = llvm::find(program.getRanks(), rank);
  return found == program.getRanks().end() ? -1 : found - program.getRanks().begin();
}

static LogicalResult deliver(ProgramCursor &sender, ProgramCursor &receiver) {
  auto send = cast<SendOp>(*sender.next);
  auto recv = cast<RecvOp>(*receiver.next);
  auto mismatch = [&](const Twine &what) {
    InFlightDiagnostic error = send.emitError() << what;
    error.attachNote(recv.getLoc()) << "its receive is here";
    return error;
  };
  if (TypeRange(send.getOperandTypes()) != TypeRange(recv.getResultTypes()))
    return mismatch("sends other types than its receive takes, tag " + Twine(send.getTag()));
  if (sender.microbatch() != receiver.microbatch())
    return mismatch("sends microbatch " + Twine(sender.microbatch()) + " to a receive for microbatch " +
                    Twine(receiver.microbatch()) + ", tag " + Twine(send.getTag()));
  for (auto [member, rank] : llvm::enumerate(receiver.program.getRanks())) {
    int64_t from = memberOf(sender.program, recv.getPeers()[member]);
    if (from < 0 || send.getPeers()[from] != rank)
      return mismatch("rank " + Twine(rank) + " receives from rank " + Twine(recv.getPeers()[member]) +
                      ", which does not send to it");
    for (auto [result, operand] : llvm::zip(recv.getResults(), send.getOperands()))
      receiver.values[member][result] = sender.values[from].lookup(operand);
  }
  return success();
}

/// The operand that rank `from` sends to a rank; -1 if none.
static int64_t sentTo(SendPartsOp send, int64_t from, int64_t rank) {
  for (unsigned part = 0; part < send.getNumOperands(); ++part)
    if (send.getPeerOf(from, part) == rank)
      return part;
  return -1;
}

static LogicalResult deliverParts(ProgramCursor &sender, ProgramCursor &receiver) {
  auto send = cast<SendPartsOp>(*sender.next);
  auto recv = cast<RecvPartsOp>(*receiver.next);
  for (auto [member, rank] : llvm::enumerate(receiver.program.getRanks()))
    for (unsigned part = 0; part < recv.getNumResults(); ++part) {
      int64_t peer = recv.getPeerOf(rank, part), from = memberOf(sender.program, peer);
      int64_t sent = from < 0 ? -1 : sentTo(send, peer, rank);
      if (sent < 0 || sender.microbatch() != receiver.microbatch() ||
          send.getOperand(sent).getType() != recv.getResult(part).getType()) {
        InFlightDiagnostic error = recv.emitError() << "takes part " << part << " for rank " << rank
                                                    << " in microbatch " << receiver.microbatch() << ", which rank "
                                                    << peer << " does not send, tag " << recv.getTag();
        error.attachNote(send.getLoc()) << "the parts are sent here";
        return error;
      }
      receiver.values[member][recv.getResult(part)] = sender.values[from].lookup(send.getOperand(sent));
    }
  return success();
}

/// Whether a program has reached the receive of a send's tag. If so, `hand` has moved the value and both have advanced.
template <typename Send, typename Recv>
static FailureOr<bool> meetReceive(MutableArrayRef<ProgramCursor> walks, ProgramCursor &sender,
                                   LogicalResult hand(ProgramCursor &sender, ProgramCursor &receiver)) {
  auto send = cast<Send>(*sender.next);
  for (ProgramCursor &receiver : walks) {
    auto recv = receiver.done() ? Recv() : dyn_cast<Recv>(*receiver.next);
    if (!recv || recv.getTag() != send.getTag())
      continue;
    if (failed(hand(sender, receiver)))
      return failure();
    sender.step();
    receiver.step();
    return true;
  }
  return false;
}

/// The roles with a rank in the groups, if all have reached the reduction of that tag; none otherwise.
static FailureOr<SmallVector<ProgramCursor *>> gather(MutableArrayRef<ProgramCursor> walks, WorldAllReduceOp reduce) {
  SmallVector<ProgramCursor *> members;
  for (ProgramCursor &walk : walks) {
    bool inside = llvm::any_of(reduce.getGroups().getAsRange<DenseI64ArrayAttr>(), [&](auto group) {
      return llvm::any_of(group.asArrayRef(), [&](int64_t rank) { return memberOf(walk.program, rank) >= 0; });
    });
    if (!inside)
      continue;
    auto same = walk.done() ? WorldAllReduceOp() : dyn_cast<WorldAllReduceOp>(*walk.next);
    if (!same || same.getTag() != reduce.getTag())
      return SmallVector<ProgramCursor *>();
    if (same.getGroups() != reduce.getGroups() || same.getKind() != reduce.getKind()) {
      InFlightDiagnostic error = reduce.emitError()
                                 << "has other groups or another kind than another role's, tag " << reduce.getTag();
      error.attachNote(same.getLoc()) << "the other role's is here";
      return error;
    }
    members.push_back(&walk);
  }
  return members;
}

/// Gives every rank of a group the combination of all members' values, in the order of the group.
static void reduceGroup(ArrayRef<ProgramCursor *> members, ArrayRef<int64_t> group, unsigned index) {
  auto visit = [&](auto act) {
    for (int64_t rank : group)
      for (ProgramCursor *walk : members)
        if (int64_t member = memberOf(walk->program, rank); member >= 0)
          act(cast<WorldAllReduceOp>(*walk->next), walk->values[member]);
  };
  Tensor total;
  visit([&](WorldAllReduceOp op, RankValues &values) {
    Tensor mine = values.lookup(op.getOperand(index));
    if (total)
      combineInto(op.getKind(), total, mine);
    else
      total = mine;
  });
  visit([&](WorldAllReduceOp op, RankValues &values) { values[op.getResult(index)] = total; });
}

static FailureOr<bool> meetReduce(MutableArrayRef<ProgramCursor> walks, ProgramCursor &walk) {
  auto reduce = cast<WorldAllReduceOp>(*walk.next);
  auto members = gather(walks, reduce);
  if (failed(members))
    return failure();
  if (members->empty())
    return false;
  for (auto group : reduce.getGroups().getAsRange<DenseI64ArrayAttr>())
    for (unsigned index = 0; index < reduce.getNumOperands(); ++index)
      reduceGroup(*members, group.asArrayRef(), index);
  for (ProgramCursor *member : *members)
    member->step();
  return true;
}

FailureOr<bool> meet(MutableArrayRef<ProgramCursor> walks) {
  for (ProgramCursor &walk : walks) {
    if (walk.done())
      continue;
    FailureOr<bool> met = false;
    if (isa<SendOp>(*walk.next))
      met = meetReceive<SendOp, RecvOp>(walks, walk, deliver);
    else if (isa<SendPartsOp>(*walk.next))
      met = meetReceive<SendPartsOp, RecvPartsOp>(walks, walk, deliverParts);
    else if (isa<WorldAllReduceOp>(*walk.next))
      met = meetReduce(walks, walk);
    if (failed(met) || *met)
      return met;
  }
  return false;
}

static std::string describe(ProgramCursor &walk) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "@" << walk.program.getSymName() << " waits in "
         << cast<FlatSymbolRefAttr>(walk.entry.getBlocks()[walk.run]) << ", microbatch " << walk.microbatch() << ", at "
         << walk.next->getName();
  if (auto tag = walk.next->getAttrOfType<IntegerAttr>("tag"))
    stream << " with tag " << tag.getInt();
  return text;
}

LogicalResult reportDeadlock(MutableArrayRef<ProgramCursor> walks) {
  std::optional<InFlightDiagnostic> error;
  for (ProgramCursor &walk : walks) {
    if (walk.done())
      continue;
    if (!error)
      error.emplace(walk.next->emitError()
                    << "deadlock in entry @" << walk.entry.getSymName() << ": " << describe(walk));
    else
      error->attachNote(walk.next->getLoc()) << describe(walk);
  }
  if (!error)
    return success();
  return std::move(*error);
}

} // namespace par::interp
