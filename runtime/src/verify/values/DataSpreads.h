// On which ranks data from outside an entry are equal: tensors, inputs and coordinates.
#pragma once

#include "RankClasses.h"
#include "par/format/Manifest.h"

#include <map>

namespace par::verify {

class DataSpreads {
public:
  DataSpreads(const format::Manifest &manifest, RankClasses &classes) : manifest(manifest), classes(classes) {}

  RankClasses::Spread of(const format::Tensor &tensor);
  RankClasses::Spread of(const format::Input &input);
  RankClasses::Spread ofAxis(const std::string &axis);

private:
  const format::Manifest &manifest;
  RankClasses &classes;
  std::map<std::string, RankClasses::Spread> known;
  std::map<std::string, std::vector<const format::Tensor *>> copies; ///< a tensor and its copies, by its name
};

} // namespace par::verify
