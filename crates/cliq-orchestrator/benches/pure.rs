//! Benchmarks without processes: the machine alone, validation, reading signals. `benches/compare` runs them and prints the
//! figures.
//!
//! Each line is a JSON object with `what`, `seconds` and, where there is something to compare with, `ratio`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark, for whoever runs it")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;

use cliq_fs::SignalTail;
use cliq_orchestrator::ValidatedWorkflow;
use cliq_orchestrator::internals::{Effect, Input, Limits, Pipeline};
use cliq_workflow::{NoFiles, check};

fn main() {
    if std::env::args().any(|arg| arg == "--list") {
        return;
    }
    let megabytes = std::env::var("SIGNAL_MEGABYTES").ok().and_then(|n| n.parse().ok()).unwrap_or(1024);
    // First, while little else has taken memory.
    signals(megabytes);
    // A team has at most 20,000 phases.
    let first = machine(10_000);
    let second = machine(20_000);
    println!(
        "{}",
        serde_json::json!({"what": "machine, 20,000 phases beside 10,000", "seconds": second, "ratio": second / first})
    );
    validation();
    handoff(megabytes.min(100));
}

/// Phases in layers of 1000, each with three dependencies in the layer before. Written briefly: there is a limit.
fn team(phases: usize) -> String {
    let mut yml = "name: \"@bench/team\"\nphases:\n".to_owned();
    for n in 0..phases {
        let _ = write!(yml, "- {{name: p{n}, type: standard");
        if n >= 1000 {
            let before = n - n % 1000 - 1000;
            let edge = |k: usize| before + (n * 7 + k * 331) % 1000;
            let _ = write!(yml, ", depends_on: [p{}, p{}, p{}]", edge(0), edge(1), edge(2));
        }
        yml.push_str("}\n");
    }
    yml
}

fn workflow(phases: usize) -> ValidatedWorkflow {
    let checked = check(&team(phases), &NoFiles);
    checked.workflow.unwrap_or_else(|| panic!("{:?}", checked.diagnostics.first()))
}

fn machine(phases: usize) -> f64 {
    let workflow = Arc::new(workflow(phases));
    let edges: usize = workflow.phases().map(|(_, phase)| phase.depends_on.len()).sum();
    let seconds = median(|| run(Arc::clone(&workflow)));
    println!(
        "{}",
        serde_json::json!({"what": format!("machine, {phases} phases and {edges} edges"), "seconds": seconds})
    );
    seconds
}

fn median(mut one: impl FnMut() -> f64) -> f64 {
    let mut times: Vec<f64> = (0..5).map(|_| one()).collect();
    times.sort_by(f64::total_cmp);
    times[2]
}

fn run(workflow: Arc<ValidatedWorkflow>) -> f64 {
    let started = Instant::now();
    let mut pipeline = Pipeline::new(workflow);
    let mut pending = vec![];
    let mut effects =
        pipeline.step(Input::Start { max_parallel: None, limits: Limits::default(), kept: Vec::new() });
    loop {
        for effect in effects {
            if let Effect::RunAgent { phase, .. } = effect {
                pending.push(phase);
            }
        }
        let Some(phase) = pending.pop() else { break };
        effects = pipeline.step(Input::AgentCompleted { phase, result: None });
    }
    assert!(pipeline.is_finished());
    started.elapsed().as_secs_f64()
}

fn validation() {
    let text = team(10_000);
    let seconds = median(|| {
        let started = Instant::now();
        assert!(check(&text, &NoFiles).workflow.is_some());
        started.elapsed().as_secs_f64()
    });
    println!(
        "{}",
        serde_json::json!({"what": "validation, a team.yml of 10,000 phases", "seconds": seconds})
    );
}

/// A file of progress messages, read as the orchestrator reads it, beside parsing the same lines from memory.
fn signals(megabytes: usize) {
    let dir = std::env::temp_dir().join(format!("cliq-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = camino::Utf8PathBuf::from_path_buf(dir.join("a.jsonl")).unwrap();
    let mut block =
        "{\"ts\":\"2026-01-01T00:00:00.000Z\",\"version\":1,\"type\":\"phase\",\"status\":\"ok\"}\n"
            .to_owned();
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(block.as_bytes()).unwrap();
    block.clear();
    let mut n = 0;
    while block.len() < 1024 * 1024 {
        let _ = writeln!(
            block,
            "{{\"ts\":\"2026-01-01T00:00:00.000Z\",\"version\":1,\"type\":\"phase\",\"status\":\"progress\",\"message\":\"step {n} of many, and some words about it\"}}"
        );
        n += 1;
    }
    for _ in 0..megabytes {
        file.write_all(block.as_bytes()).unwrap();
    }
    drop(file);
    let started = Instant::now();
    let mut parsed = 0_u64;
    for _ in 0..megabytes {
        for line in block.lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            parsed += u64::from(value.is_object());
        }
    }
    let memory = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let mut read = 0_u64;
    SignalTail::new(&path).read_new(|line| read += u64::from(line.message.is_ok())).unwrap();
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!(read, parsed + 1);
    let peak = format!("{} kB", memory_kb("VmHWM:"));
    println!(
        "{}",
        serde_json::json!({
            "what": format!("reading {megabytes} MB of signals beside parsing them in memory"),
            "seconds": seconds, "ratio": seconds / memory, "peak memory of the whole program": peak,
        })
    );
    let _ = std::fs::remove_dir_all(&dir);
}

/// Kilobytes in a field of the system's account of this process.
fn memory_kb(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value =
        status.lines().find_map(|line| line.strip_prefix(field)?.split_whitespace().next()?.parse().ok());
    value.unwrap_or(0)
}

/// One big handoff to five successors, beside five bare writes of the same files.
fn handoff(megabytes: usize) {
    let dir = std::env::temp_dir().join(format!("cliq-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let root = camino::Utf8PathBuf::from_path_buf(dir.clone()).unwrap();
    let mut data = cliq_protocol::Object::new();
    data.insert("big".to_owned(), "x".repeat(megabytes << 20).into());
    let envelope = cliq_protocol::Envelope::standard("a".parse().unwrap(), "bench", Some(data), None);
    let channels: Vec<_> = (0..5).map(|n| root.join(format!("a--b{n}"))).collect();
    // The system forgets the highest mark so far.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = memory_kb("VmRSS:");
    let started = Instant::now();
    cliq_fs::write_handoffs(channels.iter().map(camino::Utf8PathBuf::as_path), &envelope).unwrap();
    let seconds = started.elapsed().as_secs_f64();
    let more = memory_kb("VmHWM:").saturating_sub(before) / 1024;
    let files: Vec<Vec<u8>> = ["handoff.json", "handoff.md"]
        .iter()
        .map(|name| std::fs::read(channels[0].join(name)).unwrap())
        .collect();
    let started = Instant::now();
    for n in 0..5 {
        for (k, file) in files.iter().enumerate() {
            std::fs::write(root.join(format!("plain{n}.{k}")), file).unwrap();
        }
    }
    let bare = started.elapsed().as_secs_f64();
    println!(
        "{}",
        serde_json::json!({
            "what": format!("a handoff of {megabytes} MB to five successors beside five bare writes of its files"),
            "seconds": seconds, "ratio": seconds / bare, "memory": format!("{more} MB more, of files of {} MB in all", 10 * megabytes),
        })
    );
    let _ = std::fs::remove_dir_all(&dir);
}
