//! Sandboxes of phases, agents, projects and persons: who may ask for what, and what is shown.

use std::fs;
use std::process::Command;

use cliq_testkit::env::PRELUDE;
use serde_json::{Value, json};

use crate::sandbox::world::{World, mechanisms};

fn sandboxes(world: &World) -> Vec<Value> {
    let journal = fs::read_to_string(world.env.path(".cliq/journal.jsonl")).unwrap();
    let events = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["event"] == "phase_sandboxed").collect()
}

/// A team whose command and whose agent read a secret of the home directory.
fn reading(phase: &str, agent: &str) -> (String, String) {
    let read = "cat \"$HOME/.ssh/id_rsa\" > read-by-$CLIQ_PHASE || true";
    let workflow = format!(
        "workflow:
  phases:
    - {{name: command, type: exec, {phase} commands: [{{name: c, run: '{read}'}}]}}
    - {{name: agent, type: standard, depends_on: [command], {agent} agent: reader}}
    - {{name: last, type: exec, depends_on: [agent], commands: [{{name: c, run: 'test -s \"$CLIQ_DIR/channels/agent--last/handoff.json\"'}}]}}
"
    );
    (workflow, format!("{PRELUDE}ok; {read}; hand last '{{\"agent\":\"reader\",\"version\":1}}'; complete\n"))
}

fn read_by(world: &World, phase: &str) -> bool {
    world.env.read(&format!("read-by-{phase}")).contains("secret")
}

#[test]
fn teams_ask_and_persons_decide() {
    for mechanism in mechanisms() {
        let world = |phase: &str, agent: &str| {
            let (workflow, script) = reading(phase, agent);
            let world = World::new(&workflow, &[("reader", &script)]);
            world.cliq(&["settings", "set", "-g", "sandbox.mechanism", mechanism]).expect(0);
            world
        };
        // Nobody asks: nothing is restricted.
        let open = world("", "");
        open.cliq(&["run", "--headless"]).expect(0);
        assert!(read_by(&open, "command") && read_by(&open, "agent") && sandboxes(&open).is_empty());
        // One phase asks.
        let asks = world("", "sandbox: strict,");
        asks.cliq(&["run", "--headless"]).expect(0);
        assert!(read_by(&asks, "command") && !read_by(&asks, "agent"));
        let recorded = sandboxes(&asks);
        assert_eq!((recorded.len(), &recorded[0]["mechanism"]), (1, &json!(mechanism)));
        asks.cliq(&["explain"]).expect(0).says(&format!("sandbox strict by {mechanism}"));
        let status = asks.cliq(&["status", "--json"]).expect(0).json();
        assert_eq!(status["phases"][1]["sandbox"], "strict", "{status}");
        // The person's setting holds for all. A team lifts nothing.
        let (off, lax) = ("sandbox: off,", "sandbox: {profile: workspace, read: [~/.ssh]},");
        let set = world(off, lax);
        set.cliq(&["settings", "set", "-g", "sandbox", "workspace"]).expect(0);
        set.cliq(&["settings", "set", "sandbox", "off"]).expect(0);
        set.cliq(&["run", "--headless"]).expect(0);
        assert!(!read_by(&set, "command") && !read_by(&set, "agent"));
        // A person's exception, for a team that asks for it.
        let allowed = world(off, lax);
        allowed.cliq(&["settings", "set", "-g", "sandbox.read", "~/.ssh"]).expect(0);
        allowed.cliq(&["settings", "set", "-g", "sandbox.profile", "workspace"]).expect(0);
        allowed.cliq(&["run", "--headless"]).expect(0);
        assert!(read_by(&allowed, "command") && read_by(&allowed, "agent"));
        // For one run.
        let once = world("", "");
        once.cliq(&["run", "--headless", "--sandbox", "workspace"]).expect(0);
        assert!(!read_by(&once, "command") && !read_by(&once, "agent"));
    }
}

#[test]
fn sub_teams_are_within_the_sandbox_of_their_phase() {
    let workflow = "workflow:
  phases:
    - {name: sub, type: team, team: ./inner, sandbox: workspace}
    - {name: free, type: exec, depends_on: [sub], commands: [{name: c, run: 'cat \"$HOME/.ssh/id_rsa\" > read-by-free'}]}
";
    let world = World::new(
        "workflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: c, run: 'true'}]}\n",
        &[],
    );
    let (inner, script) = reading("", "sandbox: off,");
    world.env.team(workflow, &[]);
    world.env.write(
        "../team/inner/team.yml",
        &format!("name: \"@local/inner\"\nagents:\n  reader: {{entry: agents/reader}}\n{inner}"),
    );
    world.env.write_executable("../team/inner/agents/reader", &script);
    world.env.write("../team/inner/roles/agent.md", "Reads.\n");
    world.cliq(&["assemble", "../team"]).expect(0);
    world.cliq(&["run", "--headless"]).expect(0);
    assert!(!read_by(&world, "command") && !read_by(&world, "agent") && read_by(&world, "free"));
}

