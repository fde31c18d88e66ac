/* SPDX-License-Identifier: MIT */
#ifndef RATION_RATION_H
#define RATION_RATION_H

/* Everything that libration offers. */

#include <ration/adaptive.h>
#include <ration/ceiling.h>
#include <ration/circuit.h>
#include <ration/engine.h>
#include <ration/plan.h>
#include <ration/rules.h>
#include <ration/types.h>
#include <ration/wait.h>

#endif
