//! A workspace on a file system that does not respond delays its own run only.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use cliq_testkit::machine::{Machine, wait_for};
use serde_json::json;

/// Number of requests for files of the workspace. More than the server has threads for other work.
const READERS: usize = 24;

/// Mount that answers no request until it is dropped.
struct StuckMount(Child);

impl StuckMount {
    /// Mounts over a directory. Returns the reason if that is not possible here.
    fn over(directory: &Path) -> Result<Self, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/stuck_mount.py");
        let mut command = Command::new("python3");
        command.arg(script).arg(directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("there is no python3: {error}"))?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.trim() == "mounted" {
            return Ok(Self(child));
        }
        let mut why = String::new();
        child.stderr.take().unwrap().read_to_string(&mut why).unwrap();
        child.wait().unwrap();
        Err(format!("a file system that does not respond cannot be made: {}", why.trim()))
    }
}

impl Drop for StuckMount {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn stuck_workspace_delays_only_its_own_run() {
    let machine = Machine::new();
    machine.chain("long", &["echo begun > begun; sleep 61.5"]);
    machine.chain("quick", &["true"]);
    let server = machine.serve();
    let stuck = server.start_run(&json!({"team": "@local/long"}));
    let workspace = machine.home.join("workspaces").join(&stuck);
    wait_for("the phase works", || workspace.join("begun").exists().then_some(()));
    let mount = match StuckMount::over(&workspace) {
        Ok(mount) => mount,
        Err(why) => {
            server.post(&format!("/api/v1/runs/{stuck}/cancel"), &json!({})).expect(202);
            return cliq_testkit::not_run(&why);
        }
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|n| {
                let kind = ["logs", "files", "handoffs", "timeline", "changes", "graph.svg"][n % 6];
                let path = format!("/api/v1/runs/{stuck}/{kind}");
                let server = &server;
                scope.spawn(move || server.get(&path).status)
            })
            .collect();
        for _ in 0..20 {
            assert_eq!(server.send("GET", "/healthz", &[], None).status, 200);
        }
        // What the server knows without the files is there at once.
        let shown = server.get(&format!("/api/v1/runs/{stuck}")).expect(200).json();
        assert_eq!(shown["workspace_responds"], false, "{shown}");
        assert_eq!((&shown["state"], &shown["phases"][0]["status"]), (&json!("running"), &json!("running")));
        let page = server.get(&format!("/runs/{stuck}")).expect(200);
        assert!(page.body.contains("does not respond"), "the page says why its files are missing");
        // Another run starts and ends in the meantime.
        let quick = server.start_run(&json!({"team": "@local/quick"}));
        assert_eq!(server.ended(&quick)["state"], "completed");
        assert!(readers.iter().any(|reader| !reader.is_finished()), "requests for its files wait");
        assert_eq!(server.send("GET", "/healthz", &[], None).status, 200);
        drop(mount);
        for reader in readers {
            let status = reader.join().unwrap();
            // 410 or 404: its files could not be opened when the file system failed.
            assert!(matches!(status, 200 | 404 | 410 | 422 | 503), "{status}");
        }
    });
    wait_for("the files respond", || {
        let shown = server.get(&format!("/api/v1/runs/{stuck}")).expect(200).json();
        (shown["workspace_responds"] == true).then_some(())
    });
    // The follower goes on as soon as the file system responds.
    server.post(&format!("/api/v1/runs/{stuck}/cancel"), &json!({})).expect(202);
    assert_eq!(server.ended(&stuck)["state"], "cancelled");
}
