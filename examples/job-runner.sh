#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: job-runner.sh JOB COMMAND [ARGUMENT...]
#
# Run COMMAND whenever the plan says so. Its calls should go through the gateway with the field `Ration-Job: JOB`, so
# that the gateway learns how many a run makes. RATION_CONTROL is the control port (http://127.0.0.1:7601), RATION_TOKEN
# its token, RATION_RUNS how often to run (until it is stopped).
set -euo pipefail

[ $# -ge 2 ] || { echo "usage: job-runner.sh JOB COMMAND [ARGUMENT...]" >&2 && exit 2; }
job=$1 control=${RATION_CONTROL:-http://127.0.0.1:7601} runs=${RATION_RUNS:--1} began=0
token=(${RATION_TOKEN:+-H "Authorization: Bearer $RATION_TOKEN"})
name=$(printf %s "$job" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g')
number() { sed -E "s/.*\"$1\":([0-9]+).*/\\1/" <<<"$plan"; }

while [ "$runs" -ne 0 ]; do
    plan=$(curl -sS --fail-with-body "${token[@]}" "$control/v1/plan/jobs/$name") || { echo "$plan" >&2 && exit 1; }
    now=$(date +%s%3N) next=$(($(number nextRunAt) + 1)) every=$(number effectiveMs)
    # The gateway counts from the first call of a run, so it does not know of one that made none.
    [ "$next" -gt $((began + every)) ] || next=$((began + every))
    # Never sleep longer than a minute: meanwhile the plan may become another one.
    ms=$((next <= now ? 0 : next - now > 60000 ? 60000 : next - now))
    sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
    [ $((now + ms)) -ge "$next" ] || continue
    began=$next runs=$((runs - 1))
    "${@:2}" || echo "$job: a run ended with status $?" >&2
done
