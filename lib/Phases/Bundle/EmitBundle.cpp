#include "EmitManifest.h"
#include "EmitProgram.h"
#include "par/Phases/Bundle/Bundle.h"

using namespace mlir;

namespace par {

FailureOr<format::Bundle> emitBundle(ModuleOp module, const CompiledKernels &kernels, const BundleOptions &options) {
  format::Bundle bundle;
  BundleTables tables(module, kernels);
  if (module.getOps<ProgramOp>().empty())
    return module.emitError() << "has no program to make a bundle of";
  for (ProgramOp program : module.getOps<ProgramOp>()) {
    FailureOr<format::Program> made = ProgramEmitter(program, tables).emit();
    if (failed(made))
      return failure();
    bundle.programs.push_back(std::move(*made));
  }
  bundle.provenance = tables.provenance;
  if (failed(ManifestEmitter(module, options, bundle).emit()))
    return failure();
  sayMeans(bundle.manifest.outputs);
  bundle.manifest.communicators = tables.communicators.list();
  bundle.manifest.device = kernels.device;
  StringRef sm = kernels.isa;
  if (kernels.device == "cuda" && sm.consume_front("sm_"))
    bundle.manifest.needs.push_back("sm: " + sm.str());
  if (!kernels.ptx.empty())
    bundle.blobs.push_back({"kernels.ptx", kernels.ptx});
  for (const Cubin &cubin : kernels.cubins)
    bundle.blobs.push_back({"kernels-sm" + cubin.sm.substr(3) + ".cubin", cubin.bytes});
  if (!kernels.object.empty()) {
    bundle.blobs.push_back({"kernels-x86.so", kernels.object});
    bundle.manifest.needs.push_back("isa: " + kernels.isa);
  }
  if (!options.plan.empty())
    bundle.blobs.push_back({"plan.yaml", options.plan});
  return bundle;
}

} // namespace par
