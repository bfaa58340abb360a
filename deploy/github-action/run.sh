#!/usr/bin/env bash
# The first step of action.yml. Reads CLIQ_ACTION_* and the variables of GitHub Actions; needs git, jq and curl, which its machines have.
set -euo pipefail

say() { printf '%s\n' "$*"; }
# Ends the step with an exit code. A message has no line breaks, and nothing in it is a command for the runner.
fail() {
  local code=$1
  shift
  printf '::error title=cliq::%s\n' "$(printf '%s' "$*" | tr '\r\n' '  ' | sed 's/%/%25/g')"
  exit "$code"
}
event() { jq -r "$1 // empty" "$GITHUB_EVENT_PATH"; }
output() { printf '%s=%s\n' "$1" "$2" >>"$outputs"; }

# Agents do not get the files by which a step speaks to the runner and to later steps.
outputs=${GITHUB_OUTPUT:-/dev/null} summary=${GITHUB_STEP_SUMMARY:-/dev/null}
unset GITHUB_OUTPUT GITHUB_STEP_SUMMARY GITHUB_ENV GITHUB_PATH GITHUB_STATE
output status none
for program in jq curl; do
  command -v "$program" >/dev/null || fail 1 "$program is missing on this machine"
done
[ -n "${CLIQ_ACTION_TEAM:-}" ] || fail 1 "the input team is missing"
[ -r "${GITHUB_EVENT_PATH:-}" ] || fail 1 "GITHUB_EVENT_PATH names no file: this is a step of GitHub Actions"
jq -e 'type == "object"' "$GITHUB_EVENT_PATH" >/dev/null 2>&1 || fail 1 "the event in GITHUB_EVENT_PATH cannot be read"
case ${CLIQ_ACTION_COMMENT:-true} in
  true | false) ;;
  *) fail 1 "the input comment is true or false, not $CLIQ_ACTION_COMMENT" ;;
esac

# Whose text this is, and whether they may give tasks. Events without a conversation come from people who may push.
is_member() { case $1 in OWNER | MEMBER | COLLABORATOR) ;; *) return 1 ;; esac; }
number=$(event '(.pull_request // .issue // {}).number')
is_fork=false
if [ -n "$(event '.pull_request')" ] && [ "$(event '.pull_request.head.repo.full_name')" != "$(event '.pull_request.base.repo.full_name')" ]; then
  is_fork=true
fi
stranger=""
case ${GITHUB_EVENT_NAME:-} in
  # GitHub gives no secrets to pull_request events of forks.
  pull_request | push | schedule | workflow_dispatch | repository_dispatch | merge_group | release) ;;
  pull_request_target | pull_request_review | pull_request_review_comment | issues | issue_comment)
    author=$(event '(.pull_request // .issue // {}).author_association')
    speaker=$(event '(.comment // .review // {}).author_association')
    if [ -n "$(event '.comment // .review')" ]; then
      is_member "$speaker" || stranger="the text of someone who is no member of the repository (${speaker:-unknown})"
    fi
    # A member's comment on a stranger's issue makes a task of the stranger's text too.
    if [ -z "${CLIQ_ACTION_REQUIREMENT:-}" ] || [ -z "$(event '.comment // .review')" ]; then
      is_member "$author" || stranger="the text of someone who is no member of the repository (${author:-unknown})"
    fi
    if [ "$GITHUB_EVENT_NAME" != issues ] && $is_fork; then stranger="the code of a fork"; fi
    ;;
  *) stranger="a text of unknown origin" ;;
esac
case ${CLIQ_ACTION_TRUST:-members} in
  everyone) ;;
  members)
    [ -z "$stranger" ] ||
      fail 1 "the event ${GITHUB_EVENT_NAME:-} has secrets, and $stranger: no team is run with it. The input trust: everyone allows it"
    ;;
  *) fail 1 "the input trust is members or everyone, not $CLIQ_ACTION_TRUST" ;;
