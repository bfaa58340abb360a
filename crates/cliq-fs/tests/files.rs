//! The wire on disk, on a real file system.

use std::fs;
use std::io::Write;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::*;
use cliq_protocol::*;
use proptest::prelude::*;
use serde_json::json;

fn workspace() -> (tempfile::TempDir, Utf8PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = Utf8Path::from_path(dir.path()).expect("utf-8").canonicalize_utf8().expect("there");
    (dir, path)
}

fn name(text: &str) -> PhaseName {
    PhaseName::parse(text).expect("a name")
}

fn read_all(tail: &mut SignalTail) -> Vec<Line> {
    let mut lines = Vec::new();
    tail.read_new(|line| lines.push(line)).expect("readable");
    lines
}

#[test]
fn the_layout_is_complete_and_survives_a_second_creation() {
    let (_guard, path) = workspace();
    assert!(CliqDir::open(&path).unwrap_err().is_not_found());
    let dir = CliqDir::create(&path).unwrap();
    fs::write(dir.task_board(), "mine").unwrap();
    CliqDir::create(&path).unwrap();
    assert_eq!(fs::read_to_string(dir.task_board()).unwrap(), "mine");
    for sub in ["channels", "signals", "files", "logs", "roles", "design", "messages"] {
        assert!(dir.root().join(sub).is_dir(), "{sub}");
    }
    let deep = path.join("a/b");
    fs::create_dir_all(&deep).unwrap();
    assert_eq!(CliqDir::discover(&deep), Some(dir));
}

#[test]
fn atomic_writes_leave_no_rubbish_and_are_readable_by_others() {
    use std::os::unix::fs::PermissionsExt;
    let (_guard, path) = workspace();
    let file = path.join("x.json");
    write_atomic(&file, b"one").unwrap();
    write_atomic(&file, b"two").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"two");
    assert_eq!(path.read_dir_utf8().unwrap().count(), 1);
    assert_ne!(fs::metadata(&file).unwrap().permissions().mode() & 0o044, 0);
    let error = write_atomic(&path.join("missing/x"), b"").unwrap_err().to_string();
    assert!(error.starts_with("cannot write ") && error.contains("missing/x"), "{error}");
}

#[test]
fn readers_never_see_half_a_handoff() {
    let (_guard, path) = workspace();
    let channel = path.join("a--b");
    let big = |n: usize| {
        let data = json!({"text": "x".repeat(200_000), "n": n}).as_object().cloned();
        Envelope::standard(name("a"), "t", data, None)
    };
    write_handoff(&channel, &big(0)).unwrap();
    let writer = thread::spawn({
        let channel = channel.clone();
        move || (1..60).for_each(|n| write_handoff(&channel, &big(n)).unwrap())
    });
    while !writer.is_finished() {
        assert!(read_handoff(&channel, &name("a"), u64::MAX).unwrap().is_some());
    }
    writer.join().unwrap();
}

#[test]
fn a_persons_markdown_is_a_handoff_and_json_wins() {
    let (_guard, path) = workspace();
    let from = name("a");
    assert_eq!(read_handoff(&path, &from, u64::MAX).unwrap(), None);
    fs::write(path.join("handoff.md"), "Do it.\n").unwrap();
    assert_eq!(read_handoff(&path, &from, u64::MAX).unwrap().unwrap().text.as_deref(), Some("Do it.\n"));
    write_handoff(&path, &Envelope::standard(from.clone(), "t", None, Some("Done.".into()))).unwrap();
    assert_eq!(read_handoff(&path, &from, u64::MAX).unwrap().unwrap().text.as_deref(), Some("Done."));
    fs::write(path.join("handoff.json"), "{\"version\": 1}").unwrap();
    let error = read_handoff(&path, &from, u64::MAX).unwrap_err().to_string();
    assert!(error.contains("handoff.json is not a valid handoff: field `phase_type`"), "{error}");
}

#[test]
fn handoffs_are_rendered_for_people() {
    let mut failed = CommandResult::new("npm test", false);
    failed.output_tail = Some("expected ```404```\n".into());
    let gate = GateData {
        verdict: Verdict::route(name("developer"), "2 tests fail"),
        checks: vec![failed, CommandResult::new("lint", true)],
        iteration: 1,
        max_iterations: 3,
        extra: Object::new(),
    };
    insta::assert_snapshot!("gate", render_handoff(&Envelope::gate(name("reviewer"), "rules", gate)));
    let data = json!({"files": ["a.rs"]}).as_object().cloned();
    let envelope = Envelope::standard(name("developer"), "codex", data, Some("Done.\n".into()));
    insta::assert_snapshot!("standard", render_handoff(&envelope));
}

