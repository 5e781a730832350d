// The control plane of a job of one rank that is a guest in its process.
#pragma once

#include "par/comm/job/Control.h"

namespace par::comm {

/// Takes no signals, starts no threads, and prints nothing: fail() throws core::Failure. `bundle` is for messages.
std::unique_ptr<Control> controlOfGuest(const std::string &bundle);

} // namespace par::comm
