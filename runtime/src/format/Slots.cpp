// The text of slot expressions.
#include "Names.h"

#include <charconv>

using namespace par::format;

/// The slot of an operand without `@`.
static SlotExpr implied(Index index) {
  return {index == Index::Mb ? SlotExpr::Mb : index == Index::Ver ? SlotExpr::Ver : SlotExpr::Fixed, 0};
}

std::string par::format::slotText(const SlotExpr &slot, Index index) {
  if (slot == implied(index))
    return "";
  if (slot.base == SlotExpr::Fixed)
    return "@" + std::to_string(slot.offset);
  std::string text = slot.base == SlotExpr::Mb ? "@mb" : "@ver";
  if (slot.offset)
    text += (slot.offset > 0 ? "+" : "") + std::to_string(slot.offset);
  return text;
}

std::optional<SlotExpr> par::format::parseSlot(std::string_view text, Index index) {
  SlotExpr slot = implied(index);
  if (text.empty())
    return slot;
  text.remove_prefix(1);
  slot = {};
  if (text.starts_with("mb"))
    slot.base = SlotExpr::Mb, text.remove_prefix(2);
  else if (text.starts_with("ver"))
    slot.base = SlotExpr::Ver, text.remove_prefix(3);
  if (slot.base != SlotExpr::Fixed) {
    if (text.empty())
      return slot;
    if (text[0] != '+' && text[0] != '-')
      return std::nullopt;
    if (text[0] == '+')
      text.remove_prefix(1);
  }
  int32_t offset = 0; // 32 bits: adding a microbatch cannot wrap
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), offset);
  if (error != std::errc() || end != text.data() + text.size() || (slot.base == SlotExpr::Fixed && offset < 0))
    return std::nullopt;
  slot.offset = offset;
  return slot;
}
