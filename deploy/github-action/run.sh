#!/usr/bin/env bash
# The step of action.yml. Reads CLIQ_ACTION_* and the variables of GitHub Actions; needs git, jq and curl, which its machines have.
set -euo pipefail

say() { printf '%s\n' "$*"; }
fail() {
  # A line of an error has no line breaks, and nothing in it is a command for the runner.
  printf '::error title=cliq::%s\n' "$(printf '%s' "$*" | tr '\r\n' '  ' | sed 's/%/%25/g')"
  exit 1
}
event() { jq -r "$1 // empty" "$GITHUB_EVENT_PATH"; }
output() { printf '%s=%s\n' "$1" "$2" >>"${GITHUB_OUTPUT:-/dev/null}"; }

for program in jq curl; do
  command -v "$program" >/dev/null || fail "$program is missing on this machine"
done
[ -n "${CLIQ_ACTION_TEAM:-}" ] || fail "the input team is missing"
[ -r "${GITHUB_EVENT_PATH:-}" ] || fail "GITHUB_EVENT_PATH names no file: this is a step of GitHub Actions"
output status none
# The token is for the comment: agents do not get it.
token=${CLIQ_ACTION_TOKEN:-}
unset CLIQ_ACTION_TOKEN

# Whose text this is, and whether they may give tasks. Events without a conversation come from people who may push.
number=$(event '.pull_request.number // .issue.number')
head=$(event '.pull_request.head.repo.full_name')
is_fork=false
if [ -n "$(event '.pull_request.number')" ] && [ "$head" != "$(event '.pull_request.base.repo.full_name')" ]; then is_fork=true; fi
case ${GITHUB_EVENT_NAME:-} in
  pull_request | push | schedule | workflow_dispatch | repository_dispatch | merge_group | release)
    # GitHub gives no secrets to pull_request events of forks.
    association=OWNER ;;
  pull_request_target | pull_request_review | pull_request_review_comment | issues | issue_comment)
    association=$(event '.comment.author_association // .review.author_association // .pull_request.author_association // .issue.author_association')
    # A member's comment on a stranger's issue makes a task of the stranger's text too.
    if [ -n "$(event '.comment')" ] && [ -z "${CLIQ_ACTION_REQUIREMENT:-}" ]; then
      case $(event '.issue.author_association // .pull_request.author_association') in
        OWNER | MEMBER | COLLABORATOR) ;;
        *) association=NONE ;;
      esac
    fi ;;
  *) association=NONE ;;
esac
case ${CLIQ_ACTION_TRUST:-members} in
  everyone) ;;
  members)
    case $association in
      OWNER | MEMBER | COLLABORATOR) ;;
      *) fail "the event ${GITHUB_EVENT_NAME:-} has secrets, and the text of someone who is no member of the repository (${association:-unknown}): no team is run with it. The input trust: everyone allows it" ;;
    esac
    if [ "${GITHUB_EVENT_NAME:-}" = pull_request_target ] && $is_fork; then
      fail "pull_request_target runs with secrets, and this pull request comes from a fork: no team is run with it. Use pull_request, or the input trust: everyone"
    fi ;;
  *) fail "the input trust is members or everyone, not ${CLIQ_ACTION_TRUST}" ;;
esac

work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/cliq.XXXXXX")
if [ -n "${CLIQ_ACTION_RELEASE:-}" ]; then
  installer=$work/install.sh
  case $CLIQ_ACTION_RELEASE in
    http://* | https://*) curl --fail --silent --show-error --location --output "$installer" "${CLIQ_ACTION_RELEASE%/}/install.sh" ||
      fail "cannot fetch install.sh of the release" ;;
    *) cp -- "$CLIQ_ACTION_RELEASE/install.sh" "$installer" || fail "the release has no install.sh" ;;
  esac
  sh "$installer" --from "$CLIQ_ACTION_RELEASE" --to "$work/bin" ${CLIQ_ACTION_VERSION:+--version "$CLIQ_ACTION_VERSION"} ||
    fail "cliq cannot be installed from the release"
  PATH=$work/bin:$PATH
