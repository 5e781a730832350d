// Files told apart without reading all of them: copies of one are alike, two saves or data sets are not.
#pragma once

#include <string>

namespace par::core {

/// Hash of a file's size and of up to 64 pages spread over its content; 32 hex digits. "" if it cannot be read.
std::string sampleOf(const std::string &path);

} // namespace par::core
