#include "server/http_exchange.h"

#include <fmt/format.h>

#include <utility>

#include "server/status_text.h"

namespace winnow::server {

std::string response_head(int status,
                          std::string_view content_type,
                          const std::vector<Header>& headers,
                          std::string_view length_header,
                          bool keep_alive) {
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\nserver: winnow\r\n", status, status_text(status));
  if (!content_type.empty()) head += fmt::format("content-type: {}\r\n", content_type);
  head += "access-control-allow-origin: *\r\n";
  for (const Header& h : headers) head += fmt::format("{}: {}\r\n", h.name, h.value);
  head += length_header;
  head += keep_alive ? "\r\n" : "connection: close\r\n\r\n";
  return head;
}

void HttpExchange::wake_unlocked(std::unique_lock<std::mutex>& lock) {
  const bool needed = !std::exchange(wake_pending_, true);
  lock.unlock();
  if (needed) wake_();
}

void HttpExchange::push(std::string bytes, int64_t key, std::unique_lock<std::mutex>& lock) {
  queued_bytes_ += bytes.size();
  queue_.push_back({std::move(bytes), key});
  wake_unlocked(lock);
}

void HttpExchange::respond(HttpResponse response) {
  std::unique_lock lock(mutex_);
  if (gone_ || started_) return;
  started_ = finished_ = true;
  if (response.close) framing_.keep_alive = false;
  // 204 has no body and no length.
  const std::string length =
      response.status == 204 ? "" : fmt::format("content-length: {}\r\n", response.body.size());
  std::string bytes =
      response_head(response.status, response.status == 204 ? "" : response.content_type,
                    response.headers, length, framing_.keep_alive);
  if (!framing_.head_only && response.status != 204) bytes += response.body;
  push(std::move(bytes), kNoKey, lock);
}

void HttpExchange::start_stream(std::string content_type) {
  std::unique_lock lock(mutex_);
  if (gone_ || started_) return;
  started_ = true;
  if (!framing_.chunked) framing_.keep_alive = false;
  std::string head =
      response_head(200, content_type, {{"cache-control", "no-cache"}},
                    framing_.chunked ? "transfer-encoding: chunked\r\n" : "", framing_.keep_alive);
  push(std::move(head), kNoKey, lock);
}

bool HttpExchange::send(std::string chunk, int64_t replace_key) {
  std::unique_lock lock(mutex_);
  if (gone_ || cut_off_) return false;
  if (!started_ || finished_ || framing_.head_only || chunk.empty()) return true;
  if (framing_.chunked) chunk = fmt::format("{:x}\r\n", chunk.size()) + chunk + "\r\n";
  if (replace_key != kNoKey) {
    for (Chunk& waiting : queue_) {
      if (waiting.key != replace_key) continue;
      queued_bytes_ += chunk.size();
      queued_bytes_ -= waiting.bytes.size();
      waiting.bytes = std::move(chunk);
      return true;
    }
  }
  // Replaceable chunks are bounded by their keys; of others one may always stand above the limit.
  if (replace_key == kNoKey && queued_bytes_ > backlog_bytes_) {
    cut_off_ = true;
    queue_.clear();
    queued_bytes_ = 0;
    lock.unlock();
    wake_();  // whatever is pending: the I/O thread may be waiting for this reader's socket
    return false;
  }
  push(std::move(chunk), replace_key, lock);
  return true;
}

void HttpExchange::finish_stream(bool close) {
  std::unique_lock lock(mutex_);
  if (gone_ || cut_off_ || !started_ || finished_) return;
  finished_ = true;
  if (close) framing_.keep_alive = false;
  push(framing_.chunked && !framing_.head_only ? "0\r\n\r\n" : "", kNoKey, lock);
}

void HttpExchange::on_gone(std::function<void()> callback) {
  {
    std::lock_guard lock(mutex_);
    if (complete_) return;
    if (!gone_) {
      on_gone_ = std::move(callback);
      return;
    }
  }
  callback();
}

bool HttpExchange::gone() const {
  std::lock_guard lock(mutex_);
  return gone_;
}

bool HttpExchange::cut_off() const {
  std::lock_guard lock(mutex_);
  return cut_off_;
}

HttpExchange::Outgoing HttpExchange::take() {
  std::lock_guard lock(mutex_);
  wake_pending_ = false;
  Outgoing out;
  if (queue_.size() == 1) {
    out.bytes = std::move(queue_.front().bytes);
  } else {
    out.bytes.reserve(queued_bytes_);
    for (const Chunk& chunk : queue_) out.bytes += chunk.bytes;
  }
  queue_.clear();
  queued_bytes_ = 0;
  out.complete = finished_;
  out.keep_alive = framing_.keep_alive;
  return out;
}

void HttpExchange::mark_complete() {
  std::function<void()> dropped;
  std::lock_guard lock(mutex_);
  complete_ = true;
  dropped.swap(on_gone_);
}

bool HttpExchange::mark_gone() {
  std::function<void()> callback;
  {
    std::lock_guard lock(mutex_);
    if (complete_ || gone_) return false;
    gone_ = true;
    queue_.clear();
    queued_bytes_ = 0;
    callback.swap(on_gone_);
  }
  if (callback) callback();
  return true;
}

void HttpExchange::forbid_keep_alive() {
  std::lock_guard lock(mutex_);
  framing_.keep_alive = false;
}

}  // namespace winnow::server
