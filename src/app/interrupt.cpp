#include "app/interrupt.h"

#include <csignal>

namespace winnow::app {
namespace {

std::atomic<bool> stop_asked = false;

void ask_to_stop(int number) {
  stop_asked = true;
  std::signal(number, SIG_DFL);
}

}  // namespace

const std::atomic<bool>& watch_for_interrupt() {
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  return stop_asked;
}

}  // namespace winnow::app
