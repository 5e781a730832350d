#include "par/Base/Provenance.h"

#include "mlir/IR/Builders.h"

namespace par {

mlir::Location makeLocation(mlir::MLIRContext *context, const Provenance &provenance) {
  mlir::Builder builder(context);
  auto names = builder.getDictionaryAttr({builder.getNamedAttr("module", builder.getStringAttr(provenance.module)),
                                          builder.getNamedAttr("node", builder.getStringAttr(provenance.node)),
                                          builder.getNamedAttr("path", builder.getStringAttr(provenance.path))});
  mlir::Location source = mlir::UnknownLoc::get(context);
  if (!provenance.file.empty())
    source = mlir::FileLineColLoc::get(context, provenance.file, provenance.line, 0);
  return mlir::FusedLoc::get(context, {source}, names);
}

static std::optional<Provenance> read(mlir::FusedLoc fused) {
  auto names = llvm::dyn_cast_if_present<mlir::DictionaryAttr>(fused.getMetadata());
  if (!names)
    return std::nullopt;
  auto text = [&](llvm::StringRef key) {
    auto value = names.getAs<mlir::StringAttr>(key);
    return value ? value.getValue() : llvm::StringRef();
  };
  if (!names.contains("node"))
    return std::nullopt;
  Provenance result{text("node"), text("module"), text("path"), "", 0};
  for (mlir::Location part : fused.getLocations())
    if (auto source = llvm::dyn_cast<mlir::FileLineColLoc>(part)) {
      result.file = source.getFilename();
      result.line = source.getLine();
    }
  return result;
}

std::optional<Provenance> getProvenance(mlir::Location location) {
  std::optional<Provenance> found;
  location->walk([&](mlir::Location part) {
    if (auto fused = llvm::dyn_cast<mlir::FusedLoc>(part))
      found = read(fused);
    return found ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  return found;
}

std::string describe(const Provenance &provenance) {
  std::string text = provenance.module.str();
  if (!provenance.file.empty())
    text += (text.empty() ? "" : ", ") + provenance.file.str() + ":" + std::to_string(provenance.line);
  return text;
}

} // namespace par
