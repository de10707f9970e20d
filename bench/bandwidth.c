// Measures how fast this machine's cores read memory: every thread sums its
// own part of one buffer again and again.
//
//   bandwidth MEBIBYTES THREADS SECONDS
//
// Prints the best pass in GB/s (10^9 bytes).
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LANES = 64, MOST_THREADS = 256 };

static pthread_barrier_t barrier;
static size_t words_each;
static uint64_t *buffer;
static int threads;
static double seconds, best;
static uint64_t sums[MOST_THREADS];
static int stop;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint64_t sum(const uint64_t *words, size_t count) {
  uint64_t lanes[LANES] = {0};
  for (size_t i = 0; i < count; i += LANES) {
    __builtin_prefetch(words + i + 512);
    for (size_t j = 0; j < LANES; ++j)
      lanes[j] += words[i + j];
  }
  uint64_t total = 0;
  for (size_t j = 0; j < LANES; ++j)
    total += lanes[j];
  return total;
}

static void *work(void *argument) {
  size_t thread = (size_t)(uintptr_t)argument;
  uint64_t *mine = buffer + thread * words_each;
  // Each thread touches its part first, so that the pages lie near it.
  memset(mine, 1, words_each * sizeof(uint64_t));
  double end = now() + seconds;
  for (;;) {
    pthread_barrier_wait(&barrier);
    double start = now();
    sums[thread] += sum(mine, words_each);
    pthread_barrier_wait(&barrier);
    if (thread == 0) {
      double took = now() - start;
      double rate =
          1e-9 * (double)(words_each * sizeof(uint64_t)) * threads / took;
      if (rate > best)
        best = rate;
      stop = now() >= end;
    }
    pthread_barrier_wait(&barrier);
    if (stop)
      return NULL;
  }
}

int main(int argc, char **argv) {
  long mebibytes = argc == 4 ? atol(argv[1]) : 0;
  threads = argc == 4 ? atoi(argv[2]) : 0;
  seconds = argc == 4 ? atof(argv[3]) : 0;
  if (mebibytes < 1 || mebibytes > 65536 || threads < 1 ||
      threads > MOST_THREADS || seconds <= 0) {
    fprintf(stderr, "usage: bandwidth MEBIBYTES THREADS SECONDS\n");
    return 2;
  }
  words_each = ((size_t)mebibytes << 20) / sizeof(uint64_t) / (size_t)threads /
               LANES * LANES;
  size_t bytes = words_each * (size_t)threads * sizeof(uint64_t);
  buffer = aligned_alloc(4096, (bytes + 8191) / 4096 * 4096);
  if (!buffer) {
    fprintf(stderr, "bandwidth: no %zu bytes of memory\n", bytes);
    return 1;
  }
  pthread_barrier_init(&barrier, NULL, (unsigned)threads);
  pthread_t ids[MOST_THREADS];
  for (long i = 1; i < threads; ++i) {
    if (pthread_create(&ids[i], NULL, work, (void *)(uintptr_t)i) != 0) {
      fprintf(stderr, "bandwidth: no thread %ld\n", i);
      return 1;
    }
  }
  work(NULL);
  for (int i = 1; i < threads; ++i)
    pthread_join(ids[i], NULL);
  uint64_t total = 0;
  for (int i = 0; i < threads; ++i)
    total += sums[i];
  // The sum is printed so that no compiler leaves the reads out.
  printf("%.2f GB/s (sum %llx)\n", best, (unsigned long long)total);
  return 0;
}
