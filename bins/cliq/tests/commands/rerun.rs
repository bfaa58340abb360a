//! Re-run rules (docs/exit-codes.md): whether a run may start after the last one.

use cliq_testkit::env::Env;

const AGENT: &str = "ok\necho x >> agent-ran\ncomplete\n";

#[test]
fn a_completed_run_is_not_run_again_until_there_is_a_new_task() {
    let env = Env::new(
        "workflow:\n  phases:\n    - name: a\n      type: standard\n      agent: x\n",
        &[("x", AGENT)],
    );
    env.cliq(["run"]).expect(0);
    env.cliq(["run"]).expect(4).says("the last run completed").says("cliq req");
    env.cliq(["run", "-f"]).expect(0);
    env.cliq(["req", "-m", "something else"]).expect(0);
    env.cliq(["run"]).expect(0);
    assert_eq!(env.read("agent-ran").lines().count(), 3);
    assert_eq!(env.files(".cliq/history").iter().filter(|f| f.ends_with("journal.jsonl")).count(), 2);
}

#[test]
fn an_early_escalation_is_cleaned_away_silently() {
    let workflow = "workflow:
  phases:
    - name: setup
      type: gate
      agent: rules
      commands: [{name: t, run: test -f ready}]
    - name: a
      type: standard
      agent: x
      depends_on: [setup]
";
    let env = Env::new(workflow, &[("x", AGENT)]);
    env.cliq(["run"]).expect(3);
    env.write("ready", "");
    let done = env.cliq(["run"]).expect(0);
    assert!(!done.stderr.contains("last run"), "{}", done.stderr);
}

#[test]
fn work_that_agents_have_done_is_not_thrown_away_unasked() {
    let workflow = "workflow:
  phases:
    - name: a
      type: standard
      agent: x
    - name: check
      type: exec
      depends_on: [a]
      commands: [{name: t, run: test -f ready}]
";
    let env = Env::new(workflow, &[("x", AGENT)]);
    env.cliq(["run"]).expect(3);
    env.cliq(["run"]).expect(4).says("after agents had completed: a").says("`cliq run -f`");
    env.write("ready", "");
    env.cliq(["run", "-f"]).expect(0);
}

#[test]
fn clean_leaves_the_team_and_removes_the_rest() {
    let env = Env::new(
        "workflow:\n  phases:\n    - name: a\n      type: standard\n      agent: x\n",
        &[("x", AGENT)],
    );
    env.cliq(["req", "-m", "x"]).expect(0);
    env.cliq(["run"]).expect(0);
    env.cliq(["clean"]).expect(0);
    for gone in [
        ".cliq/journal.jsonl",
        ".cliq/history",
        ".cliq/signals/a.jsonl",
        ".cliq/logs/a.1.log",
        ".cliq/orchestrator.log",
    ] {
        assert!(!env.exists(gone), "{gone}");
    }
    for kept in
        [".cliq/team.yml", ".cliq/roles/a.md", ".cliq/requirement.md", ".cliq/settings.json", ".cliq/cliq.id"]
    {
        assert!(env.exists(kept), "{kept}");
    }
    env.cliq(["run"]).expect(0);
}
