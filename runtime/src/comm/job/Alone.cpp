#include "par/comm/job/Alone.h"

#include "Base.h"
#include "comm/engine/Exchange.h"
#include "comm/shared/Memory.h"
#include "par/messages/Failure.h"

using namespace par::comm;

namespace {

/// Comes before the control plane, which begins with a reference to it.
struct OwnState {
  Mapping memory = mapPrivate(SharedState::bytesFor(1));
  SharedState &state = *SharedState::make(memory.bytes.data(), 1);
};

class GuestControl final : private OwnState, public SharedStateControl {
public:
  explicit GuestControl(const std::string &bundle) : SharedStateControl(state, bundle, 0) {}

  uint32_t localRank() const override { return 0; }

  std::unique_ptr<Endpoint> connect(std::span<const Members> table, size_t arenaBytes) override {
    Mapping arena = mapPrivate(arenaBytes), exchange = mapPrivate(exchangeBytes(table));
    auto fabric = std::make_shared<Fabric>();
    fabric->sharedState = &state;
    fabric->arenas = {arena.bytes};
    fabric->table.assign(table.begin(), table.end());
    fabric->areas = exchangeAreas(fabric->table, exchange.bytes.data());
    fabric->mappings = {arena.owner, exchange.owner};
    return makeEndpoint(std::move(fabric), 0);
  }

  [[noreturn]] void fail(int code, std::string_view message) override {
    throw par::core::Failure::verbatim(std::string(message), code);
  }

protected:
  std::vector<std::string> exchange(Sharing, std::string_view, std::string_view value, uint32_t) override {
    return {std::string(value)};
  }
};

} // namespace

std::unique_ptr<Control> par::comm::controlOfGuest(const std::string &bundle) {
  return std::make_unique<GuestControl>(bundle);
}
