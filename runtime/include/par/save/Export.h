// The trained weights, whole: as a safetensors file, or in the model that was compiled.
#pragma once

#include "par/session/Session.h"

namespace par::core {

/// Whether this names a file that can be written: .safetensors or .onnx.
bool isExportFile(const std::string &path);
/// Whether this names a folder: one that is there, or a name with a slash at its end.
bool isExportFolder(const std::string &path);

/// Collective. Writes all parameters, frozen ones and buffers whole into one safetensors file, every rank its own
/// rectangles. With `averages` parameters that have an average have its values. Into a folder as save_pretrained of
/// transformers does: model.safetensors, or, where that has more than
/// `maxShard` bytes, several files and model.safetensors.index.json.
void exportWeights(Session &session, const std::string &path, uint64_t maxShard, bool averages);

/// Throws Failure where the folder has files of weights that a reader would take for those that an export writes.
void checkFolderExport(const format::Manifest &manifest, const std::string &folder, uint64_t maxShard);

/// Throws Failure where exportModel would: hours of training must not end in that. With `checkData` the model's data is
/// read too, up to 1 GiB of each file, which one process of a host does for all.
void checkModelExport(const format::Manifest &manifest, const std::string &bundle, const std::string &path,
                      bool checkData);

/// Collective. Writes the model file that `bundle` was compiled from to `path`, with the weights as they are now;
/// files of weights beside the model are written beside `path`. Throws Failure if the model is not there or not the
/// compiled one, or the copy would lie on the model itself. A file that bears its name is complete.
void exportModel(Session &session, const std::string &bundle, const std::string &path, bool averages);

} // namespace par::core
