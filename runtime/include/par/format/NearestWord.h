// The known word that is nearest to a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace par::format {

/// `; did you mean "WORD"?` with the word of `words` that takes the fewest inserted, dropped and changed letters, the
/// first one of several; nothing if that is more than two letters and more than a third of the text's.
std::string didYouMean(std::string_view text, std::span<const std::string_view> words);

} // namespace par::format
