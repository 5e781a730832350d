// Files told apart without reading all of them: copies of one are alike, two saves or data sets are not.
#pragma once

#include <string>

namespace par::core {

/// Of a file: its size and some of its content, spread over it; 32 hex digits. 64 pages at most are read. "" where it
/// cannot be read.
std::string sampleOf(const std::string &path);

} // namespace par::core
