// A folder of weights as Hugging Face's save_pretrained writes one: a .safetensors file, or several and their index; of
// older versions pytorch_model.bin.
#include "par/weights/Weights.h"

#include "par/messages/Failure.h"

#include <algorithm>

namespace par::core {

namespace fs = std::filesystem;

namespace {

/// Names in the folder that end so, the model's own first; a repository may hold several (variants, adapters).
std::vector<std::string> namesThatEnd(const std::vector<std::string> &names, const std::string &ending) {
  std::vector<std::string> found;
  std::copy_if(names.begin(), names.end(), std::back_inserter(found),
               [&](const std::string &name) { return name.ends_with(ending); });
  for (const char *own : {"model", "pytorch_model"})
    if (std::find(found.begin(), found.end(), own + ending) != found.end())
      return {own + ending};
  return found;
}

} // namespace

std::string findWeights(const std::string &path) {
  std::error_code error;
  if (!fs::is_directory(path, error) || fs::exists(fs::path(path) / "index.json", error))
    return path; // a file, or a save
  std::vector<std::string> names;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  for (const char *ending : {".safetensors.index.json", ".safetensors", ".bin.index.json", ".bin", ".pt", ".pth"}) {
    std::vector<std::string> found = namesThatEnd(names, ending);
    if (found.size() > 1)
      throw Failure::at(path, Message::weightsSeveral, found[0], found[1]);
    if (found.size() == 1)
      return (fs::path(path) / found[0]).string();
  }
  return path;
}

} // namespace par::core
