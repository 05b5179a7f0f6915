#include "tune/search.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "tune/journal.h"

namespace renkei::tune {
namespace {

// What the threads that measure share.
class Study {
 public:
  Study(const Space& space, const Objective& objective, const SearchOptions& options)
      : space_(space), objective_(objective), options_(options), begin_(now_seconds()) {
    if (options.journal.empty()) return;
    journal_ = std::make_unique<Journal>(options.journal, space, options.subject);
    trials_ = journal_->trials();
  }

  void work() {
    try {
      while (const auto place = begin_trial()) measure(*place);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  std::vector<Trial> finish() {
    if (failure_) std::rethrow_exception(failure_);
    return trials_;
  }

 private:
  std::optional<size_t> begin_trial() {
    const std::lock_guard lock(mutex_);
    if (failure_ || static_cast<int>(trials_.size()) >= options_.trials ||
        now_seconds() - begin_ > options_.seconds || out_of_patience())
      return std::nullopt;
    const auto number = static_cast<int64_t>(trials_.size());
    const auto place = static_cast<size_t>(number);
    trials_.push_back({.number = number,
                       .point = place < options_.first.size()
                                    ? options_.first[place]
                                    : suggest(space_, trials_, number, options_.sampler),
                       .pending = true});
    return place;
  }

  bool out_of_patience() const {
    const Trial* best = best_of(trials_);
    return options_.patience > 0 && best &&
           static_cast<int64_t>(trials_.size()) - best->number > options_.patience;
  }

  double time_limit() const {
    double fastest = 1e300;
    for (const Trial& trial : trials_)
      if (trial.loss) fastest = std::min(fastest, trial.seconds);
    // A second for what a start takes more or less.
    return options_.give_up_factor > 0 && fastest < 1e300 ? options_.give_up_factor * fastest + 1
                                                          : 1e300;
  }

  void measure(size_t place) {
    Point point;
    double limit = 0;
    {
      const std::lock_guard lock(mutex_);
      point = trials_[place].point;
      limit = time_limit();
    }
    const double begin = now_seconds();
    const std::optional<double> loss = objective_(point, limit);
    const std::lock_guard lock(mutex_);
    Trial& trial = trials_[place];
    trial.loss = loss;
    trial.seconds = now_seconds() - begin;
    trial.pending = false;
    if (journal_) journal_->append(trial);
    if (options_.progress) options_.progress(trial, trials_);
  }

  const Space& space_;
  const Objective& objective_;
  const SearchOptions& options_;
  double begin_;
  std::mutex mutex_;
  std::vector<Trial> trials_;
  std::unique_ptr<Journal> journal_;
  std::exception_ptr failure_;
};

}  // namespace

const Trial* best_of(const std::vector<Trial>& trials) {
  const Trial* best = nullptr;
  for (const Trial& trial : trials)
    if (trial.loss && (!best || *trial.loss < *best->loss)) best = &trial;
  return best;
}

std::vector<Trial> search(const Space& space, const Objective& objective,
                          const SearchOptions& options) {
  Study study(space, objective, options);
  {
    std::vector<std::jthread> threads;
    for (int i = 1; i < options.parallel; ++i) threads.emplace_back([&] { study.work(); });
    study.work();
  }
  return study.finish();
}

}  // namespace renkei::tune
