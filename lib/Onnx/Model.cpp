#include "par/Onnx/Model.h"

namespace par::onnx {
namespace {

struct TypeRow {
  ElementType type;
  unsigned bytes;
  bool isFloat;
  const char *name;
};
constexpr TypeRow types[] = {
    {ElementType::F32, 4, true, "f32"},   {ElementType::U8, 1, false, "u8"},
    {ElementType::I8, 1, false, "i8"},    {ElementType::U16, 2, false, "u16"},
    {ElementType::I16, 2, false, "i16"},  {ElementType::I32, 4, false, "i32"},
    {ElementType::I64, 8, false, "i64"},  {ElementType::Bool, 1, false, "i1"},
    {ElementType::F16, 2, true, "f16"},   {ElementType::F64, 8, true, "f64"},
    {ElementType::U32, 4, false, "u32"},  {ElementType::U64, 8, false, "u64"},
    {ElementType::BF16, 2, true, "bf16"}, {ElementType::String, 0, false, "string"},
};

const TypeRow *find(ElementType type) {
  for (const TypeRow &row : types)
    if (row.type == type)
      return &row;
  return nullptr;
}

} // namespace

bool isUnsigned(ElementType type) {
  return type == ElementType::U8 || type == ElementType::U16 || type == ElementType::U32 || type == ElementType::U64;
}

unsigned byteSize(ElementType type) {
  const TypeRow *row = find(type);
  return row ? row->bytes : 0;
}

std::string spell(ElementType type) {
  const TypeRow *row = find(type);
  return row ? row->name : "type " + std::to_string(int32_t(type));
}

bool isFloat(ElementType type) {
  const TypeRow *row = find(type);
  return row && row->isFloat;
}

int64_t Tensor::elements() const {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= dim;
  return count;
}

std::string_view lookup(const Metadata &metadata, std::string_view key) {
  for (const auto &[name, value] : metadata)
    if (name == key)
      return value;
  return {};
}

const Attribute *Node::attribute(std::string_view wanted) const {
  for (const Attribute &candidate : attributes)
    if (candidate.name == wanted)
      return &candidate;
  return nullptr;
}

int64_t Node::intAttribute(std::string_view wanted, int64_t otherwise) const {
  const Attribute *found = attribute(wanted);
  return found && found->kind == Attribute::Int ? found->i : otherwise;
}

double Node::floatAttribute(std::string_view wanted, double otherwise) const {
  const Attribute *found = attribute(wanted);
  return found && found->kind == Attribute::Float ? found->f : otherwise;
}

std::string_view Node::stringAttribute(std::string_view wanted, std::string_view otherwise) const {
  const Attribute *found = attribute(wanted);
  return found && found->kind == Attribute::String ? std::string_view(found->s) : otherwise;
}

} // namespace par::onnx
