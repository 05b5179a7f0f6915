#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>
#include <type_traits>

#include "base/error.h"

namespace renkei::optim {
namespace {

Rule rule_of(const OptimizerOptions& options) {
  switch (options.kind) {
    case OptimizerKind::sgd:
      if (options.momentum == 0) return Rule::sgd;
      return options.nesterov ? Rule::nesterov : Rule::momentum;
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return Rule::adam;
    case OptimizerKind::lars:
      return Rule::lars;
    case OptimizerKind::lamb:
      return Rule::lamb;
    case OptimizerKind::rmsprop_warmup:
      return Rule::rmsprop_warmup;
  }
  throw Error(ErrorCode::bug, "an unknown optimizer");
}

}  // namespace

void check(const OptimizerOptions& options) {
  if (options.nesterov && (options.kind != OptimizerKind::sgd || options.momentum == 0))
    throw Error(ErrorCode::usage, "Nesterov's momentum needs SGD with a momentum",
                "set optim.name=sgd and train.momentum=0.9, or optim.nesterov=false");
  // Where value, gradient and state are zero, as in padding, it keeps 0/0 away.
  if (!(options.epsilon > 0))
    throw Error(ErrorCode::usage, "the epsilon of the optimizer must be over 0",
                "set optim.eps=1e-8");
}

std::string_view name_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd:
      return "sgd";
    case OptimizerKind::adam:
      return "adam";
    case OptimizerKind::adamw:
      return "adamw";
    case OptimizerKind::lars:
      return "lars";
    case OptimizerKind::lamb:
      return "lamb";
    case OptimizerKind::rmsprop_warmup:
      return "rmsprop_warmup";
  }
  return "an unknown optimizer";
}

double sgd_share_of_warmup(const OptimizerOptions& options, double epoch) {
  const double past = (epoch - options.rms_centre_epoch) / options.rms_width_epochs;
  if (past < 0) return 0.5 * std::exp(2 * past);
  return std::min(0.5 + past, 1.0);
}

int states_per_parameter(const OptimizerOptions& options) {
  return Optimizer(options, {}, {}).states();
}

Optimizer::Optimizer(const OptimizerOptions& options, std::vector<Parameter> parameters,
                     Range shard)
    : options_(options),
      rule_(rule_of(options)),
      parameters_(std::move(parameters)),
      segments_(make_segments(parameters_, needs_norms())),
      shard_(shard) {
  check(options_);
  if (shard_.end < shard_.begin)
    throw Error(ErrorCode::bug,
                fmt::format("a shard from {} to {} ends early", shard_.begin, shard_.end));
  for (int i = 0; i < states(); ++i) state_[i] = zeros(shard_.end - shard_.begin);
}

void Optimizer::Free::operator()(float* memory) const {
  std::free(memory);
}

// On a cache line, as the parameters are: vectors of state and values then cross no line.
Optimizer::Memory Optimizer::zeros(size_t count) {
  constexpr size_t kLineFloats = 64 / sizeof(float);
  const size_t padded = (count + kLineFloats) / kLineFloats * kLineFloats;
  auto* const memory = static_cast<float*>(std::aligned_alloc(64, padded * sizeof(float)));
  if (!memory)
    throw Error(ErrorCode::memory,
                fmt::format("no memory for {} bytes of optimizer state", padded * sizeof(float)),
                "use more ranks, or an optimizer with less state");
  std::fill_n(memory, padded, 0.0f);
  return Memory(memory);
}

template <class Body>
void Optimizer::for_segments(Range range, Gradients gradients, const Body& body) const {
  if (range.begin < shard_.begin || range.end > shard_.end)
    throw Error(ErrorCode::bug,
                fmt::format("elements {} to {} are updated by an optimizer of {} to {}",
                            range.begin, range.end, shard_.begin, shard_.end));
  if (gradients.empty()) throw Error(ErrorCode::bug, "an update without a gradient");
  auto segment = std::ranges::upper_bound(segments_, range.begin, {}, &Segment::end);
  for (; segment != segments_.end() && segment->begin < range.end; ++segment)
    body(*segment, std::max(segment->begin, range.begin), std::min(segment->end, range.end));
}

