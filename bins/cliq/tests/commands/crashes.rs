//! The orchestrator is killed at random moments, again and again; each run still ends as an undisturbed one.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use cliq_testkit::env::{Env, done};
use serde_json::Value;

/// Every start of an agent or command leaves a line. Handoffs are big enough to be torn if they could be.
const WORKER: &str = r#"ok
alone
echo $CLIQ_PHASE >> ran
sleep 0.0$(($$ % 5))
progress half
sleep 0.0$(($$ % 3))
big=$(printf '%020000d' 7)
for to in $(ls $CLIQ_DIR/channels | sed -n "s/^$CLIQ_PHASE--//p"); do hand $to '{"version":1,"ts":"2026-01-01T00:00:00.000Z","from":"'$CLIQ_PHASE'","to":"'$to'","phase_type":"standard","iteration":1,"text":"'$big'"}'; done
complete
"#;
/// Sends back until its third iteration: what it decides depends on nothing else.
const JUDGE: &str = r#"ok
alone
echo $CLIQ_PHASE >> ran
sleep 0.0$(($$ % 4))
if printf '%s' "$message" | sed -n '/^  "gate": {/,/^  }/p' | grep -q '^    "iteration": 3'
then verdict '"PASS"'
else verdict '"ROUTE:a"'
fi
"#;
/// Tells when another process of the same phase is still there.
const ALONE: &str = r#"alone() {
  [ -f pid-$CLIQ_PHASE ] && old=$(cat pid-$CLIQ_PHASE) && tr '\0' '\n' 2>/dev/null < /proc/$old/environ \
    | grep -qx "CLIQ_PHASE=$CLIQ_PHASE" && echo $CLIQ_PHASE >> twice
  echo $$ > pid-$CLIQ_PHASE
}
"#;

const CHAIN: &str = "workflow:
  phases:
    - {name: a, type: standard, agent: x}
    - {name: b, type: exec, depends_on: [a], commands: [{name: one, run: 'echo b >> ran'}, {name: two, run: 'sleep 0.02; grep -q 7 .cliq/channels/a--b/handoff.json'}]}
    - {name: c, type: standard, agent: x, depends_on: [b]}
";
const PARALLEL: &str = "workflow:
  phases:
    - {name: a, type: standard, agent: x}
    - {name: b, type: standard, agent: x}
    - {name: c, type: exec, commands: [{name: t, run: 'echo c >> ran; sleep 0.03'}]}
    - {name: d, type: standard, agent: x}
    - {name: e, type: standard, agent: x, depends_on: [a, b, c, d]}
    - {name: f, type: exec, depends_on: [a], commands: [{name: t, run: 'echo f >> ran; sleep 0.02'}]}
";
const LOOP: &str = "workflow:
  phases:
    - {name: a, type: standard, agent: x}
    - {name: side, type: exec, commands: [{name: t, run: 'echo side >> ran; sleep 0.1'}]}
    - name: g
      type: gate
      agent: judge
      depends_on: [a]
      max_iterations: 4
      commands: [{name: t, run: sleep 0.01}]
    - {name: end, type: standard, agent: x, depends_on: [g, side]}
";
const SUPPORT: &str = "workflow:
  phases:
    - {name: a, type: standard, agent: x}
    - name: g
      type: gate
      agent: rules
      depends_on: [a]
      max_iterations: 5
      route_to: [fix]
      commands:
        - {name: t, run: 'sleep 0.01; test $(grep -c fix ran) -ge 2'}
    - {name: end, type: standard, agent: x, depends_on: [g]}
  support:
    - {name: fix, type: standard, agent: x}
";

const ITEMS: &str = "workflow:
  phases:
    - {name: a, type: standard, agent: x}
    - {name: w, type: standard, agent: x, depends_on: [a], for_each: '[1, 2, 3, 4, 5]', when: index != 3, max_parallel: 2}
    - {name: s, type: exec, depends_on: [w], when: 'false', commands: [{name: t, run: echo s >> ran}]}
    - {name: t, type: exec, depends_on: [s], commands: [{name: t, run: echo t >> ran}]}
    - {name: e, type: exec, depends_on: [w], for_each: '[1, 2]', retry: {attempts: 2, delay: 1s}, commands: [{name: t, run: 'echo $CLIQ_PHASE >> ran; sleep 0.02; test $(index) = 0 || test $(grep -c $CLIQ_PHASE ran) -gt 1'}]}
    - {name: end, type: standard, agent: x, depends_on: [w, e, s]}
";

/// A small generator of our own seed: no moment is like another, and each run of the test has others.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// State of a run at one moment.
struct RunSnapshot {
    /// Number of records in the journal.
    events: usize,
    /// Number of activations of each phase that will not run again unless a gate routes to it.
    done: HashMap<String, usize>,
}

