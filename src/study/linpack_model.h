// How fast would LINPACK (HPL) be on a described machine? The matrix lies in the memory of the
// devices, a grid of P × Q processes, columns of the grid first, so that the devices of a node are
// in one column where P allows. For each panel of NB columns, with r rows left:
//
//   panel      NB columns are factored by the P processes of a column: a search for the pivot in
//              each, with log2 P messages there and back, and r/P NB^2 operations of the node's
//              cores
//   broadcast  the panel, 8 r/P NB bytes, goes on to the next process of each row
//   swap       rows of U go to all of a column: halves by binary exchange, then around a ring
//   copy       panel and U between the host and its device
//   update     2 r/P r/Q NB operations by the slowest device
//
// A panel and its broadcast hide behind the update before (look-ahead of one); the rest does not.
// Broadcast and swap are run as messages over the network, in rounds, all rows and columns at once,
// which is where links are shared.
#pragma once

#include "cluster/description.h"

namespace renkei::study {

struct LinpackOptions {
  int p = 1, q = 1;
  int block = 384;
  double device_flops_per_second = 4.7e12;  // 64 bits, peak
  double product_efficiency = 0.9;          // of large products on a device
  double slowest = 1;                       // how much longer the slowest device takes
  double node_flops_per_second = 0.82e12;   // of the cores, that factor panels
  double panel_efficiency = 0.5;
  double memory_share = 0.8;
};

struct LinpackTime {
  double n = 0;
  double seconds = 0;
  double update = 0, broadcast = 0, swap = 0, panel = 0, copy = 0;  // not all of it exposed
  double efficiency = 0;                                            // of the peak of all devices
  double efficiency_exposed = 0;  // if nothing hides behind updates
};

LinpackTime linpack_time(const cluster::Description& machine, const LinpackOptions& options);

}  // namespace renkei::study
