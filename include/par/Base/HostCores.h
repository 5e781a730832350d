// The cores of this host.
#pragma once

namespace par {

/// Cores that this process could run on when this was first asked: those that a run of ranks here has, also after
/// par-compile --threads has left this process fewer.
unsigned coresOfHost();

} // namespace par
