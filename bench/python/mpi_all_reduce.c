// SPDX-License-Identifier: Apache-2.0
// MPI_Allreduce (sum of floats) for bench/python/all_reduce.py: microseconds of a call, the median of `rounds` groups
// of calls, of the slowest rank; one line a size. Usage: mpi_all_reduce rounds bytes...
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int rounds = atoi(argv[1]);
  double* times = malloc(sizeof(double) * (size_t)rounds);
  for (int a = 2; a < argc; ++a) {
    const long bytes = atol(argv[a]), fit = (8L << 20) / bytes;
    const int calls = fit < 1 ? 1 : fit > 200 ? 200 : (int)fit;
    float *in = calloc(1, (size_t)bytes), *out = calloc(1, (size_t)bytes);
    for (int r = -1; r < rounds; ++r) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      for (int i = 0; i < calls; ++i) MPI_Allreduce(in, out, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      if (r >= 0) times[r] = (MPI_Wtime() - begin) / calls;
    }
    qsort(times, (size_t)rounds, sizeof(double), ascending);
    double slowest;
    MPI_Reduce(&times[rounds / 2], &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%ld %.3f\n", bytes, slowest * 1e6);
    free(in), free(out);
  }
  free(times);
  MPI_Finalize();
}
