// The trained weights, whole: as a safetensors file, or in the model that was compiled.
#pragma once

#include "par/session/Session.h"

namespace par::core {

/// Collective. Writes all parameters, frozen ones and buffers whole into one safetensors file, every rank its own
/// rectangles.
void exportWeights(Session &session, const std::string &path);

/// Throws Failure where exportModel would: hours of training must not end in that. With `checkData` the model's data is
/// read too, up to 1 GiB of each file, which one process of a host does for all.
void checkModelExport(const format::Manifest &manifest, const std::string &bundle, const std::string &path,
                      bool checkData);

/// Collective. Writes the model file that `bundle` was compiled from to `path`, with the weights as they are now;
/// files of weights beside the model are written beside `path`. Throws Failure if the model is not there or not the
/// compiled one, or the copy would lie on the model itself. A file that bears its name is complete.
void exportModel(Session &session, const std::string &bundle, const std::string &path);

} // namespace par::core