#[test]
fn what_cannot_be_enforced_is_refused() {
    let (workflow, script) = reading("sandbox: workspace,", "");
    let world = World::new(&workflow, &[("reader", &script)]);
    world.cliq(&["settings", "set", "-g", "sandbox.mechanism", "bubblewrap"]).expect(0);
    let without = |arguments: &[&str]| {
        // `sh` and `cat` without `bwrap`.
        let programs = world.outside("programs");
        fs::create_dir_all(&programs).unwrap();
        for program in ["cat", "test", "mkdir", "mv", "printf"] {
            let _ = std::os::unix::fs::symlink(format!("/usr/bin/{program}"), programs.join(program));
        }
        cliq_testkit::env::done(&world.command(arguments).env("PATH", &programs).output().unwrap())
    };
    without(&["run", "--headless"])
        .expect(1)
        .says("cannot enforce the sandbox of the run")
        .says("is not installed");
    assert!(!world.env.exists(".cliq/journal.jsonl"), "nothing has started");
    // A project cannot permit it.
    world.cliq(&["settings", "set", "sandbox.missing", "warn"]).expect(2).says("a project cannot set it");
    world.env.write(".cliq/settings.json", "{\"sandbox\": {\"missing\": \"warn\"}}");
    without(&["run", "--headless"]).expect(1);
    world.cliq(&["settings", "set", "-g", "sandbox.missing", "warn"]).expect(0);
    without(&["run", "--headless"]).expect(0).says("processes of this run are not restricted");
}

#[test]
fn mistakes_in_a_team_are_reported_where_they_are() {
    let world = World::new(
        "workflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: c, run: 'true'}]}\n",
        &[],
    );
    for (sandbox, says) in [
        ("lax", "`sandbox` cannot be \"lax\""),
        ("{profile: lax}", "`profile` cannot be \"lax\""),
        ("{net: none}", "has no field `net`"),
        ("{network: [a b]}", "sandbox.network[0]"),
        ("{profile: off, network: none}", "restricts nothing"),
    ] {
        let phase = format!(
            "    - name: a\n      type: exec\n      sandbox: {sandbox}\n      commands: [{{name: c, run: 'true'}}]\n"
        );
        world.env.team(&format!("workflow:\n  phases:\n{phase}"), &[]);
        let output = world.cliq(&["team", "validate", "../team"]).expect(2).says(says);
        assert!(
            output.stderr.contains("team.yml:6:") || output.stdout.contains("team.yml:6:"),
            "{}{}",
            output.stdout,
            output.stderr
        );
    }
}

/// Agents and commands in panes.
#[test]
fn panes_are_within_the_sandbox() {
    if Command::new("tmux").arg("-V").output().is_err() {
        return cliq_testkit::not_run("there is no tmux");
    }
    for mechanism in mechanisms() {
        let (workflow, script) = reading("", "");
        let world = World::new(&workflow, &[("reader", &script)]);
        world.cliq(&["settings", "set", "-g", "sandbox.mechanism", mechanism]).expect(0);
        world.cliq(&["run", "--launcher", "tmux", "--sandbox", "workspace"]).expect(0);
        assert!(world.env.exists("read-by-command") && !read_by(&world, "command"));
        assert!(world.env.exists("read-by-agent") && !read_by(&world, "agent"));
        world.cliq(&["run", "-f", "--launcher", "tmux"]).expect(0);
        assert!(read_by(&world, "command") && read_by(&world, "agent"));
    }
}

