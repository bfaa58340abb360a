//! A project with plans, and a daemon that can be killed.

use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::env::Env;

/// A project with a home of its own.
pub fn project() -> Env {
    let env = Env::bare();
    env.cliq(["init"]).expect(0);
    env
}

/// Running daemon. It is killed when this is dropped.
pub struct DaemonProcess {
    child: Child,
}

/// A daemon for the test's home.
pub fn daemon(env: &Env) -> DaemonProcess {
    let mut command = env.command(["daemon", "run"]);
    let log =
        std::fs::OpenOptions::new().create(true).append(true).open(env.path("../daemon.log")).expect("a log");
    let child = command.stdout(log.try_clone().expect("a log")).stderr(log).spawn().expect("it starts");
    DaemonProcess { child }
}

impl DaemonProcess {
    /// Kills the daemon.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("reaped");
    }

    /// Ends the daemon in another way.
    pub fn kill_by(mut self, kill: impl FnOnce(&mut Child)) {
        kill(&mut self.child);
    }
}

impl Drop for DaemonProcess {
    fn drop(&mut self) {
        // ReceivedRequest, so that it ends its agents.
        let pid = Pid::from_child(&self.child);
        let _ = kill_process(pid, Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Adds the plan `ship`, and starts it.
pub fn start(env: &Env, plan: &str) {
    env.write("ship.md", plan);
    env.cliq(["plan", "add", "ship.md"]).expect(0);
    env.cliq(["plan", "start", "ship"]).expect(0);
}

/// Returns the status of the plan.
pub fn status(env: &Env) -> Value {
    env.cliq(["plan", "status", "ship", "--json"]).expect(0).json()
}

/// Waits until the plan is in a state.
pub fn wait_for_state(env: &Env, state: &str) {
    env.wait_for(state, || status(env)["state"] == state);
}
