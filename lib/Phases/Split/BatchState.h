#pragma once

#include "par/Dialect/Par.h"

namespace par {

// Where the batches of an asynchronous schedule overlap, state that a batch's forward needs must be its own, though the
// update at the end of the batch before it is still to come. Parameters may be of earlier updates; what is here may
// not.

/// Has a counter that microbatches read (of what dropout draws) advanced where a batch begins, not where it ends. Each
/// microbatch takes along the number that its batch began with.
///
///     %n = par.read @draws
///     %g = par.loop 2 (...) { ... par.run @s0.forward(%n, ...) ... par.run @s0.backward(%n, ...) ... }
///     %m, %w = par.run @s0.update(%n, %g, ...)     // %m is %n + 1
///     par.write %m to @draws
///
/// becomes
///
///     %n = par.read @draws
///     %old, %m = par.run @s0.count(%n)
///     %g = par.loop 2 (...) {
///       %k = par.run @s0.counted(%old)
///       ... par.run @s0.forward(%k, ...) ... par.run @s0.backward(%k, ...) ...
///     }
///     %w = par.run @s0.update(%g, ...)
///     par.write %m to @draws
///
/// False, and nothing is changed, where its next value is made of anything but itself.
bool countAtBegin(ReadOp read, WriteOp write);

/// Whether microbatches read and sum moving statistics in forward alone, so that each batch's begin where those of the
/// one before it ended.
bool movesInForward(ReadOp read, WriteOp write);

/// Takes moving statistics that are made of what forward sums out of the updates, into a run of their own, so that
/// Schedule can have them written before the next batch's forward sums anew:
///
///     %u, %w = par.run @s0.update(%mean, %sum, %g, ...)
///     par.write %u to @running_mean
///
/// becomes
///
///     %u = par.run @s0.move(%mean, %sum)
///     %w = par.run @s0.update(%g, ...)
///     par.write %u to @running_mean
void moveStatistics(StepOp step);

} // namespace par
