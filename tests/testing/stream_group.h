// Many event streams read at once by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "testing/http_client.h"

namespace winnow::testing {

class StreamGroup {
 public:
  // Opens count connections and sends each the request.
  StreamGroup(int port, int count, std::string_view request);

  // Reads whatever comes until every stream has ended; false when nothing comes for a minute.
  bool read_all();
  int count() const { return static_cast<int>(streams_.size()); }
  // The stream saw [DONE].
  bool done(int idx) const { return streams_[static_cast<size_t>(idx)].done; }
  const std::string& received(int idx) const { return streams_[static_cast<size_t>(idx)].received; }
  void close(int idx) { streams_[static_cast<size_t>(idx)].connection->close(); }

 private:
  struct Stream {
    std::unique_ptr<HttpConnection> connection;
    std::string received;
    bool done = false;
  };
  std::vector<Stream> streams_;
};

}  // namespace winnow::testing