#[test]
fn the_tail_reads_only_what_is_new_and_starts_over_after_a_replacement() {
    let (_guard, path) = workspace();
    let file = path.join("p.jsonl");
    let mut tail = SignalTail::new(&file);
    assert!(read_all(&mut tail).is_empty());
    let mut writer = SignalWriter::open(&file, DispatchType::Phase).unwrap();
    writer.write(ChannelBody::Ok).unwrap();
    assert_eq!(read_all(&mut tail).len(), 1);
    assert!(read_all(&mut tail).is_empty());
    let mut raw = fs::OpenOptions::new().append(true).open(&file).unwrap();
    raw.write_all(b"{\"half\":").unwrap();
    assert!(read_all(&mut tail).is_empty());
    raw.write_all(b"1}\n").unwrap();
    let lines = read_all(&mut tail);
    assert!(lines[0].message.is_err() && lines[0].offset > 0);
    fs::write(&file, "").unwrap();
    let mut writer = SignalWriter::open(&file, DispatchType::Phase).unwrap();
    assert!(read_all(&mut tail).is_empty());
    writer.write(ChannelBody::Ok).unwrap();
    assert_eq!(read_all(&mut tail)[0].offset, 0);
    fs::remove_file(&file).unwrap();
    fs::write(&file, ChannelMessage::new(now(), DispatchType::Phase, ChannelBody::Ok).encode()).unwrap();
    assert_eq!(read_all(&mut tail).len(), 1);
}

#[test]
fn many_writers_never_mix_within_a_line() {
    let (_guard, path) = workspace();
    let file = path.join("journal.jsonl");
    thread::scope(|scope| {
        for n in 0..8 {
            let file = &file;
            scope.spawn(move || {
                let line = format!("{}\n", n.to_string().repeat(3000));
                (0..50).for_each(|_| append_line(file, line.as_bytes()).unwrap());
            });
        }
    });
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 400);
    assert!(text.lines().all(|l| l.len() == 3000 && l.chars().all(|c| l.starts_with(c))));
}

#[test]
fn the_watch_reports_appends_and_renames() {
    let (_guard, path) = workspace();
    let (sender, receiver) = mpsc::channel();
    let _watch = SignalWatch::new(&path, move |file| drop(sender.send(file))).unwrap();
    let file = path.join("p.jsonl");
    append_line(&file, b"{}\n").unwrap();
    let wait = Duration::from_secs(20);
    assert_eq!(receiver.recv_timeout(wait).unwrap(), Some(file));
    let status = path.join("_pipeline_status");
    write_atomic(&status, b"CANCELLED").unwrap();
    while receiver.recv_timeout(wait).unwrap().as_ref() != Some(&status) {}
}

#[test]
fn the_lock_is_held_by_one_and_free_after_it() {
    let (_guard, path) = workspace();
    let dir = CliqDir::create(&path).unwrap();
    assert_eq!(ProjectLock::holder(&dir).unwrap(), None);
    ProjectLock::check(&dir).unwrap();
    assert!(!dir.lock_file().exists(), "a check takes nothing");
    let lock = ProjectLock::acquire(&dir).unwrap();
    let held = ProjectLock::check(&dir).unwrap_err().to_string();
    assert!(held.contains(&format!("process {}", std::process::id())), "{held}");
    assert_eq!(ProjectLock::holder(&dir).unwrap(), Some(Some(std::process::id())));
    let error = ProjectLock::acquire(&dir).unwrap_err().to_string();
    assert!(error.contains(&format!("(process {}) is running in {path}", std::process::id())), "{error}");
    drop(lock);
    ProjectLock::check(&dir).unwrap();
    ProjectLock::acquire(&dir).unwrap();
}

#[test]
fn an_archived_run_leaves_a_fresh_layout_and_its_instructions() {
    let (_guard, path) = workspace();
    let dir = CliqDir::create(&path).unwrap();
    let channel = dir.channel(&name("a"), &name("b"));
    write_handoff(&channel, &Envelope::standard(name("a"), "t", None, None)).unwrap();
    fs::write(channel.join("instructions.md"), "Be brief.").unwrap();
    fs::write(dir.journal(), "{}\n").unwrap();
    write_status(&dir, PipelineStatus::Completed).unwrap();
    archive_run(&dir, "../run").unwrap();
    assert!(
        !dir.journal().exists() && !dir.pipeline_status().exists() && !channel.join("handoff.json").exists()
    );
    assert_eq!(fs::read_to_string(channel.join("instructions.md")).unwrap(), "Be brief.");
    let kept = dir.history().join("___run");
    assert!(kept.join("journal.jsonl").exists() && kept.join("channels/a--b/handoff.json").exists());
}

