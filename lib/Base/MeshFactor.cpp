#include "par/Base/MeshFactor.h"

using namespace par;

std::vector<int64_t> par::primeFactors(int64_t number) {
  std::vector<int64_t> factors;
  for (int64_t prime = 2; prime <= number / prime; ++prime)
    for (; number % prime == 0; number /= prime)
      factors.push_back(prime);
  if (number > 1)
    factors.push_back(number);
  return factors;
}

std::vector<std::pair<std::string, int64_t>> par::refineAxis(llvm::StringRef name, int64_t size) {
  std::vector<int64_t> factors = primeFactors(size);
  if (factors.size() == 1)
    return {{name.str(), size}};
  std::vector<std::pair<std::string, int64_t>> axes;
  for (size_t i = 0; i < factors.size(); ++i)
    axes.push_back({name.str() + "." + std::to_string(i), factors[factors.size() - 1 - i]});
  return axes;
}

std::vector<std::pair<std::string, int64_t>> par::refineAxis(llvm::StringRef name, int64_t size, int64_t common) {
  std::vector<std::pair<std::string, int64_t>> axes = refineAxis(name, common);
  for (auto &[axis, prime] : axes) {
    if (size % prime == 0)
      size /= prime;
    else
      prime = 1;
  }
  return axes;
}
