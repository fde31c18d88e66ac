/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_PROPERTY_H
#define TESTS_SUPPORT_PROPERTY_H

/*
 * Property tests: a function draws what it does from a sequence of choices, and says what must hold.
 *
 * A seed gives the sequence. When something does not hold, the runner looks for a shorter and lower sequence that
 * breaks the same property, runs that once more with its notes printed, and prints `replay: SEED`. The same function
 * can be driven by a fuzzer's bytes, for they are a sequence of choices too.
 *
 *     static void never_above_the_burst(choices *c, void *context)
 *     {
 *         ...
 *         while (choose(c, 50) != 0) {
 *             const int64_t charge = choose_from(c, 1, 5);
 *             NOTE(c, "take %" PRId64, charge);
 *             ...
 *             HOLDS(c, taken <= earned);
 *         }
 *     }
 *
 *     property_check("never above the burst", never_above_the_burst, NULL, 2000);
 *
 * Lower choices should be simpler ones, and 0 should end a loop: that is what makes the shrunk case readable. A
 * property that breaks leaves by a jump, so what it holds on the heap is lost; it is a test that has failed anyway.
 *
 * Environment: PROPERTY_SEED runs this one seed alone; PROPERTY_RUNS multiplies the number of runs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct choices choices;
typedef void property_fn(choices *c, void *context);

/** A number from 0 to `bound`, both included. */
uint64_t choose(choices *c, uint64_t bound);
/** A number from `low` to `high`, both included; `low` is the simplest. */
int64_t choose_from(choices *c, int64_t low, int64_t high);
/** A number from 0 to `bound` whose magnitude is drawn first, so that small and huge ones are equally frequent. */
uint64_t choose_wide(choices *c, uint64_t bound);

#define HOLDS(c, condition) property_hold((c), (condition), #condition, __FILE__, __LINE__)
/** A line that is printed when the shrunk case is run for the reader. */
#define NOTE(c, ...) property_note((c), __VA_ARGS__)

void property_hold(choices *c, bool holds, const char *what, const char *file, int line);
void property_note(choices *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Runs the property with `runs` seeds; prints and returns false at the first that breaks it. */
bool property_run(const char *name, property_fn *property, void *context, uint64_t runs);
/** Runs the property once on choices read from `data`; aborts with a message when it breaks. For fuzz targets. */
void property_fuzz(property_fn *property, void *context, const uint8_t *data, size_t size);

/** `property_run` in a cmocka test. */
#define property_check(name, property, context, runs) assert_true(property_run((name), (property), (context), (runs)))

#endif
