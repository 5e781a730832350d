// par-compile and ONNX's multi-device annotations.
#pragma once

#include "par/Devices/Devices.h"
#include "par/Driver/Compile.h"

namespace par {

/// The message of a call whose flags about devices are wrong; empty: they are not.
std::string checkDeviceFlags(const CompileOptions &options);

/// --check-onnx-devices: every finding goes to `sink`, as an error where a rule is broken, or a line to `out` for each
/// configuration. Returns the exit code.
int checkOnnxDevices(const CompileOptions &options, llvm::raw_ostream &out, DiagnosticSink sink);

/// --onnx-sharding: lays the plan of the model's annotations over `text` and writes it where --write-plan says;
/// `configuration` receives its name. `model` may be null. False after an error.
bool layDevices(const CompileOptions &options, const Model *model, DiagnosticSink sink, PlanText &text,
                std::string &configuration);

/// False, after errors, if the module after Propagate contradicts the annotations.
bool keepsDevices(const Model &model, const std::string &configuration, const Compiled &compiled, DiagnosticSink sink);

/// --emit=onnx: writes the model with annotations of the compiled step. Returns the exit code.
int emitOnnx(const CompileOptions &options, const Model &model, const Compiled &compiled, llvm::raw_ostream &out,
             DiagnosticSink sink);

} // namespace par
