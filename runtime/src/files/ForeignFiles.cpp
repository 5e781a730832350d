#include "par/files/ForeignFiles.h"

#include "par/messages/Failure.h"

#include <filesystem>

namespace par::core {

namespace {

struct Format {
  const char *endings; ///< each followed by a blank
  const char *command; ///< `{}`: the file; the one that is written
};

constexpr Format formats[] = {
    {".pt .pth .bin .ckpt ", "import torch, safetensors.torch as s; s.save_file({k: v.contiguous().clone() "
                             "for k, v in torch.load(\"{}\", "
                             "map_location=\"cpu\", weights_only=True).items()}, \"{}\")"},
    {".npz .npy ", "import numpy, safetensors.numpy as s; s.save_file(dict(numpy.load(\"{}\")), \"{}\")"},
};

} // namespace

std::string waysToConvert(const std::string &path) {
  std::filesystem::path file = path;
  std::string ending = file.extension().string() + " ";
  for (const Format &known : formats)
    if (ending.size() > 1 && std::string(known.endings).find(ending) != std::string::npos) {
      std::string written = file.replace_extension(".safetensors").string();
      return format("; python3 -c '{}' writes {} of it", format(known.command, path, written), written);
    }
  return "";
}

} // namespace par::core
