// Bytes that travel in pieces.
#include "Streams.h"

#include <algorithm>

using namespace par::comm;

bool Outgoing::advance(HostCarrier &carrier) {
  bool moved = false;
  while (!underWay.empty() && *underWay.front()) {
    underWay.pop_front();
    moved = true;
  }
  while (posted < bytes && underWay.size() < piecesUnderWay) {
    size_t n = std::min(pieceBytes, bytes - posted);
    underWay.push_back(carrier.send(end.rank, end.tag, {from + posted, n}));
    posted += n;
    moved = true;
  }
  return moved;
}

bool Incoming::advance(HostCarrier &carrier) {
  bool moved = false;
  while (!underWay.empty() && *underWay.front().first) {
    arrived += underWay.front().second;
    underWay.pop_front();
    moved = true;
  }
  while (posted < bytes && underWay.size() < piecesUnderWay) {
    size_t n = std::min(pieceBytes, bytes - posted);
    // A place is free when what lay there has been taken.
    if (staged && posted - taken >= pieceBytes * piecesUnderWay)
      break;
    std::byte *place = staged ? room.data() + posted % (pieceBytes * piecesUnderWay) : to + posted;
    underWay.push_back({carrier.receive(end.rank, end.tag, {place, n}), n});
    posted += n;
    moved = true;
  }
  return moved;
}
