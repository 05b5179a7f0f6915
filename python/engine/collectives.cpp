#include "collectives.h"

#include <fmt/format.h>

#include <numeric>

#include "base/error.h"
#include "comm/collectives/all_gather.h"
#include "comm/collectives/all_to_all.h"
#include "tensors.h"

namespace renkei::python {
namespace {

comm::Reduction reduction_of(const std::string& name) {
  for (const comm::Reduction reduction :
       {comm::Reduction::sum, comm::Reduction::mean, comm::Reduction::max, comm::Reduction::min})
    if (comm::name_of(reduction) == name) return reduction;
  throw Error(ErrorCode::usage, fmt::format("there is no reduction '{}'", name),
              "choose sum, mean, max or min");
}

std::span<std::byte> bytes_of_text(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}

size_t row_bytes(const torch::Tensor& tensor) {
  size_t bytes = tensor.element_size();
  for (const int64_t size : tensor.sizes().slice(1)) bytes *= static_cast<size_t>(size);
  return bytes;
}

torch::Tensor empty_rows(const torch::Tensor& like, int64_t rows) {
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes[0] = rows;
  return torch::empty(sizes, like.options());
}

std::vector<size_t> bytes_of_rows(std::span<const int64_t> rows, size_t row) {
  std::vector<size_t> bytes;
  for (const int64_t count : rows) bytes.push_back(static_cast<size_t>(count) * row);
  return bytes;
}

int64_t sum_of(const std::vector<int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{0});
}

}  // namespace

void Collectives::open(std::shared_ptr<void> owner, comm::Transport& transport,
                       comm::CommunicatorOptions options) {
  owner_ = std::move(owner);
  options.timeout_seconds = timeout_seconds_;
  communicator_ = std::make_unique<comm::Communicator>(transport, std::move(options));
}

void Collectives::barrier(const std::string& operation) {
  communicator_->barrier(call(operation));
}

void Collectives::allreduce(const torch::Tensor& tensor, const std::string& reduction,
                            const std::string& operation) {
  communicator_->allreduce(buffer_of(tensor), reduction_of(reduction), call(operation));
}

torch::Tensor Collectives::reduce_scatter(const torch::Tensor& tensor, const std::string& reduction,
                                          const std::string& operation) {
  const int64_t rows = tensor.size(0);
  const comm::Range mine = comm::chunk_range(static_cast<size_t>(rows), size(), rank());
  // Chunks of elements are chunks of rows where every rank has as many.
  if (rows % size() == 0)
    communicator_->reduce_scatter(buffer_of(tensor), reduction_of(reduction), call(operation));
  else
    communicator_->allreduce(buffer_of(tensor), reduction_of(reduction), call(operation));
  return tensor.narrow(0, static_cast<int64_t>(mine.begin), static_cast<int64_t>(mine.size()))
      .clone();
}

void Collectives::broadcast(const torch::Tensor& tensor, int root, const std::string& operation) {
  communicator_->broadcast(bytes_of(tensor), root, call(operation));
}

std::vector<std::string> Collectives::allgather(const std::string& mine,
                                                const std::string& operation,
                                                std::optional<double> timeout_seconds) {
  comm::Call meeting = call(operation);
  if (timeout_seconds) meeting.timeout_seconds = *timeout_seconds;
  const auto ranks = static_cast<size_t>(size());
  const std::array<int64_t, 1> length{static_cast<int64_t>(mine.size())};
  std::vector<int64_t> lengths(ranks);
  comm::all_gather(transport(), std::span(length), comm::Buffer(std::span(lengths)), meeting);
  std::vector<size_t> counts;
  size_t total = 0;
  for (const int64_t one : lengths) total += counts.emplace_back(static_cast<size_t>(one));
  std::string all(total, '\0');
  comm::all_gather_v(transport(), std::as_bytes(std::span(mine)), comm::Buffer(bytes_of_text(all)),
                     counts, meeting);
  std::vector<std::string> texts;
  size_t begin = 0;
  for (const size_t count : counts) {
    texts.push_back(all.substr(begin, count));
    begin += count;
  }
  return texts;
}

torch::Tensor Collectives::allgather_rows(const torch::Tensor& mine, const std::string& operation) {
  const std::array<int64_t, 1> rows{mine.size(0)};
  std::vector<int64_t> all_rows(static_cast<size_t>(size()));
  comm::all_gather(transport(), std::span(rows), comm::Buffer(std::span(all_rows)),
                   call(operation));
  torch::Tensor all = empty_rows(mine, sum_of(all_rows));
  comm::all_gather_v(transport(), bytes_of(mine), bytes_of(all),
                     bytes_of_rows(all_rows, row_bytes(mine)), call(operation));
  return all;
}

std::pair<torch::Tensor, std::vector<int64_t>> Collectives::alltoall(
    const torch::Tensor& rows, const std::vector<int64_t>& splits, const std::string& operation) {
  std::vector<int64_t> received(static_cast<size_t>(size()));
  comm::all_to_all(transport(), std::span(splits), comm::Buffer(std::span(received)),
                   call(operation));
  torch::Tensor into = empty_rows(rows, sum_of(received));
  const size_t row = row_bytes(rows);
  comm::all_to_all_v(transport(), bytes_of(rows), bytes_of_rows(splits, row), bytes_of(into),
                     bytes_of_rows(received, row), call(operation));
  return {into, received};
}

}  // namespace renkei::python
