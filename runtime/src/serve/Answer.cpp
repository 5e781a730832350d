#include "Answer.h"

#include "JsonArray.h"
#include "par/format/SafetensorsHeader.h"

#include <cstring>
#include <nlohmann/json.hpp>

namespace par::serve {

using nlohmann::ordered_json;

static std::string dumped(const ordered_json &value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// "PLACE: error: SENTENCE\n  note: ...", taken apart. The place "request" says nothing.
static ordered_json describeError(const std::string &text) {
  constexpr std::string_view mark = "error: ", noteMark = "\n  note: ";
  size_t notes = std::min(text.find('\n'), text.size()), at = text.substr(0, notes).find(mark);
  std::string place = at == std::string::npos || at < 2 ? "" : text.substr(0, at - 2);
  size_t begin = at == std::string::npos ? 0 : at + mark.size();
  ordered_json error;
  if (!place.empty() && place != "request")
    error["input"] = place;
  error["message"] = text.substr(begin, notes - begin);
  std::string rest = text.substr(notes);
  for (size_t found = rest.find(noteMark); found != std::string::npos; found = rest.find(noteMark))
    rest.replace(found, noteMark.size(), found ? "; " : "");
  if (!rest.empty())
    error["notes"] = rest;
  return error;
}

/// The fields of a decoder's last line.
static std::string encodeContinuations(const Request &request, const Answer &answer) {
  size_t fed = 0, made = 0;
  for (const std::vector<int64_t> &prompt : request.decoding.prompts)
    fed += prompt.size();
  ordered_json tokens = ordered_json::array(), ends = ordered_json::array();
  for (const Continuation &one : answer.continuations) {
    made += one.tokens.size();
    tokens.push_back(one.tokens);
    ends.push_back(one.end);
  }
  ordered_json fields = {{"tokens", tokens}, {"ends", ends}, {"prompt_tokens", fed}};
  if (request.streams)
    fields = {{"done", {{"prompt_tokens", fed}, {"tokens", made}}}};
  std::string text = dumped(fields);
  return text.substr(1, text.size() - 2);
}

std::string encodeToken(const Request &request, uint64_t prompt, int64_t token, const std::string &end) {
  std::string text = request.id.empty() ? "{" : "{\"id\":" + request.id + ",";
  text += core::format("\"prompt\":{},\"token\":{}", prompt, token);
  if (!end.empty())
    text += ",\"end\":\"" + end + "\"";
  return framed(Form::Json, text + "}");
}

static std::string encodeJson(const Request &request, const Answer &answer) {
  std::string text = request.id.empty() ? "{" : "{\"id\":" + request.id + ",";
  if (!answer.error.empty())
    return text + "\"error\":" + dumped(describeError(answer.error)) + "}";
  if (!request.decoding.prompts.empty())
    return text + encodeContinuations(request, answer) + "}";
  text += "\"outputs\":{";
  for (const ResultArray &result : answer.results) {
    text += (text.ends_with('{') ? "" : ",") + dumped(result.name) + ":";
    writeArray(text, result.type, result.shape, result.bytes);
  }
  return text + "}}";
}

/// A whole file of safetensors: 8 bytes of length, the header, the arrays.
static std::string encodeFile(const Request &request, const Answer &answer) {
  ordered_json header = ordered_json::object();
  if (!request.id.empty())
    header["__metadata__"] = {{"id", ordered_json::parse(request.id)}};
  uint64_t end = 0;
  for (const ResultArray &result : answer.results) {
    header[result.name] = {{"dtype", format::safetensorsName(result.type)},
                           {"shape", result.shape},
                           {"data_offsets", {end, end + result.bytes.size()}}};
    end += result.bytes.size();
  }
  std::string text = dumped(header);
  text.resize((text.size() + 7) / 8 * 8, ' '); // arrays begin at a multiple of 8, as the format wants
  uint64_t length = text.size();
  std::string file(reinterpret_cast<const char *>(&length), sizeof length);
  file.reserve(sizeof length + length + end);
  file += text;
  for (const ResultArray &result : answer.results)
    file.append(reinterpret_cast<const char *>(result.bytes.data()), result.bytes.size());
  return file;
}

std::string encode(const Request &request, const Answer &answer) {
  if (request.form == Form::Json || !answer.error.empty())
    return framed(Form::Json, encodeJson(request, answer));
  return framed(Form::Safetensors, encodeFile(request, answer));
}

} // namespace par::serve
