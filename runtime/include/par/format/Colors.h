// Colours of errors and warnings on standard error.
#pragma once

#include <string>
#include <string_view>

namespace par::format {

/// Asks for colours in what this process and those that it starts say: `always`, `never`, or `auto`: on a terminal,
/// unless NO_COLOR is set. To be called before there are threads: PAR_COLOR of the environment holds the answer.
void setColors(std::string_view when);

/// A line in which `error:` and `warning:` are marked, if colours were asked for; else as it is.
std::string colored(std::string line);

} // namespace par::format
