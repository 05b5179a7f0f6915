// The settings of the communication: declared and read here.
#include "base/error.h"
#include "comm/communicator.h"

namespace renkei::comm {

void declare_settings(Settings& settings) {
  Setting algorithm{.name = "comm.algorithm",
                    .kind = SettingKind::choice,
                    .default_value = "automatic",
                    .help = "how to sum over the ranks; by itself, what the cost model says"};
  for (const Algorithm choice : {Algorithm::automatic, Algorithm::ring, Algorithm::halving_doubling,
                                 Algorithm::tree, Algorithm::torus, Algorithm::hierarchical})
    algorithm.choices.emplace_back(name_of(choice));
  settings.declare(std::move(algorithm));
  settings.declare({.name = "comm.ring",
                    .kind = SettingKind::text,
                    .default_value = "",
                    .help = "order of the ranks on a ring, such as 0,2,1,3; by itself, ranks of a "
                            "host next to each other"});
  settings.declare({.name = "comm.groups",
                    .kind = SettingKind::text,
                    .default_value = "",
                    .help = "hosts behind one uplink, such as a1,a2;b1,b2: side by side on the "
                            "ring, so that it crosses each uplink once"});
  settings.declare({.name = "comm.wire",
                    .kind = SettingKind::choice,
                    .default_value = "f32",
                    .help = "how f32 gradients travel between hosts; they are added in f32",
                    .choices = {"f32", "f16", "bf16"}});
  settings.declare(
      {.name = "comm.reproducible",
       .kind = SettingKind::boolean,
       .default_value = "false",
       .help = "sums in rank order: the same bits for any topology and number of hosts"});
  settings.declare({.name = "comm.shared_memory",
                    .kind = SettingKind::boolean,
                    .default_value = "true",
                    .help = "ranks of a host exchange in shared memory instead of messages"});
  settings.declare({.name = "comm.segment",
                    .kind = SettingKind::size,
                    .default_value = "auto",
                    .help = "bytes of a message when a large buffer is pipelined",
                    .low = 64,
                    .high = 1 << 30});
  settings.declare({.name = "comm.overlap",
                    .kind = SettingKind::boolean,
                    .default_value = "true",
                    .help = "sum the gradients of later layers while those of earlier ones are "
                            "computed; the bits are the same"});
  settings.declare({.name = "comm.bucket",
                    .kind = SettingKind::size,
                    .default_value = "auto",
                    .help = "gradients that are summed at once",
                    .low = 4,
                    .high = 0x1p40});
  settings.declare({.name = "comm.timeout",
                    .kind = SettingKind::duration,
                    .default_value = "300s",
                    .help = "how long a rank waits for another one before the job is given up",
                    .low = 0.1,
                    .high = 1e6});
}

CommunicatorOptions communicator_options(const Settings& settings, int ranks) {
  CommunicatorOptions options{
      .segment_bytes = static_cast<size_t>(settings.size_unless_auto("comm.segment").value_or(0)),
      .reproducible = settings.boolean("comm.reproducible"),
      .shared_memory = settings.boolean("comm.shared_memory"),
      .timeout_seconds = settings.seconds("comm.timeout")};
  options.algorithm = parse_algorithm(settings.text("comm.algorithm"));
  if (!settings.text("comm.ring").empty())
    options.ring_order = parse_ring_order(settings.text("comm.ring"), ranks);
  if (!settings.text("comm.groups").empty())
    options.host_groups = parse_host_groups(settings.text("comm.groups"));
  if (!options.ring_order.empty() && !options.host_groups.empty())
    throw Error(ErrorCode::usage, "comm.ring and comm.groups both say how the ring goes",
                "give the order with comm.ring, or the groups and let the order follow");
  if (settings.text("comm.wire") == "f16") options.wire = DType::f16;
  if (settings.text("comm.wire") == "bf16") options.wire = DType::bf16;
  return options;
}

}  // namespace renkei::comm
