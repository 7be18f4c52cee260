#include "eval/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/log.h"
#include "bench/completion_client.h"
#include "bench/http_client.h"

namespace winnow::eval {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kWarmPrefixBytes = 64;  // a shorter common prefix is not worth a request
constexpr double kLongestDelay_s = 60;

struct Job {
  size_t question_idx = 0;
  int64_t repeat = 0;
  int64_t attempts = 0;  // requests sent
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A very long prompt is kept without its middle: the seed or the data set can make it again.
std::string shortened(const std::string& text) {
  constexpr size_t kKept = 32768;
  if (text.size() <= 2 * kKept) return text;
  auto is_inside = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
  size_t head = kKept;
  size_t tail = text.size() - kKept;
  while (is_inside(head)) --head;
  while (is_inside(tail)) ++tail;
  return fmt::format("{}\n[... {} bytes left out ...]\n{}", text.substr(0, head), tail - head,
                     text.substr(tail));
}

bool is_refusal(int status) { return status == 400 || status == 413 || status == 422; }
bool is_hopeless(int status) {
  return status >= 400 && status < 500 && status != 408 && status != 429;
}

class Run {
 public:
  Run(const Task& task,
      const RunnerOptions& options,
      SampleFile& file,
      ProgressLine& progress,
      RunResult& result)
      : task_(task),
        options_(options),
        file_(file),
        progress_(progress),
        result_(result),
        client_({.url = options.url,
                 .headers = options.headers,
                 .parallel = static_cast<int>(options.parallel),
                 .timeout_s = options.timeout_s}) {
    result_.repeat_seconds.resize(static_cast<size_t>(options.repeats));
  }

  void run(std::deque<Job> jobs, const std::atomic<bool>& stop) {
    waiting_ = std::move(jobs);
    begin_ = Clock::now();
    warm_common_prefix();
    std::vector<std::thread> graders;
    graders.reserve(static_cast<size_t>(options_.grading_threads));
    for (int i = 0; i < options_.grading_threads; ++i) graders.emplace_back([this] { grade(); });
    feed(stop);
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    for (std::thread& grader : graders) grader.join();
    result_.seconds = seconds_since(begin_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  struct Answered {
    Job job;
    bench::Completion completion;
  };

  std::string prompt_of(const Job& job) const {
    return task_.common_prefix + task_.questions[job.question_idx].prompt;
  }

  // So that the first requests, all at once, do not each compute the shots. In the timed part.
  void warm_common_prefix() {
    if (options_.request.api != Api::kGenerate || task_.common_prefix.size() <= kWarmPrefixBytes ||
        waiting_.empty()) {
      return;
    }
    RequestSettings settings = options_.request;
    settings.max_tokens = 0;
    bench::HttpClient client(options_.url, options_.headers);
    const auto reply =
        client.post_json("/generate", json::dump(request_body(settings, task_.common_prefix, 0)),
                         options_.timeout_s);
    if (!reply.ok() || !reply.value().ok()) {
      log::warn("the common prefix could not be warmed: {}",
                reply.ok() ? bench::describe_failure(reply.value().status, reply.value().body)
                           : reply.status().message);
    }
  }

  // Keeps the window full until everything has been answered.
  void feed(const std::atomic<bool>& stop) {
    constexpr std::chrono::milliseconds kLook{100};
    std::unique_lock lock(mutex_);
    while (true) {
      if ((stop || failure_) && !stopping_) {
        stopping_ = true;
        result_.interrupted = true;
        waiting_.clear();
        delayed_.clear();
        lock.unlock();
        client_.cancel();
        lock.lock();
      }
      while (num_in_flight_ < options_.parallel && take_due()) {
        ++num_in_flight_;
        lock.unlock();
        send(due_);
        lock.lock();
      }
      if (num_in_flight_ == 0 && waiting_.empty() && delayed_.empty()) return;
      changed_.wait_for(lock, kLook);
    }
  }

  // Moves the next job that may be sent now to due_. Retries come first.
  bool take_due() {
    if (!delayed_.empty() && delayed_.begin()->first <= Clock::now()) {
      due_ = delayed_.begin()->second;
      delayed_.erase(delayed_.begin());
      return true;
    }
    if (waiting_.empty()) return false;
    due_ = waiting_.front();
    waiting_.pop_front();
    return true;
  }

  void send(Job job) {
    ++job.attempts;
    client_.submit(std::string(request_target(options_.request.api)),
                   request_body(options_.request, prompt_of(job), job.repeat),
                   [this, job](bench::Completion completion) {
                     {
                       const std::lock_guard lock(mutex_);
                       answered_.push_back({job, std::move(completion)});
                     }
                     changed_.notify_all();
                   });
  }

  // A grader's loop.
  void grade() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return closed_ || !answered_.empty(); });
      if (answered_.empty()) return;
      Answered answered = std::move(answered_.front());
      answered_.pop_front();
      if (retry_or_drop(answered)) {
        --num_in_flight_;
        changed_.notify_all();
        continue;
      }
      lock.unlock();
      Sample sample;
      std::exception_ptr failure;
      try {
        sample = judged(std::move(answered));
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (!failure) failure = written(std::move(sample));
      if (failure && !failure_) failure_ = failure;
      --num_in_flight_;
      changed_.notify_all();
    }
  }