fn journal(env: &Env) -> Vec<Value> {
    if !env.exists(".cliq/journal.jsonl") {
        return Vec::new();
    }
    let text = env.read(".cliq/journal.jsonl");
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn ran(env: &Env, phase: &str) -> usize {
    if !env.exists("ran") {
        return 0;
    }
    env.read("ran").lines().filter(|line| *line == phase).count()
}

fn look(env: &Env) -> RunSnapshot {
    let events = journal(env);
    let mut last: BTreeMap<String, (String, Value)> = BTreeMap::new();
    for event in &events {
        if let (Some(phase), Some(kind)) = (event["phase"].as_str(), event["event"].as_str())
            && (kind.starts_with("phase_") || kind == "agent_completed")
        {
            let kind =
                if kind == "phase_started" { event["kind"].as_str().unwrap_or_default() } else { kind };
            last.insert(phase.to_owned(), (kind.to_owned(), event.clone()));
        }
    }
    let done = last.into_iter().filter(|(phase, (kind, _))| match kind.as_str() {
        "phase_completed" | "agent_completed" => true,
        // Nobody heard it, but it is said.
        "standard" => {
            let channel = format!(".cliq/signals/{phase}.jsonl");
            env.exists(&channel) && env.read(&channel).contains("\"status\":\"complete\"")
        }
        _ => false,
    });
    RunSnapshot {
        events: events.len(),
        done: done.map(|(phase, _)| (phase.clone(), ran(env, &phase))).collect(),
    }
}

/// Compares with what was seen before the orchestrator went on.
fn nothing_done_twice(env: &Env, before: &RunSnapshot, now: &[Value], gates: &[&str]) {
    for (phase, count) in before.done.iter().filter(|(phase, _)| !gates.contains(&phase.as_str())) {
        let starts =
            now[before.events..].iter().filter(|e| e["event"] == "phase_started" && e["phase"] == **phase);
        let (routed, others): (Vec<_>, Vec<_>) = starts.partition(|e| e.get("routed_by").is_some());
        assert!(others.is_empty(), "{phase} had completed and was started again");
        assert!(!routed.is_empty() || ran(env, phase) == *count, "{phase} had completed and ran again");
    }
}

fn outcome(env: &Env) -> BTreeMap<String, String> {
    env.phases().into_iter().map(|(name, (status, _))| (name, status)).collect()
}

fn crash(launcher: &str, workflow: &str, gates: &[&str], kills: u32) {
    let mut seed = std::time::UNIX_EPOCH.elapsed().map_or(1, |t| t.as_nanos() as u64);
    seed ^= u64::from(std::process::id()) << 32;
    cliq_testkit::env::print_note(&format!("seed {seed}"));
    let mut random = Random(seed | 1);
    let agents = [
        ("x", &*format!("{}{ALONE}{WORKER}", cliq_testkit::env::PRELUDE)),
        ("judge", &*format!("{}{ALONE}{JUDGE}", cliq_testkit::env::PRELUDE)),
    ];
    let undisturbed = Env::new(workflow, &agents);
    undisturbed.cliq(["run", "--launcher", launcher]).expect(0);
    let expected = (outcome(&undisturbed), undisturbed.files(".cliq/channels"));
    let mut killed = 0;
    while killed < kills {
        let env = Env::new(workflow, &agents);
        for _ in 0..=random.below(4) {
            let before = look(&env);
            let how = if before.events == 0 { "-f" } else { "--resume" };
            let mut run = env.spawn(["run", "--launcher", launcher, how]);
            std::thread::sleep(Duration::from_millis(random.below(450)));
            run.kill().expect("killed");
            let end = done(&run.wait_with_output().expect("it ends"));
            if end.code != -1 {
                assert!(end.code == 0 || end.stderr.contains("nothing left to resume"), "{end:?}");
                break;
            }
            killed += 1;
            nothing_done_twice(&env, &before, &journal(&env), gates);
        }
        let before = look(&env);
        let how = if before.events == 0 { "-f" } else { "--resume" };
        let end = env.cliq(["run", "--launcher", launcher, how]);
        assert!(end.code == 0 || end.stderr.contains("nothing left to resume"), "{end:?}");
        nothing_done_twice(&env, &before, &journal(&env), gates);
        assert_eq!(
            (outcome(&env), env.files(".cliq/channels")),
            expected,
            "{}",
            env.read(".cliq/orchestrator.log")
        );
        assert_eq!(env.read(".cliq/signals/_pipeline_status"), "COMPLETED");
        assert!(!env.exists("twice"), "worked twice at the same time: {}", env.read("twice"));
        assert_eq!(env.left_over(), Vec::<String>::new());
        for file in env.files(".cliq").iter().filter(|file| file.ends_with(".json")) {
            env.read_json(&format!(".cliq/{file}"));
        }
    }
    cliq_testkit::env::print_note(&format!("killed {killed} times"));
}

#[test]
fn in_a_chain() {
    crash("process", CHAIN, &[], 40);
}

#[test]
fn in_parallel_phases() {
    crash("process", PARALLEL, &[], 40);
}

#[test]
fn in_a_loop_of_a_gate() {
    crash("process", LOOP, &["g"], 40);
}

#[test]
fn in_items_and_skipped_phases() {
    crash("process", ITEMS, &[], 40);
}

#[test]
fn in_support_phases() {
    crash("process", SUPPORT, &["g"], 40);
}

#[test]
fn in_panes() {
    if crate::commands::tmux::no_tmux() {
        return;
    }
    crash("tmux", CHAIN, &[], 15);
    crash("tmux", PARALLEL, &[], 15);
}

#[test]
fn in_panes_with_a_gate() {
    if crate::commands::tmux::no_tmux() {
        return;
    }
    crash("tmux", LOOP, &["g"], 15);
    crash("tmux", SUPPORT, &["g"], 15);
}
