#include "run/shared_parameters.h"

#include "run/buffers.h"

namespace renkei::run {

Held& Held::operator+=(const Held& other) {
  parameters += other.parameters;
  shared_out += other.shared_out;
  in_tensors += other.in_tensors;
  gradients += other.gradients;
  optimizer += other.optimizer;
  return *this;
}

SharedParameters::SharedParameters(const std::vector<torch::Tensor>& parameters,
                                   comm::Communicator& world, GradientSink& sink,
                                   const Options& options)
    : transport_(
          std::make_unique<comm::SubTransport>(world.transport(), options.ranks, options.channel)),
      communicator_(
          std::make_unique<comm::Communicator>(*transport_, world.options_among(options.ranks))) {
  if (parameters.empty()) return;
  comm::Communicator& communicator = *communicator_;
  const auto call = [&](std::string_view operation) {
    return comm::Call{.operation = operation, .timeout_seconds = options.update.timeout_seconds};
  };
  // Parameters first travel as they are in the network: ranks that share memory would get in each
  // other's way.
  broadcast_state(parameters, communicator, call("broadcast of the initial state"));

  FlatMemory memory;
  memory.gradients = [&](size_t count, comm::DType dtype) {
    return communicator.allocate(count, dtype).data;
  };
  // Over several hosts with the state divided among all, each sends its part to all others.
  const bool one_host = communicator.local_size() == communicator.transport().size();
  const bool divide = options.divide && !one_host;
  values_are_shared_ = communicator.local_size() > 1 && !divide && !options.own_values;
  if (values_are_shared_) {
    memory.values = [&](size_t count, comm::DType dtype) {
      return communicator.allocate_once(count, dtype)->data;
    };
    memory.fill_values = communicator.local_rank() == 0;
  }
  flat_ = std::make_unique<FlatParameters>(parameters, sink, memory);
  communicator.local_barrier(call("begin of training"));
  const Division division = divide               ? Division::all
                            : values_are_shared_ ? Division::host
                                                 : Division::none;
  updater_ = std::make_unique<ParameterUpdater>(*flat_, division, communicator, options.update);
}

void SharedParameters::close() {
  updater_.reset();
  flat_.reset();
  communicator_->close();
}

comm::Range SharedParameters::filled() const {
  const size_t count = flat_->value_buffer().count;
  if (!values_are_shared_) return {0, count};
  return comm::chunk_range(count, communicator_->local_size(), communicator_->local_rank());
}

comm::Range SharedParameters::written() const {
  return comm::chunk_range(flat_->value_buffer().count, transport_->size(), transport_->rank());
}

Held SharedParameters::held() const {
  if (!flat_) return {};
  const auto bytes = static_cast<int64_t>(flat_->value_buffer().bytes());
  const int64_t sharers = values_are_shared_ ? communicator_->local_size() : 1;
  return {.parameters = bytes,
          .shared_out = bytes - bytes / sharers,
          .in_tensors = values_are_shared_ ? 0 : bytes,
          .gradients = bytes,
          .optimizer = static_cast<int64_t>(updater_->state_bytes())};
}

}  // namespace renkei::run
