// MPI_Allreduce of any MPI library: prints {"size": microseconds, …}, the median of the rounds.
// usage: mpi_allreduce ROUNDS SIZE_BYTES…
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int rounds = std::atoi(argv[1]);
  if (rank == 0) std::printf("{");
  for (int argument = 2; argument < argc; ++argument) {
    const long bytes = std::atol(argv[argument]);
    std::vector<float> buffer(static_cast<size_t>(bytes) / 4, 0.0f);
    const auto once = [&](int repetitions) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      for (int i = 0; i < repetitions; ++i)
        MPI_Allreduce(MPI_IN_PLACE, buffer.data(), static_cast<int>(buffer.size()), MPI_FLOAT,
                      MPI_SUM, MPI_COMM_WORLD);
      double seconds = (MPI_Wtime() - begin) / repetitions;
      MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      return seconds;
    };
    once(1);
    const int repetitions = std::clamp(static_cast<int>(4e-3 / once(2)), 1, 2000);
    std::vector<double> seconds;
    for (int round = 0; round < rounds; ++round) seconds.push_back(once(repetitions));
    std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
    if (rank == 0)
      std::printf("%s\"%ld\": %.3f", argument > 2 ? ", " : "", bytes,
                  seconds[static_cast<size_t>(rounds / 2)] * 1e6);
  }
  if (rank == 0) std::printf("}\n");
  MPI_Finalize();
}
