// The operators of ONNX's own domain, and what becomes of each.
#ifndef PAR_IMPORT_OPERATORS_H
#define PAR_IMPORT_OPERATORS_H

#include "llvm/ADT/StringRef.h"

namespace llvm {
class raw_ostream;
}

namespace par {

/// Why an operator cannot be, "" if nothing stands against it: `the shape of its output depends on data`.
llvm::StringRef refusalOf(llvm::StringRef opType);

/// A table in Markdown: every operator with its first opset, whether it is read, with which limits, or why it is
/// refused. What is read is what Import's tables hold.
void printOperators(llvm::raw_ostream &os);

} // namespace par

#endif // PAR_IMPORT_OPERATORS_H
