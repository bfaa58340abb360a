#!/bin/sh
# Every role of the demo, scripted: no model is needed. Whoever it is, it reads its brief, does real work on real files, and
# ends with a marker or a signal, as a model would.
set -eu
brief=$CLIQ_BRIEF task=$CLIQ_TASK
told() { grep -q "^## $1" "$brief"; }
sleep "${DEMO_PACE:-0.2}"
mkdir -p tools data

ready() { printf 'READY_FOR_REVIEW: %s\n\nFiles Modified:\n- %s: written\n\nTests Written:\n- none: the auditor runs it\n\nVerification Results:\n- runs (here): PASS\n\nSummary: %s\n' "$task" "$1" "$2"; }

developer() {
  case $task in
  w1-t1)
    # The first attempt forgets to stop at errors; the critic notices.
    if told 'What has to be changed'; then echo 'set -eu' > tools/celsius.sh; else : > tools/celsius.sh; fi
    echo 'echo $(($1 * 9 / 5 + 32))' >> tools/celsius.sh
    ready tools/celsius.sh 'Celsius to Fahrenheit' ;;
  w1-t2)
    if [ ! -f data/factors.txt ]; then
      printf 'INFRA_BLOCKED: %s\n\nIssue: data/factors.txt is not there\nCommand: cat data/factors.txt\nOutput: No such file or directory\nEnvironment: local\n' "$task"
      exit 0
    fi
    cat > tools/kilometres.sh <<'TOOL'
set -eu
factor=$(sed -n 's/^mile=//p' data/factors.txt)
echo $(($1 * 1000 / factor))
TOOL
    ready tools/kilometres.sh 'kilometres to miles' ;;
  w1-t3)
    if ! told 'What a person answers'; then
      printf 'SEEKING_DIVINE_CLARIFICATION\n\nTask: %s\nAgent: developer\n\nQuestion: which greeting is polite there? Answer with the word.\n\nContext:\nThe plan does not name the country.\n' "$task"
      exit 0
    fi
    word=$(sed -n '/^> Answer:/,$p' "$brief" | sed -n '2s/^> //p')
    printf 'set -eu\necho "%s, $1!"\n' "$word" > tools/greeting.sh
    ready tools/greeting.sh "it says $word" ;;
  w2-t1)
    # The first attempt forgets a tool; the auditor notices.
    if told 'What has to be changed'; then tools='celsius|kilometres|greeting'; else tools='celsius|greeting'; fi
    cat > tools/menu.sh <<TOOL
set -eu
tool=\$1; shift
case \$tool in $tools) sh "tools/\$tool.sh" "\$@" ;; *) echo "no such tool: \$tool"; exit 1 ;; esac
TOOL
    ready tools/menu.sh 'one menu for all' ;;
  w2-t2)
    { echo '# Manual'; for tool in tools/*.sh; do echo; echo "\`sh $tool\`"; done; } > MANUAL.md
    ready MANUAL.md 'all tools are named' ;;
  esac
}

critic() {
  for file in tools/*.sh; do
    [ "$task" = w1-t1 ] && [ "$file" = tools/celsius.sh ] || continue
    if ! grep -q '^set -eu' "$file"; then
      printf 'REVIEW_FAILED: %s\n\nFiles Reviewed:\n- %s\n\nIssues Found:\n- %s:1: it goes on after an error\n\nRequired Fixes:\n- begin with `set -eu`\n\nPriority: HIGH\n' "$task" "$file" "$file"
      exit 0
    fi
  done
  printf 'REVIEW_PASSED: %s\n\nFiles Reviewed:\n- tools\n\nQuality Assessment:\n- Code style: COMPLIANT\n\nSummary: short and clear\n' "$task"
}

auditor() {
  check() { # program and arguments, what it should print
    if got=$($1 2>&1) && [ "$got" = "$2" ]; then return 0; fi
    printf 'AUDIT_FAILED: %s\n\nFailed Criteria:\n- `%s` prints `%s`: FAILED - it prints `%s`\n\nIssues Found:\n- it does not do what the plan says\n\nRequired Fixes:\n- make it print `%s`\n' "$task" "$1" "$2" "$got" "$2"
    exit 0
  }
  case $task in
  w1-t1) check 'sh tools/celsius.sh 100' 212 ;;
  w1-t2) check 'sh tools/kilometres.sh 16' 9 ;;
  w1-t3) sh tools/greeting.sh Ada | grep -q 'Ada!' ;;
  w2-t1) check 'sh tools/menu.sh celsius 100' 212; check 'sh tools/menu.sh kilometres 16' 9 ;;
  w2-t2) grep -q celsius MANUAL.md ;;
  esac
  printf 'AUDIT_PASSED: %s\n\nVerification Results:\n- all criteria: VERIFIED - they were run\n\nCommands Executed:\n- acceptance (local): PASS\n\nSummary: it does what the plan says\n' "$task"
}

case $CLIQ_ROLE in
developer) developer ;;
critic) critic ;;
auditor) auditor ;;
remediation)
  echo 'mile=1609' > data/factors.txt
  printf 'REMEDIATION_COMPLETE\n\nIssues Fixed:\n- data/factors.txt is not there: written\n\nVerification Results:\n- factors: PASS\n' ;;
health-auditor)
  if grep -q '^mile=' data/factors.txt; then
    printf 'HEALTH_AUDIT: HEALTHY\n\nVerification Results:\n- factors (local): PASS\n'
  else
    printf 'HEALTH_AUDIT: UNHEALTHY\n\nFailed Checks:\n- factors (local): FAIL\n'
  fi ;;
reviewer) cliq signal emit review_approved "$CLIQ_PLAN" --payload 'all of it is short and clear' ;;
master)
  for tool in celsius kilometres greeting; do sh tools/menu.sh $tool 16; done
  cliq signal emit verify_approved "$CLIQ_PLAN" ;;
*) echo "there is no $CLIQ_ROLE in this demo"; exit 1 ;;
esac