esac

work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/cliq.XXXXXX")
if [ -n "${CLIQ_ACTION_RELEASE:-}" ]; then
  installer=$work/install.sh
  case $CLIQ_ACTION_RELEASE in
    http://* | https://*) curl -q --fail --silent --show-error --location --output "$installer" "${CLIQ_ACTION_RELEASE%/}/install.sh" ||
      fail 1 "cannot fetch install.sh of the release" ;;
    *) cp -- "$CLIQ_ACTION_RELEASE/install.sh" "$installer" || fail 1 "the release has no install.sh" ;;
  esac
  sh "$installer" --from "$CLIQ_ACTION_RELEASE" --to "$work/bin" --only-programs ${CLIQ_ACTION_VERSION:+--version "$CLIQ_ACTION_VERSION"} ||
    fail 1 "cliq cannot be installed from the release"
  PATH=$work/bin:$PATH
fi
command -v cliq >/dev/null || fail 1 "cliq is not on the PATH: the input release names a release to install"

cd "${CLIQ_ACTION_DIRECTORY:-.}" || fail 1 "the working directory ${CLIQ_ACTION_DIRECTORY:-.} does not exist"
if [ -n "${CLIQ_ACTION_REQUIREMENT:-}" ]; then
  printf '%s\n' "$CLIQ_ACTION_REQUIREMENT" >"$work/requirement"
else
  event '[(.issue // .pull_request | .title, .body), .comment.body, .review.body] | map(select(. != null and . != "")) | join("\n\n")' >"$work/requirement"
fi
grep -q '[^[:space:]]' "$work/requirement" || fail 1 "there is no task: the event has no title, and the input requirement is empty"

# Options are words; none is a pattern.
set -f
# shellcheck disable=SC2206
arguments=(${CLIQ_ACTION_ARGUMENTS:-})
set +f
# Until its end, what agents and teams print is no command for the runner.
stop=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
say "::stop-commands::$stop"
begin() { "$@" || { code=$?; say "::$stop::"; fail "$code" "the run did not begin: $1 $2 ended with $code"; }; }
[ -d .cliq ] || begin cliq init
begin cliq assemble "$CLIQ_ACTION_TEAM"
begin cliq req --file "$work/requirement"
code=0
cliq run --headless --yes "${arguments[@]}" &
run=$!
# A job that is cancelled cancels the run, and still has its report. A signal ends `wait` before the run has ended: it is called again.
interrupted=""
trap 'interrupted=1; kill -TERM "$run" 2>/dev/null || true' INT TERM
while :; do
  interrupted="" ended=0
  wait "$run" || ended=$?
  # 127: it was waited for already.
  [ "$ended" -eq 127 ] || code=$ended
  [ -n "$interrupted" ] || break
done
say "::$stop::"

report=$work/report.md
link=${GITHUB_SERVER_URL:-https://github.com}/${GITHUB_REPOSITORY:-}/actions/runs/${GITHUB_RUN_ID:-}
# Without a run, such as with a team that has errors, the job's log says why.
cliq ci --link "$link" >"$report" || fail "$((code > 0 ? code : 1))" "the run did not begin: cliq run ended with $code"
explained=$(cliq explain --json) && status=$(jq -er .status <<<"$explained") && id=$(jq -er .run_id <<<"$explained") ||
  fail "$((code > 0 ? code : 1))" "the outcome of the run cannot be read"
output report "$report"
output status "$status"
output run-id "$id"
cat "$report" >>"$summary"
if [ "${CLIQ_ACTION_COMMENT:-true}" = true ] && [ -n "$number" ]; then
  if $is_fork && [ "${GITHUB_EVENT_NAME:-}" = pull_request ]; then
    say "::notice title=cliq::the report is in the summary of this job: a pull request from a fork has no right to comment"
  else
    output number "$number"
    output comment true
  fi
fi
exit "$code"
