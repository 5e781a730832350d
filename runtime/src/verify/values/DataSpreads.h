// On which ranks data from outside an entry are equal: tensors, inputs and coordinates.
#pragma once

#include "RankClasses.h"
#include "format/LayoutNumbers.h"

#include <map>

namespace par::verify {

class DataSpreads {
public:
  DataSpreads(const format::Manifest &manifest, RankClasses &classes) : manifest(manifest), classes(classes) {}

  RankClasses::Spread of(const format::Tensor &tensor);
  RankClasses::Spread of(const format::Input &input);
  RankClasses::Spread ofAxis(const std::string &axis);

private:
  RankClasses::Spread ofAll(const std::vector<const format::Tensor *> &tensors);

  const format::Manifest &manifest;
  RankClasses &classes;
  std::map<std::string, RankClasses::Spread> known;
  std::map<std::string, std::vector<const format::Tensor *>> copies; ///< a tensor and its copies, by its name
  format::LayoutNumbers layouts;
  std::map<uint32_t, RankClasses::Spread> alone; ///< of a tensor without copies, by its layout
};

} // namespace par::verify
