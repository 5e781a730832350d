// A batch whose arrays the caller's process may still be copying into the exchange.
#pragma once

#include "api/Commands.h"
#include "api/Exchange.h"

namespace par::api {

class ArrivingBatch final : public core::FedBatch {
public:
  ArrivingBatch(const format::Manifest &manifest, const Exchange &exchange);

  /// Takes these arrays. isThere() waits until Exchange::arrived() has reached `number`.
  void expect(const format::Manifest &manifest, const FedArrays &arrays, uint64_t number);
  bool isThere() const override;

private:
  const Exchange &exchange;
  uint64_t number = 0;
};

} // namespace par::api
