// Changes ONNX files as messages, so that most mutants are still read and reach Import: a number becomes a border case,
// a name another name of the file, a list loses, repeats or swaps elements.
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <random>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class Mutator {
public:
  explicit Mutator(unsigned seed) : random(seed) {}

  void mutate(Message &root) {
    visit(root);
    if (places.empty())
      return;
    for (size_t changes = 1 + below(3); changes > 0; --changes)
      change(places[below(places.size())]);
  }

private:
  struct Place {
    Message *message;
    const FieldDescriptor *field;
  };

  size_t below(size_t count) { return random() % count; }

  /// Collects every field that is set, and every string.
  void visit(Message &message) {
    const Reflection *reflection = message.GetReflection();
    std::vector<const FieldDescriptor *> fields;
    reflection->ListFields(message, &fields);
    for (const FieldDescriptor *field : fields) {
      places.push_back({&message, field});
      bool isMessage = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && !field->is_repeated())
        strings.push_back(reflection->GetString(message, field));
      if (isMessage && !field->is_repeated())
        visit(*reflection->MutableMessage(&message, field));
      for (int i = 0; field->is_repeated() && i < reflection->FieldSize(message, field); ++i)
        if (isMessage)
          visit(*reflection->MutableRepeatedMessage(&message, field, i));
        else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
          strings.push_back(reflection->GetRepeatedString(message, field, i));
    }
  }

  int64_t number(int64_t old) {
    const int64_t borders[] = {0, 1, -1, 2, 3, 7, 16, 255, 65536, INT32_MAX, INT64_MAX, INT64_MIN, int64_t(1) << 33};
    switch (below(3)) {
    case 0:
      return int64_t(uint64_t(old) + 1);
    case 1:
      return int64_t(uint64_t(old) - 1);
    default:
      return borders[below(std::size(borders))];
    }
  }

  float real(float old) {
    const float borders[] = {0.f, -0.f, 1.f, -1.f, 0.5f, 1e30f, INFINITY, -INFINITY, NAN};
    return below(2) ? old * 2 : borders[below(std::size(borders))];
  }

  std::string text(std::string old) {
    if (below(3) != 0)
      return strings[below(strings.size())];
    old.resize(std::max<size_t>(old.size(), 4) * 2);
    size_t size = std::min(old.size(), old.size() / 2);
    old.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t *>(old.data()), size, old.size()));
    return old;
  }

  void change(const Place &place) {
    const Reflection *reflection = place.message->GetReflection();
    if (place.field->is_repeated() && below(2)) {
      int size = reflection->FieldSize(*place.message, place.field);
      if (size == 0)
        return;
      int first = below(size), last = below(size);
      if (below(2)) {
        reflection->SwapElements(place.message, place.field, first, last);
      } else {
        reflection->SwapElements(place.message, place.field, first, size - 1);
        reflection->RemoveLast(place.message, place.field);
        // The removed message has taken its submessages with it: only this field is left to change in this round.
        if (place.field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
          places.assign(1, {place.message, place.field});
      }
      return;
    }
    changeValue(place, reflection);
  }

#define PAR_SET(Kind, make)                                                                                            \
  if (!place.field->is_repeated())                                                                                     \
    reflection->Set##Kind(place.message, place.field, make(reflection->Get##Kind(*place.message, place.field)));       \
  else if (int size = reflection->FieldSize(*place.message, place.field)) {                                            \
    int at = below(size);                                                                                              \
    reflection->SetRepeated##Kind(place.message, place.field, at,                                                      \
                                  make(reflection->GetRepeated##Kind(*place.message, place.field, at)));               \
  }                                                                                                                    \
  break

  void changeValue(const Place &place, const Reflection *reflection) {
    switch (place.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      PAR_SET(Int32, number);
    case FieldDescriptor::CPPTYPE_INT64:
      PAR_SET(Int64, number);
    case FieldDescriptor::CPPTYPE_UINT64:
      PAR_SET(UInt64, number);
    case FieldDescriptor::CPPTYPE_FLOAT:
      PAR_SET(Float, real);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      PAR_SET(Double, real);
    case FieldDescriptor::CPPTYPE_STRING:
      PAR_SET(String, text);
    case FieldDescriptor::CPPTYPE_ENUM:
      if (!place.field->is_repeated())
        reflection->SetEnumValue(place.message, place.field, below(30));
      break;
    default:
      break; // messages are changed through their own fields
    }
  }
#undef PAR_SET

  std::mt19937 random;
  std::vector<Place> places;
  std::vector<std::string> strings{"", "Add", "MatMul", "Reshape", "Loop"};
};

/// ONNX's messages with reflection: the reader's own classes are protobuf's light ones, which have none.
class Schema {
public:
  Schema() {
    google::protobuf::FileDescriptorSet files;
    std::ifstream file(PAR_ONNX_SCHEMA, std::ios::binary);
    if (files.ParseFromIstream(&file) && files.file_size() == 1 && pool.BuildFile(files.file(0)))
      prototype = factory.GetPrototype(pool.FindMessageTypeByName("onnx.ModelProto"));
    if (!prototype)
      std::abort();
  }
  std::unique_ptr<Message> make() const { return std::unique_ptr<Message>(prototype->New()); }

private:
  google::protobuf::DescriptorPool pool;
  google::protobuf::DynamicMessageFactory factory;
  const Message *prototype = nullptr;
};

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  static const Schema schema;
  std::unique_ptr<Message> model = schema.make();
  // One in eight inputs is mutated as bytes, for the reader of the format itself.
  if (seed % 8 == 0 || !model->ParseFromArray(data, int(size)))
    return LLVMFuzzerMutate(data, size, maxSize);
  Mutator(seed).mutate(*model);
  std::string bytes;
  if (!model->SerializePartialToString(&bytes) || bytes.size() > maxSize)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}
