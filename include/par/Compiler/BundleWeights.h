// A copy of the model's weights in its bundle, which then needs no model beside it.
#pragma once

#include "par/Compiler/CompileDiagnostic.h"
#include "par/format/Bundle.h"

namespace par {

/// Adds weights.safetensors to the bundle of the model at path `model`: each parameter and buffer under its name, in
/// the type and shape of the model's file. All of it is in memory until the bundle is written. Returns false after an
/// error at the model: a weight without a value, or a file that cannot be read.
bool addWeights(format::Bundle &bundle, const std::string &model, DiagnosticSink sink);

} // namespace par
