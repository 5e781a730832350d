#ifndef PAR_LIB_IMPORT_ARRAYFILE_H
#define PAR_LIB_IMPORT_ARRAYFILE_H

#include "par/Import/StaticTensor.h"

#include "llvm/ADT/StringRef.h"

namespace par {

/// The array `name` of a safetensors file, or the only one that it has; nothing and the reason if there is no such one,
/// or the file is broken. Every length is checked against the file before it is used.
std::optional<StaticTensor> readArray(llvm::StringRef file, llvm::StringRef name, std::string &reason);

} // namespace par

#endif
