// Descriptors of the cuDNN stub: enough to check each call against the rules of the graph API.
#pragma once

#include "Machine.h"

#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace par::stub {

/// Statuses of cuDNN.
inline constexpr int dnnBadParam = 2000, dnnNotFinalized = 2004, dnnShapeMismatch = 2008, dnnAttributeType = 2010,
                     dnnDescriptorType = 2012, dnnNotSupported = 3000;

struct DnnDescriptor {
  struct Value {
    int type = 0;
    int64_t count = 0;
    std::vector<std::byte> bytes;
  };

  int kind = 0;
  bool closed = false;
  std::map<int, Value> values; ///< by attribute

  bool has(int attribute) const { return values.count(attribute) > 0; }
  template <typename T>
  std::vector<T> all(int attribute) const {
    auto place = values.find(attribute);
    std::vector<T> elements(place == values.end() ? 0 : static_cast<size_t>(place->second.count));
    if (!elements.empty())
      std::memcpy(elements.data(), place->second.bytes.data(), elements.size() * sizeof(T));
    return elements;
  }
  template <typename T>
  T one(int attribute) const {
    return all<T>(attribute).at(0);
  }
  const DnnDescriptor &other(int attribute) const { return *one<const DnnDescriptor *>(attribute); }
};

/// An attribute that descriptors of a kind take.
struct DnnRule {
  int attribute, type;
  bool required = true;
};

/// A refusal: status and words; status 0 is none.
struct DnnAnswer {
  int status = 0;
  std::string words;
};

/// One kind of descriptor in the stub: its attributes, and conditions on them when it is finalized.
struct DnnKindRules {
  const char *name;
  std::vector<DnnRule> rules;
  std::function<DnnAnswer(const DnnDescriptor &)> check;
};

/// An operation that the stub computes: tensors by attribute, and the work on their addresses.
struct DnnOperationRules {
  std::vector<int> tensors;
  std::function<std::function<void()>(const DnnDescriptor &, const std::map<int64_t, void *> &addressOf)> work;
};

/// Types of attributes that several files name.
inline constexpr int typeDataType = 1, typeInt64 = 3, typeDescriptor = 15;
/// Attributes of tensors that several files read.
inline constexpr int dnnAlignment = 900, dnnDataType = 901, dnnDims = 902, dnnStrides = 903, dnnId = 906;

/// The rules of all kinds; each file of the stub adds its own when the library is opened.
std::map<int, DnnKindRules> &dnnKinds();
std::map<int, DnnOperationRules> &dnnOperations();

} // namespace par::stub
