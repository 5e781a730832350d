// Elements of a file's type as an input's: what widens, what is rounded, what must fit, and pixels.
#pragma once

#include "par/files/Convert.h"
#include "par/format/Manifest.h"

#include <map>
#include <string>
#include <vector>

namespace par::core {

/// u8 as floats: (pixel / 255 - mean) / spread, with one number of each for all channels, or one for each (dim 1 of the
/// input).
struct Pixels {
  std::vector<float> mean = {0}, spread = {1};
};
/// By input.
using PixelFeeds = std::map<std::string, Pixels>;

/// "x", "x=0.5/0.25", "x=0.485,0.456,0.406/0.229,0.224,0.225": adds the pixels of an input. False if it is none of
/// these, or a spread is not above 0.
bool readPixels(const std::string &text, PixelFeeds &feeds);

/// Whether data of one type become the other's: truth values and integers any integers, if each value fits; floats any
/// floats, rounded; truth values floats, too.
bool converts(DType from, DType to);

/// Whether that can change a value: "f64 in the file and f32 in the bundle: rounded".
bool isRounded(DType from, DType to);

/// Converts elements; returns the index of the first that does not fit, `count` if all do.
uint64_t convertData(DType from, const std::byte *data, DType to, std::byte *result, uint64_t count);

/// Pixels of one sample of the input.
void convertPixels(const std::byte *data, const Pixels &pixels, const format::Input &input, std::byte *result,
                   uint64_t count);

} // namespace par::core
