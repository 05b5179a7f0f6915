#pragma once

#include <functional>
#include <vector>

#include "plan/splits.h"

namespace renkei::plan {

// The costs of all stages that dynamic programming chooses from: between any two marks, which are
// some of the cuts, on any number of units of devices.
class SplitTable {
 public:
  SplitTable(const Objective& objective, const SplitOptions& options,
             const std::function<bool()>& expired);

  size_t marks() const { return marks_.size(); }
  size_t cut(size_t mark) const { return marks_[mark]; }
  bool linear() const { return linear_; }  // each mark contains all before it
  int choices() const { return options_.uniform ? 1 : options_.units; }  // of units

  // Stages on as many units of devices that are alike have one row. With uniform stages, a place
  // is that of a stage, counted from the end; else the number of units from its first to the end.
  int places() const { return options_.uniform ? options_.most_stages : options_.units; }
  size_t row(int units, int place) const {
    return row_of_[static_cast<size_t>(units - 1)][index(place)];
  }

  struct Cost {
    double seconds;  // infinite when it does not fit
    double weight;   // what the bound bounds
  };
  // Of a stage that is the k-th from the end.
  Cost cost(size_t row, size_t from, size_t to, int k) const;
  double weight_before(size_t mark) const;  // on one unit of the fastest devices
  double total_weight() const { return weight_before(marks() - 1); }
  double transfer(size_t row, size_t mark) const { return rows_[row].transfers[mark]; }

 private:
  // A stage without what depends on its place in the pipeline.
  struct Entry {
    float compute = 0, forward = 0;             // seconds
    float resident = 0, saved = 0, inputs = 0;  // bytes
    float kept = 0, segment = 0;  // with recompute in segments, where it may be needed
  };
  struct Row {
    int replicas;
    std::vector<size_t> kinds;      // of device
    double limit;                   // of memory
    std::vector<Entry> entries;     // from × to
    std::vector<double> transfers;  // to the next stage and back, by the mark between
  };

  size_t index(int place) const { return options_.by_place ? static_cast<size_t>(place - 1) : 0; }
  void choose_marks();
  void add_rows();
  size_t find_or_fill(const DeviceRange& devices);
  Row fill(const GroupCosts& group) const;
  double weight(double forward, double compute) const;

  const Objective& objective_;
  const SplitOptions& options_;
  const std::function<bool()>& expired_;
  std::vector<size_t> marks_;
  std::vector<Row> rows_;
  std::vector<std::vector<size_t>> row_of_;  // by units, then by place
  bool linear_ = false;
};

// A chain of cuts, each the narrowest of those with one op more than the one before it.
std::vector<size_t> chain_of_cuts(const Objective& objective);

}  // namespace renkei::plan
