// par-run --generate: continues prompts, token by token.
#pragma once

#include "par/app/Job.h"

namespace par::core {

/// Answers the requests of --generate, in order, on standard output. Collective; returns the exit code.
int generate(const Job &job, Session &session);

} // namespace par::core
