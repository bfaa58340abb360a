//! Three steps of which the second waits for a file, and what holds for them wherever a run works.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use crate::chain;
use serde_json::json;

use crate::env::Env;
use crate::machine::{Machine, wait_for};

/// Each step writes its number to `ran`; the second ends when there is a file `go`.
const STEPS: &[&str] = &[
    "echo 0 >> ran",
    "echo 1 >> ran; touch second; while ! test -e go; do sleep 0.1; done",
    "echo 2 >> ran",
];

/// The team of the steps.
pub fn steps() -> String {
    chain(STEPS)
}

/// Starts a run of the steps, and waits until its second one works.
pub fn begun(env: &Env, args: &[&str]) -> Child {
    let run = env.spawn(args);
    env.wait_for("the second phase", || env.exists("second"));
    run
}

/// A run of a server goes on, each phase once, where the server dies; and with it the process that follows the run; and that alone.
/// `places` is how many containers or Jobs the run with an id has.
pub fn outlives_servers_and_followers(machine: &Machine, workspaces: &Path, places: impl Fn(&str) -> usize) {
    machine.chain("steps", STEPS);
    for (server_dies, follower_dies) in [(true, false), (true, true), (false, true)] {
        let mut server = Some(machine.serve());
        let id = server.as_ref().unwrap().start_run(&json!({"team": "@local/steps"}));
        let workspace = workspaces.join(&id);
        wait_for("the second phase works", || workspace.join("second").exists().then_some(()));
        assert_eq!(places(&id), 1);
        if server_dies {
            server.take().unwrap().kill();
        }
        if follower_dies {
            let name = format!("cliq -C {} run", workspace.display());
            assert!(Command::new("pkill").args(["-KILL", "-f", &name]).status().unwrap().success(), "{name}");
        }
        let server = server.unwrap_or_else(|| machine.serve());
        fs::write(workspace.join("go"), "").unwrap();
        let run = server.ended(&id);
        assert_eq!(run["state"], "completed", "{run}");
        let events = server.events(&id);
        let completed = events.iter().filter(|(_, event)| event["event"] == "phase_completed");
        let phases: Vec<&str> = completed.map(|(_, event)| event["phase"].as_str().unwrap()).collect();
        assert_eq!(phases, ["p0", "p1", "p2"], "each once");
        server.kill();
    }
}
