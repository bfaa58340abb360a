# What the demo's agents share: the protocol of docs/protocol.md in a few lines of shell.

# Text as the inside of a JSON string.
json() {
  printf '%s' "$1" | awk 'BEGIN { ORS = "" }
    { gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); gsub(/\t/, "\\t"); gsub(/[\001-\037]/, " ")
      if (NR > 1) print "\\n"; print }'
}

signal() {
  printf '{"ts":"%s","version":1,"type":"%s",%s}\n' "$(date -u +%Y-%m-%dT%H:%M:%S.000Z)" "$TYPE" "$1" >> "$CLIQ_SIGNAL_FILE"
}

progress() { signal "\"status\":\"progress\",\"message\":\"$(json "$1")\""; }
complete() { signal "\"status\":\"complete\",\"result\":{}"; exit 0; }

# hand_over TO TEXT DATA: writes the handoff whole, then renames it into place.
hand_over() {
  dir="$CLIQ_DIR/channels/$CLIQ_PHASE--$1"
  mkdir -p "$dir"
  printf '{"version":1,"phase_type":"standard","phase":"%s","agent":"%s","text":"%s","data":%s}\n' \
    "$CLIQ_PHASE" "$AGENT" "$(json "$2")" "$3" > "$dir/.handoff.$$"
  printf '%s\n' "$2" > "$dir/handoff.md"
  mv "$dir/.handoff.$$" "$dir/handoff.json"
}

# Lines as a JSON list of texts.
list() {
  sep=""
  printf '['
  printf '%s\n' "$1" | while IFS= read -r line; do
    [ -n "$line" ] || continue
    printf '%s"%s"' "$sep" "$(json "$line")"
    sep=","
  done
  printf ']'
}

# A message of type "test" asks only whether the agent speaks the protocol.
case "$(cat)" in
  *'"type": "test"'* | *'"type":"test"'*) TYPE=test; signal '"status":"ok"'; complete ;;
esac
TYPE=phase
signal '"status":"ok"'
trap 'signal "\"status\":\"error\",\"error\":\"the agent was ended\""; exit 1' TERM
