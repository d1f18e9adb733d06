#!/bin/bash
# Runs `make test` several times in a row while busy loops take the processor from it.
# A test that waits for a time instead of a fact fails here first.
set -uo pipefail

ROUNDS=${ROUNDS:-3}
LOOPS=${LOOPS:-2}
busy=()
testing=

# Ends only what this script started, by its id, however the script ends.
stop() {
  trap - EXIT INT TERM
  if [ -n "$testing" ]; then kill -TERM "$testing" 2>/dev/null; wait "$testing"; fi
  kill "${busy[@]}" 2>/dev/null
  wait "${busy[@]}" 2>/dev/null
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for ((at = 0; at < LOOPS; at++)); do
  # It looks up now and then, so that it ends even if this script is killed and can't end it.
  (trap - EXIT INT TERM; while kill -0 $$ 2>/dev/null; do for ((n = 0; n < 1000000; n++)); do :; done; done) &
  busy+=($!)
done

for ((round = 1; round <= ROUNDS; round++)); do
  echo "Round $round of $ROUNDS, beside $LOOPS busy loops …"
  # In the background, because bash hears no signal while it waits for a command in front; as a job of its own,
  # because the tests send Ctrl-C to processes of theirs, which others in the background ignore.
  set -m
  "${MAKE:-make}" --no-print-directory test &
  testing=$!
  set +m
  wait "$testing"
  status=$?
  testing=
  if [ "$status" -ne 0 ]; then
    echo "Round $round of $ROUNDS failed." >&2
    exit 1
  fi
done
echo "All $ROUNDS rounds are green."
