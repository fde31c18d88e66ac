#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: curl-api.sh ACCOUNT URL [CONTROL]
#
# One call with curl and the decision API: wait up to 10 s for a lease, call, tell what came back. CONTROL is the
# control port of `ration serve` (http://127.0.0.1:7601); RATION_SOCKET names its Unix socket, RATION_TOKEN its token.
set -euo pipefail

account=$1 url=$2 control=${3:-http://127.0.0.1:7601}
options=(-sS -H 'Content-Type: application/json')
[ -z "${RATION_TOKEN:-}" ] || options+=(-H "Authorization: Bearer $RATION_TOKEN")
[ -z "${RATION_SOCKET:-}" ] || options+=(--unix-socket "$RATION_SOCKET")

# ask OPERATION BODY [OPTION...]: the answer's body, then its status on a line.
ask() {
    curl "${options[@]}" -w '%{http_code}\n' -d "$2" "${@:3}" "$control/v1/$1"
}

# The same key on every attempt: an answer that was lost on the way costs no second lease. (curl's own --retry would
# also repeat a refusal, which is an answer.)
key="curl-$$-$RANDOM$RANDOM"
path=/${url#*://*/}
asked="{\"account\":\"$account\",\"method\":\"GET\",\"path\":\"$path\",\"timeout\":10000}"
for _ in 1 2 3; do
    answer=$(ask acquire "$asked" -H "Idempotency-Key: $key") && break
done
case $answer in
*$'\n'200) lease=$(sed -n 's/.*"lease":"\([^"]*\)".*/\1/p' <<<"$answer") ;;
*) echo "refused: $answer" >&2 && exit 1 ;;
esac

status=$(curl -sS -o /dev/stderr -w '%{http_code}' "$url") || status=0
if [ "$status" = 0 ]; then
    ask release "{\"lease\":\"$lease\",\"outcome\":\"failure\"}" >/dev/null
    exit 1
fi
ask release "{\"lease\":\"$lease\",\"status\":$status}" >/dev/null
echo "$status under lease $lease"
