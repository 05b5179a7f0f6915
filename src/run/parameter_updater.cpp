#include "run/parameter_updater.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <variant>

#include "base/clock.h"

namespace renkei::run {
namespace {

// A handful of buckets is enough to overlap, and each costs a synchronisation.
size_t automatic_bucket_bytes(size_t total_bytes) {
  return std::clamp<size_t>(total_bytes / 6, size_t{256} << 10, size_t{32} << 20);
}

}  // namespace

struct ParameterUpdater::Bucket {
  size_t first_slot, parameters;  // in the flat parameters
  comm::Buffer gradients, values;
  optim::Range mine;  // what this rank updates, in the flat buffers
  size_t offset;      // of it in the bucket
  std::variant<optim::OptimizerOf<float>, optim::OptimizerOf<double>> optimizer;
  std::vector<optim::Norms> norms;
  std::vector<const std::byte*> sources;  // of the bucket's gradients: one, or one for each rank
  size_t missing = 0;                     // gradients that are not complete yet, in this step
  BucketTimes times{};
};

namespace {

template <class Optimizer>
struct NumberOf;
template <class Number>
struct NumberOf<optim::OptimizerOf<Number>> {
  using type = Number;
};

// The arrays from an offset on.
template <class Number>
std::vector<const Number*> from(const std::vector<const std::byte*>& arrays, size_t offset) {
  std::vector<const Number*> list;
  for (const std::byte* array : arrays)
    list.push_back(reinterpret_cast<const Number*>(array) + offset);
  return list;
}

}  // namespace

struct ParameterUpdater::Hook : torch::autograd::FunctionPostHook {
  Hook(ParameterUpdater& updater, int bucket, size_t slot)
      : updater(updater), bucket(bucket), slot(slot) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list& inputs) override {
    updater.note_reached(slot, inputs);
    updater.gradient_is_complete(bucket);
    return outputs;
  }
  ParameterUpdater& updater;
  int bucket;
  size_t slot;
};

ParameterUpdater::ParameterUpdater(FlatParameters& parameters, Division division,
                                   comm::Communicator& communicator, const UpdateOptions& options)
    : parameters_(parameters),
      communicator_(communicator),
      options_(options),
      division_(division),
      parts_(division == Division::none   ? 1
             : division == Division::host ? communicator.local_size()
                                          : communicator.transport().size()),
      part_(division == Division::none   ? 0
            : division == Division::host ? communicator.local_rank()
                                         : communicator.transport().rank()),
      put_off_(options.needs_norm() || options.only_reduce),
      fused_(division == Division::host && !put_off_ &&
             communicator.peers_can_read(parameters.gradient_buffer())) {
  const auto& slots = parameters.slots();
  reached_.resize(slots.size());
  const comm::Buffer all = parameters.gradient_buffer();
  const size_t total = all.count;
  const size_t bucket_bytes =
      options.bucket_bytes ? options.bucket_bytes : automatic_bucket_bytes(all.bytes());
  size_t end = total, end_slot = slots.size();  // of the bucket that is being filled
  for (size_t i = slots.size(); i-- > 0;) {
    auto accumulator = torch::autograd::impl::grad_accumulator(slots[i].parameter);
    const uintptr_t hook = accumulator->add_post_hook(
        std::make_unique<Hook>(*this, static_cast<int>(buckets_.size()), i));
    watched_.push_back({std::move(accumulator), hook});
    bucket_of_[slots[i].parameter.unsafeGetTensorImpl()] = buckets();
    const auto begin = static_cast<size_t>(slots[i].offset);
    if ((end - begin) * comm::size_of(all.dtype) < bucket_bytes && i > 0) continue;
    add_bucket(i, end_slot - i, begin, end);
    end = begin;
    end_slot = i;
  }
  reducer_ = std::make_unique<comm::AsyncReducer>(
      buckets(), [this](int bucket, int64_t) { reduce(*buckets_[static_cast<size_t>(bucket)]); },
      options.overlap && communicator.transport().size() > 1);
}

ParameterUpdater::~ParameterUpdater() {
  reducer_.reset();
  // The network may outlive this object, and its gradients must not call it any more.
  for (Watched& watched : watched_) watched.accumulator->del_post_hook(watched.hook);
}

void ParameterUpdater::add_bucket(size_t first_slot, size_t parameters, size_t begin, size_t end) {
  std::vector<optim::Parameter> inside;
  for (size_t i = first_slot; i < first_slot + parameters; ++i) {
    const FlatParameters::Slot& slot = parameters_.slots()[i];
    inside.push_back({.offset = static_cast<size_t>(slot.offset),
                      .count = static_cast<size_t>(slot.count),
                      .decays = options_.vectors_decay || slot.parameter.dim() > 1});
  }
  const comm::Range part = comm::chunk_range(end - begin, parts_, part_);
  const optim::Range mine{begin + part.begin, begin + part.end};
  const comm::Buffer gradients = parameters_.gradient_buffer().part(begin, end - begin);
  decltype(Bucket::optimizer) optimizer =
      optim::OptimizerOf<float>(options_.optimizer, inside, mine);
  if (gradients.dtype == comm::DType::f64)
    optimizer = optim::OptimizerOf<double>(options_.optimizer, std::move(inside), mine);
  buckets_.push_back(
      std::make_unique<Bucket>(Bucket{.first_slot = first_slot,
                                      .parameters = parameters,
                                      .gradients = gradients,
                                      .values = parameters_.value_buffer().part(begin, end - begin),
                                      .mine = mine,
                                      .offset = part.begin,
                                      .optimizer = std::move(optimizer),
                                      .norms = std::vector<optim::Norms>(),
                                      .sources = {}}));
}