/// Agents and commands of plans: each writes the plan and emits signals, and reads no secret.
#[test]
fn agents_of_plans_are_within_the_sandbox() {
    let workflow = "workflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: c, run: 'true'}]}\n";
    for mechanism in mechanisms() {
        let world = World::new(workflow, &[]);
        let git = "git init -q && git config user.name a && git config user.email b && git commit -q --allow-empty -m first";
        assert!(
            Command::new("sh").args(["-c", git]).current_dir(world.env.path(".")).status().unwrap().success()
        );
        world.cliq(&["settings", "set", "-g", "sandbox.mechanism", mechanism]).expect(0);
        world.cliq(&["settings", "set", "-g", "sandbox", "workspace"]).expect(0);
        let script = world.outside("agent.sh");
        fs::write(
            &script,
            "set -eu
cat \"$HOME/.ssh/id_rsa\" > read-by-$CLIQ_ROLE || true
cat \"$HOME/.cliqrc/settings.json\" > read-by-$CLIQ_ROLE || true
case $CLIQ_ROLE in
planner) printf 'Goal.\\n\\nBranches: yes\\n\\n## Wave 1\\n\\n### Task 1: a\\nDo a.\\n' > \"$CLIQ_PLAN_FILE\" ;;
coder) test -f .git && echo work > worked && git add worked && git commit -qm work
  ! touch \"$CLIQ_PROJECT/.git/hooks/post-commit\" 2>/dev/null || touch hooked
  cliq signal emit implement_task_finished \"$CLIQ_PLAN\" --payload '{\"wave_number\":1,\"task_number\":1}' ;;
reviewer) cliq signal emit review_approved \"$CLIQ_PLAN\" ;;
master) cliq signal emit verify_approved \"$CLIQ_PLAN\" ;;
esac
",
        )
        .unwrap();
        for role in ["planner", "coder", "reviewer", "master"] {
            let command = format!("sh '{}'", script.display());
            world.cliq(&["settings", "set", &format!("roles.{role}.command"), &command]).expect(0);
        }
        world.env.write("ship.md", "Goal.\n\nBranches: yes\n");
        world.cliq(&["plan", "add", "ship.md"]).expect(0);
        world.cliq(&["plan", "start", "ship"]).expect(0);
        let mut daemon = world.command(&["daemon", "run"]).spawn().unwrap();
        let state = || world.cliq(&["plan", "status", "ship", "--json"]).expect(0).json();
        world.env.wait_for("the plan is done", || state()["state"] == "done");
        let pid = rustix::process::Pid::from_child(&daemon);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        daemon.wait().unwrap();
        let tree = world.env.path(".worktrees/ship");
        assert_eq!(fs::read_to_string(tree.join("worked")).unwrap(), "work\n");
        for (dir, role) in
            [(".", "planner"), (".worktrees/ship-w1-t1", "coder"), (".worktrees/ship", "master")]
        {
            let read = world.env.path(dir).join(format!("read-by-{role}"));
            assert_eq!(fs::read_to_string(&read).unwrap(), "", "{mechanism}: {}", read.display());
        }
        // Landlock alone does not protect a git directory below the project.
        assert!(mechanism == "landlock" || !tree.join("hooked").exists());
        assert!(mechanism == "landlock" || !world.env.exists(".git/commondir"));
    }
}

/// An item writes to its worktree, which lies in `.cliq`.
#[test]
fn items_in_worktrees_work_in_a_sandbox() {
    let plan = format!(
        "{PRELUDE}ok; for to in fix end; do hand $to '{{\"version\":1,\"ts\":\"2026-01-01T00:00:00.000Z\",\"from\":\"plan\",\"phase\":\"plan\",\"phase_type\":\"standard\",\"agent\":\"planner\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"text\":\"t\",\"data\":{{\"files\":[\"a\",\"b\",\"c\"]}}}}'; done; complete\n"
    );
    let workflow = "workflow:
  phases:
    - {name: plan, type: standard, agent: planner}
    - name: fix
      type: exec
      depends_on: [plan]
      for_each: handoff.plan.files
      workspace: worktree
      commands:
        - {name: edit, run: 'echo fixed > $(item).txt && git status --short > /dev/null'}
        - {name: other, run: '! touch ../fix.0/by-$(index) || test $(index) = 0', escalate_on_fail: false}
    - {name: end, type: exec, depends_on: [plan, fix], commands: [{name: c, run: 'cat a.txt b.txt c.txt > all'}]}
";
    for mechanism in mechanisms() {
        let world = World::new(workflow, &[("planner", &plan)]);
        world.cliq(&["settings", "set", "-g", "sandbox.mechanism", mechanism]).expect(0);
        for (name, text) in
            [(".gitignore", ".cliq/\n"), ("a.txt", "bug\n"), ("b.txt", "bug\n"), ("c.txt", "bug\n")]
        {
            world.env.write(name, text);
        }
        for args in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "first"]] {
            let mut git = Command::new("git");
            git.args(["-c", "user.email=a@b.c", "-c", "user.name=a"])
                .args(args)
                .current_dir(world.env.work());
            assert!(git.status().unwrap().success(), "{args:?}");
        }
        world.cliq(&["run", "--headless", "--sandbox", "workspace"]).expect(0);
        assert_eq!(world.env.read("all"), "fixed\nfixed\nfixed\n", "{mechanism}");
        // Landlock alone does not protect `.cliq` within the workspace (docs/sandbox.md).
        let written = (1..3).any(|n| world.env.exists(&format!("by-{n}")));
        assert_eq!(
            written,
            mechanism == "landlock",
            "{mechanism}: an item writes to the worktree of another"
        );
    }
}