fi
command -v cliq >/dev/null || fail "cliq is not on the PATH: the input release names a release to install"

cd "${CLIQ_ACTION_DIRECTORY:-.}" || fail "the working directory does not exist"
if [ -n "${CLIQ_ACTION_REQUIREMENT:-}" ]; then
  printf '%s\n' "$CLIQ_ACTION_REQUIREMENT" >"$work/requirement"
else
  event '[(.issue // .pull_request | .title, .body), .comment.body] | map(select(. != null and . != "")) | join("\n\n")' >"$work/requirement"
fi
[ -s "$work/requirement" ] || fail "there is no task: the event has no title, and the input requirement is empty"

# Options are words; none is a pattern.
set -f
# shellcheck disable=SC2206
arguments=(${CLIQ_ACTION_ARGUMENTS:-})
set +f
[ -d .cliq ] || cliq init
cliq assemble "$CLIQ_ACTION_TEAM"
cliq req --file "$work/requirement"
code=0
cliq run --headless --yes "${arguments[@]}" || code=$?

report=$work/report.md
link=${GITHUB_SERVER_URL:-https://github.com}/${GITHUB_REPOSITORY:-}/actions/runs/${GITHUB_RUN_ID:-}
# Without a run, such as with a team that has errors, the job's log says why.
if ! cliq ci --link "$link" >"$report"; then
  fail "the run did not begin: cliq run ended with $code"
fi
output report "$report"
output status "$(cliq explain --json | jq -r .status)"
output run-id "$(cliq explain --json | jq -r .run_id)"
cat "$report" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"

# A call to the API. The token is in no list of arguments.
api() {
  printf 'header = "Authorization: Bearer %s"\n' "$token" |
    curl --fail-with-body --silent --show-error --config - --header "Accept: application/vnd.github+json" "$@"
}

# Posts the report, or puts it into the comment with the last report of this team.
comment() {
  local marker issues=${GITHUB_API_URL:-https://api.github.com}/repos/$GITHUB_REPOSITORY/issues page=1 found="" list
  marker=$(head -n 1 "$report")
  while [ -z "$found" ] && [ "$page" -le 20 ]; do
    list=$(api "$issues/$number/comments?per_page=100&page=$page") || { printf '%s' "$list" >"$work/posted.json"; return 1; }
    # Only comments of programs: others can write the marker too.
    found=$(jq -r --arg marker "$marker" '[.[] | select(.user.type == "Bot" and (.body | startswith($marker))) | .id] | last // empty' <<<"$list")
    [ "$(jq length <<<"$list")" -eq 100 ] || break
    page=$((page + 1))
  done
  jq -n --rawfile body "$report" '{body: $body}' >"$work/comment.json"
  if [ -n "$found" ]; then
    api --request PATCH --data-binary "@$work/comment.json" --header "Content-Type: application/json" "$issues/comments/$found"
  else
    api --request POST --data-binary "@$work/comment.json" --header "Content-Type: application/json" "$issues/$number/comments"
  fi >"$work/posted.json"
}
if [ "${CLIQ_ACTION_COMMENT:-true}" != true ] || [ -z "$number" ]; then
  :
elif $is_fork && [ "${GITHUB_EVENT_NAME:-}" = pull_request ]; then
  say "::notice title=cliq::the report is in the summary of this job: a pull request from a fork has no right to comment"
elif [ -z "$token" ]; then
  say "::warning title=cliq::the report is in the summary of this job: there is no token for a comment"
elif ! comment; then
  say "::warning title=cliq::the report is in the summary of this job: the comment was refused ($(jq -r '.message? // empty' "$work/posted.json" 2>/dev/null | tr '\r\n' '  '))"
fi
exit "$code"