comm::Call ParameterUpdater::call(std::string_view operation) const {
  return {.operation = operation, .step = step_, .timeout_seconds = options_.timeout_seconds};
}

void ParameterUpdater::start(int64_t step, const optim::Step& update) {
  step_ = step;
  update_ = update;
  exposed_update_seconds_ = 0;
  backward_is_over_ = false;
  for (auto& bucket : buckets_) bucket->missing = bucket->parameters;
  std::ranges::fill(reached_, 0);
  reducer_->start(step);
  started_ = true;
}

void ParameterUpdater::gradient_is_complete(int bucket) {
  // Backwards of earlier micro-batches only add to the gradients.
  if (started_ && --buckets_[static_cast<size_t>(bucket)]->missing == 0) reducer_->submit(bucket);
}

void ParameterUpdater::note_reached(size_t slot, const torch::autograd::variable_list& gradients) {
  const bool defined = !gradients.empty() && gradients[0].defined();
  if (defined || parameters_.is_written(parameters_.slots()[slot])) reached_[slot] = 1;
}

void ParameterUpdater::complete(const torch::Tensor& parameter) {
  gradient_is_complete(bucket_of_.at(parameter.unsafeGetTensorImpl()));
}

void ParameterUpdater::complete_all_but(const DeferredGradients& put_off) {
  for (const FlatParameters::Slot& slot : parameters_.slots()) {
    if (put_off.has(slot.parameter)) continue;
    parameters_.settle(slot);
    complete(slot.parameter);
  }
}

void ParameterUpdater::reduce(Bucket& bucket) {
  bucket.times.begin = now_seconds();
  bucket.sources.clear();
  if (fused_) {
    for (const std::byte* copy :
         communicator_.meet(bucket.gradients, call("allreduce of the gradients")))
      bucket.sources.push_back(copy);
  } else {
    const comm::Call named = call("allreduce of the gradients");
    if (parts_ == 1)
      communicator_.allreduce(bucket.gradients, options_.only_reduce.value_or(comm::Reduction::sum),
                              named);
    else if (division_ == Division::host)
      communicator_.allreduce_chunk(bucket.gradients, comm::Reduction::sum, named);
    else
      communicator_.reduce_scatter(bucket.gradients, comm::Reduction::sum, named);
    bucket.sources.push_back(bucket.gradients.data);
  }
  if (!put_off_) update(bucket);
  bucket.times.end = now_seconds();
}

void ParameterUpdater::update(Bucket& bucket) {
  const bool exposed = backward_is_over_;
  const double begin = now_seconds();
  std::visit(
      [&](auto& optimizer) {
        using Number = typename NumberOf<std::decay_t<decltype(optimizer)>>::type;
        const std::span<Number> values(
            reinterpret_cast<Number*>(bucket.values.data) + bucket.offset,
            bucket.mine.end - bucket.mine.begin);
        const auto sources = from<Number>(bucket.sources, bucket.offset);
        if (optimizer.needs_norms()) {
          bucket.norms.assign(optimizer.parameters(), {});
          optimizer.norms(bucket.mine.begin, values, sources, update_, bucket.norms);
          sum_over_parts(comm::Buffer(optim::as_integers(bucket.norms)));
        }
        optimizer.update(bucket.mine.begin, values, sources, update_, bucket.norms);
      },
      bucket.optimizer);
  if (division_ == Division::all && parts_ > 1)
    communicator_.all_gather(bucket.values, call("exchange of the updated parameters"));
  if (exposed) exposed_update_seconds_ += now_seconds() - begin;
}

void ParameterUpdater::sum_over_parts(comm::Buffer buffer) {
  if (parts_ == 1) return;
  const comm::Call named = call("sum of the norms");
  if (division_ == Division::host)
    communicator_.local_allreduce(buffer, comm::Reduction::sum, named);
  else
    communicator_.allreduce(buffer, comm::Reduction::sum, named);
}

void ParameterUpdater::finish_reduction() {
  // What backward did not reach, as on a rank without samples, has no gradient.
  for (const auto& bucket : buckets_)
    for (size_t i = 0; bucket->missing > 0 && i < bucket->parameters; ++i)
      parameters_.settle(parameters_.slots()[bucket->first_slot + i]);
  backward_is_over_ = true;
  const double begin = now_seconds();
  reducer_->wait();
  exposed_seconds_ = now_seconds() - begin;
  started_ = false;
}

