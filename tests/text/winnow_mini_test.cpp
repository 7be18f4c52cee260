// The tokenizer and chat template that ship in models/winnow-mini, read by Winnow itself.
#include <gtest/gtest.h>
#include <fstream>
#include <string>

#include "base/json.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"

namespace winnow::text {
namespace {

const std::string kModel = WINNOW_SOURCE_DIR "/models/winnow-mini";

TEST(WinnowMini, DigitsAreSingleTokens) {
  const auto tokenizer = load_tokenizer(kModel);
  const auto ids = tokenizer->encode("2048 * 37", ControlTokens::kPlain);
  std::vector<std::string> pieces;
  for (const int32_t id : ids) pieces.emplace_back(tokenizer->token_bytes(id));
  EXPECT_EQ(pieces, (std::vector<std::string>{"2", "0", "4", "8", " *", " ", "3", "7"}));
}

TEST(WinnowMini, RoleTokensVanishAndTagsStay) {
  const auto tokenizer = load_tokenizer(kModel);
  EXPECT_EQ(tokenizer->vocab_size(), 2048);
  for (const char* role : {"<|endoftext|>", "[gMASK]", "<sop>", "<|user|>", "<|observation|>"}) {
    const auto id = tokenizer->token_id(role);
    ASSERT_TRUE(id.has_value()) << role;
    EXPECT_TRUE(tokenizer->is_special(*id)) << role;
  }
  for (const char* tag : {"<think>", "</think>", "<tool_call>", "<arg_key>", "</arg_value>"}) {
    const auto id = tokenizer->token_id(tag);
    ASSERT_TRUE(id.has_value()) << tag;
    EXPECT_FALSE(tokenizer->is_special(*id)) << tag;
  }
}

TEST(WinnowMini, HeldOutTextComesBack) {
  const auto tokenizer = load_tokenizer(kModel);
  std::ifstream file(WINNOW_SOURCE_DIR "/tools/mini/heldout/tools.jsonl");
  std::string line;
  int lines = 0;
  for (; lines < 50 && std::getline(file, line); ++lines) {
    const auto ids = tokenizer->encode(line, ControlTokens::kPlain);
    EXPECT_EQ(tokenizer->decode(ids, false), line);
  }
  EXPECT_EQ(lines, 50);
}

TEST(WinnowMini, ChatsAreInGlmsFormat) {
  const auto format = load_chat_format(kModel, "GlmMoeDsaForCausalLM");
  ChatRequest request;
  request.messages = json::parse(R"([
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": "Book a table for 4 people."},
    {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "id": "call_0",
      "function": {"name": "book_table", "arguments": "{\"people\": 4, \"at\": {\"hour\": 8}}"}}]},
    {"role": "tool", "content": "{\"status\": \"booked\"}", "tool_call_id": "call_0"}])")
                         .value();
  request.chat_template_kwargs = json::parse(R"({"enable_thinking": false})").value();
  const auto pieces = format->render(request);
  ASSERT_TRUE(pieces.ok()) << pieces.status().message;
  EXPECT_EQ(
      joined(pieces.value()),
      "[gMASK]<sop><|system|>Be short.<|user|>Book a table for 4 people.<|assistant|></think>"
      "<tool_call>book_table<arg_key>people</arg_key><arg_value>4</arg_value><arg_key>at</arg_key>"
      "<arg_value>{\"hour\": 8}</arg_value></tool_call><|observation|><tool_response>{\"status\": "
      "\"booked\"}</tool_response><|assistant|></think>");
}

}  // namespace
}  // namespace winnow::text
