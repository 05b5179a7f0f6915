#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "comm/broadcast.h"
#include "comm/peers.h"

namespace renkei::comm {
namespace {

using Context = std::shared_ptr<gloo::rendezvous::Context>;

class GlooRing : public Peer {
 public:
  explicit GlooRing(Context context) : context_(std::move(context)) {}
  std::string name() const override { return "gloo-ring"; }
  void allreduce(std::span<float> buffer) override {
    gloo::AllreduceOptions options(context_);
    options.setOutput(buffer.data(), buffer.size());
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(gloo::sum<float>));
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    gloo::allreduce(options);
  }

 private:
  Context context_;
};

class GlooHalvingDoubling : public Peer {
 public:
  explicit GlooHalvingDoubling(Context context) : context_(std::move(context)) {}
  std::string name() const override { return "gloo-halving-doubling"; }
  void allreduce(std::span<float> buffer) override {
    // The algorithm object holds the buffers, so it is kept for as long as they stay the same.
    if (!algorithm_ || buffer.data() != data_ || buffer.size() != count_) {
      data_ = buffer.data();
      count_ = buffer.size();
      algorithm_ = std::make_unique<gloo::AllreduceHalvingDoubling<float>>(
          context_, std::vector<float*>{data_}, static_cast<int>(count_));
    }
    algorithm_->run();
  }

 private:
  Context context_;
  float* data_ = nullptr;
  size_t count_ = 0;
  std::unique_ptr<gloo::AllreduceHalvingDoubling<float>> algorithm_;
};

}  // namespace

std::vector<std::unique_ptr<Peer>> make_gloo_peers(Transport& transport) {
  // Rank 0 makes the directory through which the ranks find each other.
  std::array<char, 256> directory{};
  if (transport.rank() == 0) {
    const std::string pattern =
        (std::filesystem::temp_directory_path() / "renkei-gloo-XXXXXX").string();
    std::memcpy(directory.data(), pattern.data(), std::min(pattern.size(), directory.size() - 1));
    if (!::mkdtemp(directory.data()))
      throw Error(ErrorCode::data, fmt::format("could not create {}", pattern));
  }
  broadcast(transport, std::span<std::byte>(std::as_writable_bytes(std::span(directory))), 0,
            {.operation = "broadcast of Gloo's directory"});
  gloo::rendezvous::FileStore store(directory.data());
  auto device = gloo::transport::tcp::CreateDevice(transport.host(transport.rank()).c_str());
  const auto context =
      std::make_shared<gloo::rendezvous::Context>(transport.rank(), transport.size());
  context->connectFullMesh(store, device);
  std::vector<std::unique_ptr<Peer>> peers;
  peers.push_back(std::make_unique<GlooRing>(context));
  peers.push_back(std::make_unique<GlooHalvingDoubling>(context));
  return peers;
}

}  // namespace renkei::comm
