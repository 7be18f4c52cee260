// What a failing call said.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace winnow::testing {

// The message of the Error that body throws; a test failure and "" when it throws none.
template <typename Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no Error";
  return "";
}

// A clear line: one line that holds every part.
inline void expect_says(const std::string& message, std::initializer_list<const char*> parts) {
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  for (const char* part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << message << "\n  lacks: " << part;
  }
}

}  // namespace winnow::testing
