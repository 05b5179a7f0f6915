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

template <class Number>
OptimizerOf<Number>::OptimizerOf(const OptimizerOptions& options, std::vector<Parameter> parameters,
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

template <class Number>
void OptimizerOf<Number>::Free::operator()(Number* memory) const {
  std::free(memory);
}

// On a cache line, as the parameters are: vectors of state and values then cross no line.
template <class Number>
typename OptimizerOf<Number>::Memory OptimizerOf<Number>::zeros(size_t count) {
  constexpr size_t kLine = 64 / sizeof(Number);
  const size_t padded = (count + kLine) / kLine * kLine;
  auto* const memory = static_cast<Number*>(std::aligned_alloc(64, padded * sizeof(Number)));
  if (!memory)
    throw Error(ErrorCode::memory,
                fmt::format("no memory for {} bytes of optimizer state", padded * sizeof(Number)),
                "use more ranks, or an optimizer with less state");
  std::fill_n(memory, padded, Number{0});
  return Memory(memory);
}

template <class Number>
template <class Body>
void OptimizerOf<Number>::for_segments(Range range, GradientsOf<Number> gradients,
                                       const Body& body) const {
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
template <class Number>
CoefficientsOf<Number> OptimizerOf<Number>::coefficients_of(const Step& step) const {
  const auto rounded = [](double x) { return static_cast<Number>(x); };
  const auto number = static_cast<double>(step.number);
  const double bias1 = 1 - std::pow(options_.beta1, number);
  const double bias2 = 1 - std::pow(options_.beta2, number);
  CoefficientsOf<Number> c{.gradient_scale = rounded(step.gradient_scale),
                           .decay = rounded(options_.weight_decay),
                           .rate = rounded(step.learning_rate),
                           .momentum = rounded(options_.momentum),
                           .beta1 = rounded(options_.beta1),
                           .one_minus_beta1 = rounded(1 - options_.beta1),
                           .beta2 = rounded(options_.beta2),
                           .one_minus_beta2 = rounded(1 - options_.beta2),
                           .unbias1 = rounded(1 / bias1),
                           .unbias2 = rounded(1 / std::sqrt(bias2)),
                           .epsilon = rounded(options_.epsilon)};
  if (rule_ == Rule::adam) c.rate = rounded(step.learning_rate / bias1);
  if (options_.kind == OptimizerKind::adamw) {
    c.decay = 0;
    c.keep = rounded(1 - step.learning_rate * options_.weight_decay);
  }
  if (rule_ == Rule::rmsprop_warmup && step.learning_rate > 0) {
    const double share = sgd_share_of_warmup(options_, step.epoch);
    c.sgd_share = rounded(share);
    c.rms_share = rounded((1 - share) * options_.rms_learning_rate / step.learning_rate);
  }
  return c;
}

template <class Number>
double OptimizerOf<Number>::ratio_of(const Norms& norms) const {
  const double values = norms.values.norm(), update = norms.update.norm();
  // A parameter that is still zero would never move.
  if (values == 0 || update == 0) return 1;
  if (rule_ == Rule::lamb) return values / update;
  return options_.trust * values / (update + options_.weight_decay * values);
}

template <class Number>
void OptimizerOf<Number>::norms(size_t begin, std::span<const Number> values,
                                GradientsOf<Number> gradients, const Step& step,
                                std::span<Norms> norms) const {
  if (norms.size() != parameters())
    throw Error(ErrorCode::bug, fmt::format("room for the norms of {} parameters of {}",
                                            norms.size(), parameters()));
  const CoefficientsOf<Number> shared = coefficients_of(step);
  const auto state_at = [&](int index, size_t place) {
    return state_[index] ? state_[index].get() + (place - shard_.begin) : nullptr;
  };
  for_segments({begin, begin + values.size()}, gradients,
               [&](const Segment& segment, size_t from, size_t to) {
                 if (!segment.decays) return;
                 norms[segment.parameter] +=
                     optim::norms(rule_, shared,
                                  PieceOf<const Number>{.count = to - from,
                                                        .values = values.data() + (from - begin),
                                                        .first = state_at(0, from),
                                                        .second = state_at(1, from),
                                                        .gradients = gradients,
                                                        .gradient_offset = from - begin});
               });
}

template <class Number>
void OptimizerOf<Number>::update(size_t begin, std::span<Number> values,
                                 GradientsOf<Number> gradients, const Step& step,
                                 std::span<const Norms> norms) {
  if (norms.size() != (needs_norms() ? parameters() : 0))
    throw Error(ErrorCode::bug, fmt::format("an update by {} of {} parameters with the norms of {}",
                                            name_of(options_.kind), parameters(), norms.size()));
  const CoefficientsOf<Number> shared = coefficients_of(step);
  const auto state_at = [&](int index, size_t place) {
    return state_[index] ? state_[index].get() + (place - shard_.begin) : nullptr;
  };
  for_segments({begin, begin + values.size()}, gradients,
               [&](const Segment& segment, size_t from, size_t to) {
                 CoefficientsOf<Number> c = shared;
                 if (!segment.decays) {
                   c.decay = 0;
                   c.keep = 1;
                 } else if (needs_norms()) {
                   c.rate =
                       static_cast<Number>(step.learning_rate * ratio_of(norms[segment.parameter]));
                 }
                 optim::update(rule_, c,
                               PieceOf<Number>{.count = to - from,
                                               .values = values.data() + (from - begin),
                                               .first = state_at(0, from),
                                               .second = state_at(1, from),
                                               .gradients = gradients,
                                               .gradient_offset = from - begin});
               });
}

template class OptimizerOf<float>;
template class OptimizerOf<double>;

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
