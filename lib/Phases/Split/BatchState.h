#pragma once

#include "par/Dialect/Par.h"

namespace par {

// Batches of an asynchronous schedule overlap: a batch's forward begins before the update of the batch before it.
// Parameters may then be stale. State handled here may not: each batch needs its own.

/// Advances a counter that microbatches read (dropout's random draws) at a batch's begin, not at its end. Each
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
/// Changes nothing and returns false if its next value depends on another value.
bool countAtBegin(ReadOp read, WriteOp write);

/// Whether microbatches read and sum moving statistics only in forward. Each batch's statistics can then begin from
/// those of the batch before it.
bool movesInForward(ReadOp read, WriteOp write);

/// Takes moving statistics that depend only on sums of forward out of the update, into a run of their own. Schedule can
/// then have them written before the next batch's forward overwrites the sums:
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
