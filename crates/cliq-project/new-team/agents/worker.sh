#!/bin/sh
# A first agent: it writes the requirement into work.md and hands that on. Put your own work in its place; the protocol
# is all of what stands around it. `cliq agent check -- ./agents/worker.sh` checks that it is kept.
message=$(cat)
case $message in
  *'"type": "test"'* | *'"type":"test"'*) type=test ;;
  *) type=phase ;;
esac

signal() {
  printf '{"ts":"%s","version":1,"type":"%s",%s}\n' \
    "$(date -u +%Y-%m-%dT%H:%M:%S.000Z)" "$type" "$1" >> "$CLIQ_SIGNAL_FILE"
}

signal '"status":"ok"'
[ "$type" = test ] && { signal '"status":"complete"'; exit 0; }

signal '"status":"progress","message":"writing work.md"'
{ echo "# Work"; cat "$CLIQ_DIR/requirement.md" 2>/dev/null; } > work.md

for channel in "$CLIQ_DIR/channels/$CLIQ_PHASE--"*; do
  [ -d "$channel" ] || continue
  printf '{"version":1,"phase_type":"standard","phase":"%s","agent":"worker","data":{"files":["work.md"]},"text":"Wrote work.md."}\n' \
    "$CLIQ_PHASE" > "$channel/.handoff.tmp"
  mv "$channel/.handoff.tmp" "$channel/handoff.json"
done

signal '"status":"complete","result":{}'
