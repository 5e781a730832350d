// A new bundle in the place of an old one.
#pragma once

#include "par/format/Error.h"

#include <string>
#include <vector>

namespace par::format {

/// The folder that `path` means: without slashes at its end, and its target if it is a link.
Expected<std::string> resolveFolder(const std::string &path);
/// A new folder beside `folder`, whose name nothing had.
Expected<std::string> makeFolderBeside(const std::string &folder);
/// Puts `made`, which holds files of these names, in the place of `folder`, at once. The bundle that stood there is
/// removed, file by file as its manifest lists them; a folder that holds anything else stays as it was, and `made` is
/// removed.
Status replaceFolder(const std::string &made, const std::string &folder, const std::vector<std::string> &names);
/// Removes these files and empty folders in this order, and the folder if it is empty then.
void removeFiles(const std::string &folder, const std::vector<std::string> &names);
/// Fails with the reason in errno.
Error systemError(const std::string &path, const char *what);

} // namespace par::format