  // With the lock. True when the job has no sample now: it will be asked again, or the run ends.
  bool retry_or_drop(const Answered& answered) {
    const bench::Completion& completion = answered.completion;
    if (completion.ok() || is_hopeless(completion.status)) return false;
    if (stopping_) return true;
    if (answered.job.attempts > options_.max_retries) return false;
    const double factor =
        static_cast<double>(int64_t{1} << std::min<int64_t>(answered.job.attempts - 1, 20));
    const double delay_s = std::min(kLongestDelay_s, options_.retry_delay_s * factor);
    delayed_.emplace(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(delay_s)),
                     answered.job);
    return true;
  }

  Sample judged(Answered answered) const {
    const Question& question = task_.questions[answered.job.question_idx];
    bench::Completion& completion = answered.completion;
    Sample sample;
    sample.id = question.id;
    sample.repeat = answered.job.repeat;
    sample.category = question.category;
    sample.prompt = shortened(question.prompt);
    sample.label = question.label;
    sample.attempts = answered.job.attempts;
    sample.seconds = completion.seconds;
    if (!completion.ok()) {
      sample.error = completion.error;
      sample.refused = is_refusal(completion.status);
      return sample;
    }
    sample.response = std::move(completion.text);
    sample.reasoning = std::move(completion.reasoning);
    sample.finish_reason = std::move(completion.finish_reason);
    sample.prompt_tokens = std::max<int64_t>(0, completion.prompt_tokens);
    sample.completion_tokens = std::max<int64_t>(0, completion.completion_tokens);
    sample.verdict = task_.grade(answered.job.question_idx, sample.response);
    return sample;
  }

  // With the lock.
  std::exception_ptr written(Sample sample) {
    try {
      file_.append(sample);
    } catch (...) {
      return std::current_exception();
    }
    sample.prompt.clear();
    sample.response.clear();
    sample.reasoning.clear();
    result_.completion_tokens += sample.completion_tokens;
    result_.repeat_seconds[static_cast<size_t>(sample.repeat)] = seconds_since(begin_);
    progress_.add(sample);
    result_.samples.push_back(std::move(sample));
    return nullptr;
  }

  const Task& task_;
  const RunnerOptions& options_;
  SampleFile& file_;
  ProgressLine& progress_;
  RunResult& result_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::multimap<Clock::time_point, Job> delayed_;  // retries, by when they are due
  std::deque<Answered> answered_;
  Job due_;
  int64_t num_in_flight_ = 0;  // sent, answered or being graded
  bool stopping_ = false;
  bool closed_ = false;
  std::exception_ptr failure_;
  Clock::time_point begin_;

  bench::CompletionClient client_;  // last: its callbacks use the rest
};

}  // namespace

RunResult run_task(const Task& task,
                   const RunnerOptions& options,
                   std::vector<Sample> earlier,
                   SampleFile& file,
                   ProgressLine& progress,
                   const std::atomic<bool>& stop) {
  RunResult result;
  const auto total = static_cast<int64_t>(task.questions.size()) * options.repeats;
  progress.start(task.name, total);
  std::set<std::pair<std::string, int64_t>> done;
  for (const Sample& sample : earlier) {
    done.emplace(sample.id, sample.repeat);
    progress.add(sample);
  }
  result.samples = std::move(earlier);
  std::deque<Job> jobs;
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat) {
    for (size_t i = 0; i < task.questions.size(); ++i) {
      if (!done.contains({task.questions[i].id, repeat})) jobs.push_back({i, repeat});
    }
  }
  Run(task, options, file, progress, result).run(std::move(jobs), stop);
  progress.finish();
  return result;
}

std::vector<Sample> read_earlier_samples(const std::string& path) {
  std::map<std::pair<std::string, int64_t>, Sample> last;
  read_samples(path, [&](Sample sample) {
    sample.prompt.clear();
    sample.response.clear();
    sample.reasoning.clear();
    last.insert_or_assign({sample.id, sample.repeat}, std::move(sample));
  });
  std::vector<Sample> samples;
  for (auto& [key, sample] : last) {
    if (!sample.failed()) samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace winnow::eval
