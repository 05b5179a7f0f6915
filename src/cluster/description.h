// What machine is this? Nodes with devices, the links inside a node and between nodes, storage. A
// description is a TOML file (docs/plan.md); some machines come with Renkei, and `local` is
// measured.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/choice/cost_model.h"

namespace renkei::cluster {

struct DeviceKind {
  std::string name;
  double flops_per_second = 1;  // peak, 32-bit floating point
  double efficiency = 1;        // the share of the peak that large products reach
  int64_t memory_bytes = 0;
  double memory_bytes_per_second = 1;
  double call_seconds = 0;  // the least that an op takes
  double spread = 0;        // standard deviation of the speed among devices of this kind, relative
};

struct Nodes {
  int count = 1;
  int devices = 1;  // of each node
  int kind = 0;     // place in Description::kinds
  int64_t memory_bytes = 0;
  comm::LinkCost link;  // between two devices of a node
};

struct Interconnect {
  comm::LinkCost link;    // of a node
  int adapters = 1;       // of a node, which share its rate; a message goes over one of them
  int group_nodes = 0;    // nodes that share a switch; 0: all
  comm::LinkCost uplink;  // of a group; the latency comes on top of the node's
};

struct Storage {
  std::string name;
  double read_bytes_per_second = 0;  // of one node; 0: not known
  double open_seconds = 0;
};

// A training that was done, or is thought of, on a machine: what `renkei simulate` goes by unless
// it is told otherwise.
struct Run {
  std::string model = {};
  std::string devices = {};              // a sweep
  int64_t batch_per_device = 0;          // 0: not given, as for all below
  double device_samples_per_second = 0;  // measured, of one device by itself
  std::string algorithm = {};            // of the allreduce
  std::string wire = {};                 // f16: what gradients travel as
  bool overlap = true;                   // of reduction and backward
  double samples = 0, epochs = 0;        // of the whole training
  int64_t sample_bytes = 0;              // in storage
};

struct Description {
  std::string name;
  std::string summary;
  std::vector<DeviceKind> kinds;
  std::vector<Nodes> nodes;
  Interconnect interconnect;
  Storage storage;
  Run run;

  int device_count() const;
};

// A device and where it is.
struct Place {
  int kind = 0;
  int nodes = 0;  // place in Description::nodes
  int node = 0;   // number of the node in the whole machine
  int group = 0;  // number of its group of nodes
};

// The first `count` devices, node by node, fast nodes first, so that who leaves devices out leaves
// the slow ones out. A usage Error when there are fewer.
std::vector<Place> places(const Description& description, int count);

comm::LinkCost link_between(const Description& description, const Place& a, const Place& b);

// For collectives among these devices.
comm::CostModel cost_model(const Description& description, std::span<const Place> devices);

// Throws a usage Error with the line: unknown keys (with the nearest name), wrong types, values out
// of range, a device kind that is not there.
Description parse_description(std::string_view toml, const std::string& source);

// As a file that parse_description() reads.
std::string format_description(const Description& description);

// A file, or one of the machines that come with Renkei. A usage Error lists these.
Description load_description(const std::string& name_or_file);
std::vector<std::string> shipped_machines();

}  // namespace renkei::cluster