// All but what depends on the parameter.
Coefficients Optimizer::coefficients_of(const Step& step) const {
  const auto as_float = [](double x) { return static_cast<float>(x); };
  const auto number = static_cast<double>(step.number);
  const double bias1 = 1 - std::pow(options_.beta1, number);
  const double bias2 = 1 - std::pow(options_.beta2, number);
  Coefficients c{.gradient_scale = as_float(step.gradient_scale),
                 .decay = as_float(options_.weight_decay),
                 .rate = as_float(step.learning_rate),
                 .momentum = as_float(options_.momentum),
                 .beta1 = as_float(options_.beta1),
                 .one_minus_beta1 = as_float(1 - options_.beta1),
                 .beta2 = as_float(options_.beta2),
                 .one_minus_beta2 = as_float(1 - options_.beta2),
                 .unbias1 = as_float(1 / bias1),
                 .unbias2 = as_float(1 / std::sqrt(bias2)),
                 .epsilon = as_float(options_.epsilon)};
  if (rule_ == Rule::adam) c.rate = as_float(step.learning_rate / bias1);
  if (options_.kind == OptimizerKind::adamw) {
    c.decay = 0;
    c.keep = as_float(1 - step.learning_rate * options_.weight_decay);
  }
  if (rule_ == Rule::rmsprop_warmup && step.learning_rate > 0) {
    const double share = sgd_share_of_warmup(options_, step.epoch);
    c.sgd_share = as_float(share);
    c.rms_share = as_float((1 - share) * options_.rms_learning_rate / step.learning_rate);
  }
  return c;
}

double Optimizer::ratio_of(const Norms& norms) const {
  const double values = norms.values.norm(), update = norms.update.norm();
  // A parameter that is still zero would never move.
  if (values == 0 || update == 0) return 1;
  if (rule_ == Rule::lamb) return values / update;
  return options_.trust * values / (update + options_.weight_decay * values);
}

void Optimizer::norms(size_t begin, std::span<const float> values, Gradients gradients,
                      const Step& step, std::span<Norms> norms) const {
  if (norms.size() != parameters())
    throw Error(ErrorCode::bug, fmt::format("room for the norms of {} parameters of {}",
                                            norms.size(), parameters()));
  const Coefficients shared = coefficients_of(step);
  const auto state_at = [&](int index, size_t place) {
    return state_[index] ? state_[index].get() + (place - shard_.begin) : nullptr;
  };
  for_segments({begin, begin + values.size()}, gradients,
               [&](const Segment& segment, size_t from, size_t to) {
                 if (!segment.decays) return;
                 norms[segment.parameter] += optim::norms(rule_, shared,
                                                          {.count = to - from,
                                                           .values = values.data() + (from - begin),
                                                           .first = state_at(0, from),
                                                           .second = state_at(1, from),
                                                           .gradients = gradients,
                                                           .gradient_offset = from - begin});
               });
}

void Optimizer::update(size_t begin, std::span<float> values, Gradients gradients, const Step& step,
                       std::span<const Norms> norms) {
  if (norms.size() != (needs_norms() ? parameters() : 0))
    throw Error(ErrorCode::bug, fmt::format("an update by {} of {} parameters with the norms of {}",
                                            name_of(options_.kind), parameters(), norms.size()));
  const Coefficients shared = coefficients_of(step);
  const auto state_at = [&](int index, size_t place) {
    return state_[index] ? state_[index].get() + (place - shard_.begin) : nullptr;
  };
  for_segments({begin, begin + values.size()}, gradients,
               [&](const Segment& segment, size_t from, size_t to) {
                 Coefficients c = shared;
                 if (!segment.decays) {
                   c.decay = 0;
                   c.keep = 1;
                 } else if (needs_norms()) {
                   c.rate =
                       static_cast<float>(step.learning_rate * ratio_of(norms[segment.parameter]));
                 }
                 optim::update(rule_, c,
                               {.count = to - from,
                                .values = values.data() + (from - begin),
                                .first = state_at(0, from),
                                .second = state_at(1, from),
                                .gradients = gradients,
                                .gradient_offset = from - begin});
               });
}

std::span<int64_t> as_integers(std::span<Norms> norms) {
  constexpr size_t kIntegers = sizeof(Norms) / sizeof(int64_t);
  static_assert(std::is_standard_layout_v<Norms> && kIntegers == 2 * (SquareSum::kLimbs + 1) &&
                sizeof(Norms) % sizeof(int64_t) == 0);
  return {reinterpret_cast<int64_t*>(norms.data()), norms.size() * kIntegers};
}

std::span<int64_t> as_integers(SquareSum& sum) {
  return {reinterpret_cast<int64_t*>(&sum), sizeof(SquareSum) / sizeof(int64_t)};
}

double clip_factor(double norm, double limit) {
  return std::min(1.0, limit / (norm + 1e-6));
}

}  // namespace renkei::optim
