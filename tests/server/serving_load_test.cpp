// A thousand streams at once: none lost, none held up by readers that do not read (B110).
#include <gtest/gtest.h>

#include "base/open_files.h"
#include "testing/serving_fixture.h"
#include "testing/stream_group.h"

namespace winnow {
namespace {

using testing::HttpConnection;
using testing::request_text;
using testing::ServingFixture;
using testing::ServingOptions;
using testing::text_script;

constexpr int kStreams = 1000;
constexpr int kStalledReaders = 20;
constexpr int kTokens = 40;

TEST(ServingLoad, AThousandStreamsBesideReadersThatDoNotRead) {
  raise_open_file_limit();
  ServingOptions options;
  options.engine.max_running_requests = kStreams + kStalledReaders;
  options.engine.num_pages = 16384;
  ServingFixture serving(text_script(std::string(kTokens - 1, 'x')), options);
  const std::string request =
      request_text("POST", "/v1/completions", R"({"prompt":"Hi","stream":true,"max_tokens":1000})");

  std::vector<std::unique_ptr<HttpConnection>> stalled;
  for (int i = 0; i < kStalledReaders; ++i) {
    stalled.push_back(std::make_unique<HttpConnection>(serving.port()));
    stalled.back()->set_receive_buffer(2048);
    stalled.back()->send(request);
  }
  testing::StreamGroup streams(serving.port(), kStreams, request);
  ASSERT_TRUE(streams.read_all());
  for (int i = 0; i < kStreams; ++i) {
    EXPECT_TRUE(streams.done(i));
    int events = 0;
    const std::string& received = streams.received(i);
    for (size_t at = 0; (at = received.find("\"text\":\"x\"", at)) != std::string::npos; ++at) {
      ++events;
    }
    EXPECT_EQ(events, kTokens - 1);
  }
  EXPECT_EQ(serving.get("/health").status, 200);
  stalled.clear();
  EXPECT_TRUE(serving.quiet());
}

}  // namespace
}  // namespace winnow
