// The steps of threads that work. Other threads act once per step, at the same time as what follows it: if they acted in a
// loop, the threads that work would wait for locks most of the time, for minutes on a busy machine.
#pragma once
#include <pthread.h>

static pthread_mutex_t steps_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stepped = PTHREAD_COND_INITIALIZER;
static long steps;
static int over;

static inline void step(void) {
    pthread_mutex_lock(&steps_lock);
    steps++;
    pthread_cond_broadcast(&stepped);
    pthread_mutex_unlock(&steps_lock);
}

// The last step: the other threads end.
static inline void last_step(void) {
    over = 1;
    step();
}

// Waits for a step after `seen`, the last one that this thread has seen. Returns 0 after the last step.
static inline int wait_for_step(long *seen) {
    pthread_mutex_lock(&steps_lock);
    while (*seen == steps)
        pthread_cond_wait(&stepped, &steps_lock);
    *seen = steps;
    int goes_on = !over;
    pthread_mutex_unlock(&steps_lock);
    return goes_on;
}
