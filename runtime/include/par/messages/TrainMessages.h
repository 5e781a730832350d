// The sentences about averages of weights and about steps that are left out. Every sentence in one table: a test walks
// it and finds each quoted. `{}` stands for a value.
#pragma once

#include "par/messages/Failure.h"

namespace par::core {

#define PAR_TRAIN_SENTENCES(M)                                                                                         \
  M(noAverages, "holds no averages of weights, which --ema takes; saves of bundles with train.ema hold them")          \
  M(keepsNoAverages, "keeps no averages of weights, which --ema exports; compile it with --set train.ema=0.999")       \
  M(updatesAnyway, "{} needs a bundle whose updates are left out then: compile it with --set train.on_nan=skip")       \
  M(skippedAll, "{} steps in a row are not finite, and --on-nan skip:{} skips fewer; {} is {} on rank {} ({}): {}")

enum class TrainSentence : uint8_t {
#define PAR_TRAIN_SENTENCE(key, text) key,
  PAR_TRAIN_SENTENCES(PAR_TRAIN_SENTENCE)
#undef PAR_TRAIN_SENTENCE
};

inline constexpr MessageText trainSentences[] = {
#define PAR_TRAIN_SENTENCE(key, text) {#key, text},
    PAR_TRAIN_SENTENCES(PAR_TRAIN_SENTENCE)
#undef PAR_TRAIN_SENTENCE
};
#undef PAR_TRAIN_SENTENCES

/// The sentence with each `{}` replaced by the next value.
template <typename... Values>
std::string say(TrainSentence sentence, const Values &...values) {
  return format(trainSentences[static_cast<size_t>(sentence)].text, shown(values)...);
}

} // namespace par::core
