//! Drives an agent through one turn and prints figures as JSON: `drive PROGRAM [ARGUMENT…]`. Made for `benches/acp`.
//!
//! Each text of the agent is the time in nanoseconds at which it was written.

use std::process::{Command, ExitCode};
use std::time::{Instant, SystemTime};

use cliq_acp::client::{Client, Host, Origin, PermissionReply, PermissionRequest, SessionRequest, Update};
use cliq_acp::schema::ContentBlock;
use serde_json::json;

/// Latencies of updates, in nanoseconds.
#[derive(Default)]
struct Watch {
    latencies: Vec<u128>,
}

impl Host for Watch {
    fn update(&mut self, origin: Origin, update: &Update) {
        if let (Origin::Turn, Update::Answer(chunk)) = (origin, update)
            && let Some(written) = chunk.text().and_then(|text| text.trim().parse::<u128>().ok())
            && let Ok(now) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)
        {
            self.latencies.push(now.as_nanos().saturating_sub(written));
        }
    }

    fn permission(&mut self, _request: &PermissionRequest, reply: PermissionReply) {
        drop(reply);
    }
}

/// Largest resident size of this process, in kB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[expect(clippy::print_stdout, reason = "its output")]
fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(program) = arguments.next() else { return ExitCode::FAILURE };
    let mut command = Command::new(program);
    command.args(arguments);
    let before = peak();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return ExitCode::FAILURE };
    runtime.block_on(async {
        let mut watch = Watch::default();
        let begin = Instant::now();
        let request = SessionRequest { cwd: "/".into(), ..SessionRequest::default() };
        let Ok(mut session) = Client::new(command, request).start(&mut watch).await else {
            return ExitCode::FAILURE;
        };
        let start = begin.elapsed();
        let report = session.prompt(vec![ContentBlock::from("Work.")], &mut watch).await;
        let turn = begin.elapsed() - start;
        session.end(&mut watch).await;
        let figures = json!({
            "outcome": report.outcome.to_string(), "start_us": start.as_micros(), "turn_us": turn.as_micros(),
            "latencies_ns": watch.latencies, "memory_kb": peak() - before, "resident_kb": peak(),
        });
        println!("{figures}");
        ExitCode::SUCCESS
    })
}
