#!/bin/sh
# An agent without a model. Its role contains the probability that it answers right, and the price that it reports.
message=$(cat)
case $message in
  *'"type": "test"'* | *'"type":"test"'*) type=test ;;
  *) type=phase ;;
esac

signal() {
  printf '{"ts":"%s","version":1,"type":"%s",%s}\n' \
    "$(date -u +%Y-%m-%dT%H:%M:%S.000Z)" "$type" "$1" >> "$CLIQ_SIGNAL_FILE"
}

value() { sed -n "s/^$1: *//p" "$CLIQ_DIR/roles/worker.md" | head -n 1; }

signal '"status":"ok"'
[ "$type" = test ] && { signal '"status":"complete"'; exit 0; }

random=$(od -An -N4 -tu4 /dev/urandom)
awk "BEGIN { exit !($random / 4294967296 < $(value probability)) }" && answer=right || answer=wrong
echo "$answer" > answer.txt
signal "\"status\":\"complete\",\"result\":{\"usage\":{\"model\":\"simulated\",\"tokens_in\":1000,\"tokens_out\":100,\"cost_usd\":$(value price)}}"