void ParameterUpdater::finish_update() {
  if (put_off_ && factor_ && !options_.only_reduce) {
    update_.gradient_scale *= *factor_;
    for (const auto& bucket : buckets_) update(*bucket);
  }
  // The next forward reads what other ranks have updated, the next backward overwrites what they
  // have read.
  if (division_ == Division::host && parts_ > 1)
    communicator_.local_barrier(call("end of the update"));
}

optim::SquareSum ParameterUpdater::squares() const {
  optim::SquareSum squares;
  comm::Transport& transport = communicator_.transport();
  const bool counts =
      division_ == Division::all ||
      (division_ == Division::host ? transport.host(transport.rank()) == transport.host(0)
                                   : transport.rank() == 0);
  if (!counts) return squares;  // what others count
  for (const auto& bucket : buckets_)
    std::visit(
        [&](const auto& optimizer) {
          using Number = typename NumberOf<std::decay_t<decltype(optimizer)>>::type;
          squares += optim::sum_of_squares(
              optim::GradientsOf<Number>(from<Number>(bucket->sources, bucket->offset)),
              bucket->mine.end - bucket->mine.begin, static_cast<Number>(update_.gradient_scale));
        },
        bucket->optimizer);
  return squares;
}

std::vector<ParameterUpdater::BucketTimes> ParameterUpdater::bucket_times() const {
  std::vector<BucketTimes> times;
  for (const auto& bucket : buckets_) {
    times.push_back(bucket->times);
    times.back().bytes = static_cast<int64_t>(bucket->gradients.bytes());
  }
  return times;
}

// Calls action(array) for each array of state, as a tensor of the same memory.
template <class Action>
void ParameterUpdater::for_states(const Action& action) const {
  for (const auto& bucket : buckets_)
    std::visit(
        [&](auto& optimizer) {
          using Number = typename NumberOf<std::decay_t<decltype(optimizer)>>::type;
          for (int i = 0; i < optimizer.states(); ++i) {
            const std::span<Number> array = optimizer.state(i);
            action(torch::from_blob(array.data(), {static_cast<int64_t>(array.size())},
                                    c10::CppTypeToScalarType<Number>::value));
          }
        },
        bucket->optimizer);
}

std::vector<torch::Tensor> ParameterUpdater::state() const {
  std::vector<torch::Tensor> arrays;
  for_states([&](const torch::Tensor& array) { arrays.push_back(array.clone()); });
  return arrays;
}

void ParameterUpdater::set_state(const std::vector<torch::Tensor>& state) {
  size_t next = 0;
  for_states([&](torch::Tensor array) { array.copy_(state.at(next++)); });
}

// Ranks that update everything have copies of the state, and so have hosts whose ranks divide it:
// of n copies, each writes its n-th part.
comm::Range ParameterUpdater::written_of(size_t count) const {
  comm::Transport& transport = communicator_.transport();
  if (division_ == Division::all) return {0, count};
  if (division_ == Division::none)
    return comm::chunk_range(count, transport.size(), transport.rank());
  std::vector<std::string> hosts;
  for (int rank = 0; rank < transport.size(); ++rank)
    if (std::ranges::find(hosts, transport.host(rank)) == hosts.end())
      hosts.push_back(transport.host(rank));
  const auto mine = std::ranges::find(hosts, transport.host(transport.rank())) - hosts.begin();
  return comm::chunk_range(count, static_cast<int>(hosts.size()), static_cast<int>(mine));
}

std::vector<ParameterUpdater::StateRun> ParameterUpdater::state_runs(Runs which) {
  const size_t total = parameters_.value_buffer().count;
  const comm::Range wanted = which == Runs::held ? comm::Range{0, total} : written_of(total);
  std::vector<StateRun> runs;
  for (const auto& bucket : buckets_)
    for (size_t s = bucket->first_slot; s < bucket->first_slot + bucket->parameters; ++s) {
      const auto first = static_cast<size_t>(parameters_.slots()[s].offset);
      const auto end = first + static_cast<size_t>(parameters_.slots()[s].count);
      const size_t from = std::max({first, bucket->mine.begin, wanted.begin});
      const size_t to = std::min({end, bucket->mine.end, wanted.end});
      if (from >= to) continue;
      std::visit(
          [&](auto& optimizer) {
            for (int i = 0; i < optimizer.states(); ++i)
              runs.push_back({.slot = s,
                              .state = i,
                              .begin = static_cast<int64_t>(from - first),
                              .bytes = std::as_writable_bytes(optimizer.state(i).subspan(
                                  from - bucket->mine.begin, to - from))});
          },
          bucket->optimizer);
    }
  return runs;
}

size_t ParameterUpdater::state_bytes() const {
  size_t bytes = 0;
  for_states([&](const torch::Tensor& array) { bytes += array.nbytes(); });
  return bytes;
}

}  // namespace renkei::run
