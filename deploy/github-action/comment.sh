#!/usr/bin/env bash
# The last step of action.yml: posts a report, or puts it into the comment with the last report of the same job, directory and team.
# Ends well whatever happens: what the run did is the outcome of the step before.
set -euo pipefail

# A message has no line breaks, and nothing in it is a command for the runner.
warn() {
  printf '::warning title=cliq::the report is in the summary of this job: %s\n' "$(printf '%s' "$*" | tr '\r\n' '  ' | sed 's/%/%25/g')"
  exit 0
}
report=${CLIQ_ACTION_REPORT:?}
[ -n "${CLIQ_ACTION_TOKEN:-}" ] || warn "there is no token for a comment"
work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/cliq.XXXXXX")
trap 'rm -rf "$work"' EXIT
api=${GITHUB_API_URL:-https://api.github.com}/repos/$GITHUB_REPOSITORY/issues

# A call to the API, without settings of this machine's user. The token is in no list of arguments.
call() {
  printf 'header = "Authorization: Bearer %s"\n' "$CLIQ_ACTION_TOKEN" |
    curl -q --fail-with-body --silent --show-error --max-time 60 --config - --header "Accept: application/vnd.github+json" "$@"
}
refused() {
  warn "the comment was refused: $(jq -r '.message? // empty' "$work/answer.json" 2>/dev/null) $(tail -n 1 "$work/error")"
}

words=$(printf '%s, %s' "${GITHUB_JOB:-}" "${CLIQ_ACTION_DIRECTORY:-.}" | tr -c '[:alnum:]._/, ' '_')
marker="<!-- cliq-action: $words -->"$'\n'$(head -n 1 "$report")
found="" page=1
while [ -z "$found" ] && [ "$page" -le 20 ]; do
  call "$api/$CLIQ_ACTION_NUMBER/comments?per_page=100&page=$page" >"$work/answer.json" 2>"$work/error" || refused
  count=$(jq -e length "$work/answer.json") || warn "the list of comments cannot be read"
  # Only comments of programs: others can write the marker too.
  found=$(jq -r --arg marker "$marker" '[.[] | select(.user.type == "Bot" and (.body | startswith($marker))) | .id] | last // empty' "$work/answer.json")
  [ "$count" -eq 100 ] || break
  page=$((page + 1))
done
printf '%s\n%s\n' "<!-- cliq-action: $words -->" "$(cat "$report")" | jq -Rs '{body: .}' >"$work/comment.json"
if [ -n "$found" ]; then
  request=(--request PATCH "$api/comments/$found")
else
  request=(--request POST "$api/$CLIQ_ACTION_NUMBER/comments")
fi
call --data-binary "@$work/comment.json" --header "Content-Type: application/json" "${request[@]}" >"$work/answer.json" 2>"$work/error" || refused
jq -e .id "$work/answer.json" >/dev/null || warn "the answer to the comment cannot be read"