/// Archiving, killed after each of its moves and taken up again by a process that has written something itself.
#[test]
fn interrupted_archiving_loses_nothing() {
    let (_guard, path) = workspace();
    let dir = CliqDir::create(&path).unwrap();
    let channel = dir.channel(&name("a"), &name("b"));
    write_handoff(&channel, &Envelope::standard(name("a"), "t", None, None)).unwrap();
    fs::write(channel.join("instructions.md"), "Be brief.").unwrap();
    fs::write(dir.root().join("orchestrator.log"), "first\n").unwrap();
    fs::write(dir.journal(), "{}\n").unwrap();
    let kept = dir.history().join("run");
    // As a killed process left it: the journal is still there, the rest has moved.
    fs::create_dir_all(&kept).unwrap();
    for moved in ["channels", "orchestrator.log"] {
        fs::rename(dir.root().join(moved), kept.join(moved)).unwrap();
    }
    dir.ensure_layout().unwrap();
    fs::write(dir.root().join("orchestrator.log"), "second\n").unwrap();
    fs::create_dir_all(&channel).unwrap();
    archive_run(&dir, "run").unwrap();
    assert!(kept.join("channels/a--b/handoff.json").exists());
    assert_eq!(fs::read_to_string(kept.join("orchestrator.log")).unwrap(), "first\nsecond\n");
    assert_eq!(fs::read_to_string(channel.join("instructions.md")).unwrap(), "Be brief.");
    assert!(kept.join("journal.jsonl").exists() && !dir.journal().exists());
}

#[test]
fn archives_are_in_the_order_of_their_runs() {
    let (_guard, path) = workspace();
    let dir = CliqDir::create(&path).unwrap();
    let past = |seconds| std::time::SystemTime::now() - Duration::from_secs(seconds);
    for run in 0..11 {
        fs::write(dir.journal(), "{}\n").unwrap();
        fs::File::options().append(true).open(dir.journal()).unwrap().set_modified(past(100 - run)).unwrap();
        archive_run(&dir, &format!("run-{run:02}")).unwrap();
    }
    let names = || -> Vec<String> {
        archives(&dir).unwrap().iter().map(|place| place.file_name().unwrap().to_owned()).collect()
    };
    assert_eq!(names(), (1..11).map(|run| format!("run-{run:02}")).collect::<Vec<_>>());
    // A removal that was interrupted makes a folder new, and no run of it.
    fs::create_dir_all(dir.history().join("run-00/channels")).unwrap();
    assert_eq!((names().first().unwrap().as_str(), names().last().unwrap().as_str()), ("run-00", "run-10"));
}

#[test]
fn standalone_signals_are_cleared_and_foreign_files_are_not() {
    let (_guard, path) = workspace();
    let dir = CliqDir::create(&path).unwrap();
    write_status(&dir, PipelineStatus::Escalated).unwrap();
    assert_eq!(read_status(&dir), Some(PipelineStatus::Escalated));
    write_routed(&dir, &name("fixer")).unwrap();
    write_command_results(&dir, &name("gate"), &[CommandResult::new("t", true)]).unwrap();
    fs::write(dir.signals().join("notes.txt"), "mine").unwrap();
    clear_signals(&dir).unwrap();
    let left: Vec<_> =
        dir.signals().read_dir_utf8().unwrap().map(|e| e.unwrap().file_name().to_owned()).collect();
    assert_eq!(left, ["notes.txt"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// For any calls of the writer, the file has the order of the protocol.
    #[test]
    fn no_sequence_of_writes_breaks_the_order(picks in proptest::collection::vec(0..5, 0..12)) {
        let (_guard, path) = workspace();
        let file = path.join("p.jsonl");
        let mut writer = SignalWriter::open(&file, DispatchType::Phase).unwrap();
        for pick in picks {
            let body = match pick {
                0 => ChannelBody::Ok,
                1 => ChannelBody::Progress { message: Some("x".into()), usage: None, review: None },
                2 => ChannelBody::Notify(NotifyRequest {
                    id: None,
                    agent: "slack".into(), channel: None, event: "e".into(), payload: None, extra: Object::new() }),
                3 => ChannelBody::Complete { result: None },
                _ => ChannelBody::Error { error: "e".into(), usage: None, limited: None },
            };
            let _ = writer.write(body);
        }
        let mut order = ChannelOrder::new();
        for line in read_all(&mut SignalTail::new(&file)) {
            prop_assert_eq!(order.accept(&line.message.unwrap().body), Ok(()));
        }
    }
}
