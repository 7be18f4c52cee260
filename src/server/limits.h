// What one request may ask for, checked before any work is done for it (fault B107). Beyond them:
// 400 with the field's name and the limit, 413 for the body (HttpServerOptions).
#pragma once

#include <cstdint>

namespace winnow::server {

inline constexpr size_t kMaxJsonDepth = 128;
// Parsed, "0," takes forty bytes. Ids of 4 million tokens are below it.
inline constexpr size_t kMaxJsonValues = size_t{1} << 22;
inline constexpr int64_t kMaxChoices = 128;     // n
inline constexpr int64_t kMaxPrompts = 4096;    // of one request
inline constexpr int64_t kMaxSequences = 4096;  // prompts times n
inline constexpr int64_t kMaxMessages = 10000;
inline constexpr int64_t kMaxTools = 1024;
inline constexpr int64_t kMaxTopLogprobs = 128;
inline constexpr int64_t kMaxLogprobTokenIds = 256;  // token_ids_logprob
// Log-probs of prompt tokens in one answer: 16 million tokens of one body with 128 alternatives
// each would not fit any memory.
inline constexpr int64_t kMaxPromptLogprobs = int64_t{1} << 24;
// Tokens of all prompts of one request, each counted for every choice.
inline constexpr int64_t kMaxPromptTokens = int64_t{1} << 25;
inline constexpr int64_t kMaxDetokenizedIds = int64_t{1} << 21;
inline constexpr int64_t kMaxLogitBias = 1024;
inline constexpr int64_t kMaxStops = 64;        // stop strings, and stop_token_ids
inline constexpr int64_t kMaxStopBytes = 1024;  // of one stop string
inline constexpr int64_t kMaxRidBytes = 256;
inline constexpr int64_t kMaxNewTokens = INT32_MAX;
inline constexpr double kMaxTemperature = 1000;
// Below, a logit divided by it may leave fp32.
inline constexpr double kMinRepetitionPenalty = 1e-6;
inline constexpr double kMaxLogitBiasValue = 1e6;

}  // namespace winnow::server
