//! Playing the orchestrator: one message to the agent, and a record of all that it does.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{
    CliqDir, DEFAULT_FILE_LIMIT, FsError, IoContext, SignalTail, open_regular, read_limited, write_atomic,
    write_handoff,
};
use cliq_protocol::{
    AgentMessage, CommandResult, Dispatch, Envelope, GateDispatch, Incoming, Line, Object, Outgoing,
    PhaseDispatch, PhaseInfo, PhaseKind, PhaseName, RunId, TestDispatch,
};
use rustix::process::{Pid, Signal};

/// Time that an agent may continue after its terminal message (docs/protocol.md).
const EXIT_GRACE: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Test,
    Phase,
    Gate,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Phase => "phase",
            Self::Gate => "gate",
        }
    }
}

/// All that an agent did.
pub(super) struct Transcript {
    /// Exit of the agent, or the reason why it did not start.
    pub(super) exit: Result<Exit, String>,
    pub(super) lines: Vec<Line>,
    /// Bytes after the last newline of the signal file.
    pub(super) unterminated: usize,
    pub(super) output: String,
    /// Handoffs it wrote: the channel's name and what the file holds.
    pub(super) handoffs: Vec<(String, Result<Envelope, String>)>,
    /// Other files under `.cliq` that it wrote, relative to it.
    pub(super) other_files: Vec<String>,
    /// Whether a process of its group was left when it had exited.
    pub(super) left_processes: bool,
}

pub(super) enum Exit {
    Status(i32),
    Signal,
    /// The agent continued after its terminal message.
    Stayed,
    /// The agent neither exited nor sent a terminal message in time.
    TimedOut,
}

fn name(text: &str) -> PhaseName {
    PhaseName::parse(text).expect("the kit's own names are names")
}

pub(super) fn run(command: &[String], kind: Kind, timeout: Duration) -> Result<Transcript, FsError> {
    let temporary = tempfile::tempdir().at("create", Utf8Path::new("a temporary directory"))?;
    let workspace = Utf8PathBuf::from_path_buf(temporary.path().to_owned())
        .map_err(|_| io::Error::other("its path is not UTF-8"))
        .at("use", Utf8Path::new("the temporary directory"))?;
    let dir = CliqDir::create(&workspace)?;
    let message = prepare(&dir, kind)?;
    let signal_file = message.dispatch.signal_file().clone();
    let message_file = dir.messages().join("message.json");
    write_atomic(&message_file, &with_unknown_field(&message))?;
    let before = files(&dir)?;
    let mut transcript = Transcript {
        exit: Err("no command was given".to_owned()),
        lines: Vec::new(),
        unterminated: 0,
        output: String::new(),
        handoffs: Vec::new(),
        other_files: Vec::new(),
        left_processes: false,
    };
    let output_file = workspace.join("output");
    match start(command, &dir, kind, &message_file, &signal_file, &output_file) {
        Ok(child) => follow(child, &signal_file, timeout, &mut transcript)?,
        Err(why) => transcript.exit = Err(why),
    }
    transcript.unterminated = read_limited(&signal_file, DEFAULT_FILE_LIMIT)
        .map_or(0, |bytes| bytes.len() - bytes.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1));
    let mut output = Vec::new();
    if let Ok((file, _)) = open_regular(&output_file) {
        let _ = file.take(4096).read_to_end(&mut output);
    }
    transcript.output = String::from_utf8_lossy(&output).into_owned();
    collect_files(&dir, &before, &signal_file, &mut transcript)?;
    Ok(transcript)
}

/// Agents must ignore fields that they do not know: every message has one.
fn with_unknown_field(message: &AgentMessage) -> Vec<u8> {
    let mut value: serde_json::Value = serde_json::from_slice(&message.encode()).unwrap_or_default();
    value["a_field_from_the_future"] = serde_json::json!({"ignore": ["me"]});
    value.to_string().into_bytes()
}

fn prepare(dir: &CliqDir, kind: Kind) -> Result<AgentMessage, FsError> {
    let (own, phase_kind) =
        if kind == Kind::Gate { ("reviewer", PhaseKind::Gate) } else { ("checked", PhaseKind::Standard) };
    let own = name(own);
    let before = name("architect");
    let after = name("publisher");
    let channel = dir.channel(&before, &own);
    let data = serde_json::json!({"files": ["README.md"], "count": 1}).as_object().cloned();
    write_handoff(
        &channel,
        &Envelope::standard(before.clone(), "kit", data, Some("Read README.md.".to_owned())),
    )?;
    let targets = if kind == Kind::Gate { &["publisher", "developer", "fixer"][..] } else { &["publisher"] };
    for to in targets {
        let path = dir.channel(&own, &name(to));
        fs::create_dir_all(&path).at("create", &path)?;
    }
    let requirement = dir.requirement();
    write_atomic(&requirement, b"Say what is in the README.\n")?;
    let role = dir.roles().join(format!("{own}.md"));
    write_atomic(&role, b"You are checked.\n")?;
    let readme = dir.workspace().join("README.md");
    write_atomic(&readme, b"# Conformance\n")?;
    let files_dir = dir.phase_files(&own);
    fs::create_dir_all(&files_dir).at("create", &files_dir)?;
    let signal_file = dir.signal_file(&own);
    let dispatch = if kind == Kind::Test {
        Dispatch::Test(TestDispatch { signal_file })
    } else {
        let outgoing = dir.channel(&own, &after);
        Dispatch::Phase(Box::new(PhaseDispatch {
            phase: PhaseInfo {
                name: own,
                kind: phase_kind,
                agent: "checked".to_owned(),
                iteration: 1,
                routed_by: None,
                role_file: Some(role),
                model: None,
                parameters: Default::default(),
                outputs: None,
                action: None,
                commands: Vec::new(),
                sources: Vec::new(),
                targets: Vec::new(),
                env: Vec::new(),
                agent_tools: None,
                skills: Default::default(),
                permissions: None,
                continues: None,
                conversation: Default::default(),
                previous: None,
                attempt: None,
                item: None,
                index: None,
                config: Object::new(),
            },
            requirement_file: Some(requirement),
            task_board_file: Some(dir.task_board()),
            design_dir: None,
            inputs: [("branch".to_owned(), "main".to_owned())].into(),
            incoming: vec![Incoming {
                from: before,
                handoff_file: channel.join("handoff.json"),
                instructions_file: None,
                dir: channel,
            }],
            outgoing: vec![Outgoing { to: after, dir: outgoing, instructions_file: None }],
            signal_file,
            files_dir,
            steering: Vec::new(),
            steering_file: None,
            transcript_file: None,
            mcp: std::collections::BTreeMap::new(),
            budget: cliq_protocol::Budget::default(),
            gate: (kind == Kind::Gate).then(|| GateDispatch {
                ask: None,
                iteration: 1,
                max_iterations: 3,
                checks: vec![CommandResult::new("tests", false), CommandResult::new("lint", true)],
                route_targets: vec![name("developer"), name("fixer")],
                history: Vec::new(),
                context_file: dir.gate_context(),
                rejected: None,
                evaluation: None,
                review: None,
            }),
            team: None,
        }))
    };
    Ok(AgentMessage {
        run_id: RunId::parse("conformance").unwrap_or_else(|_| cliq_fs::new_run_id()),
        workspace: dir.workspace().to_owned(),
        cliq_dir: dir.root().to_owned(),
        dispatch,
    })
}

fn start(
    command: &[String],
    dir: &CliqDir,
    kind: Kind,
    message: &Utf8Path,
    signal_file: &Utf8Path,
    output: &Utf8Path,
) -> Result<Child, String> {
    let (program, args) = command.split_first().ok_or("no command was given")?;
    // A relative path means the caller's directory; the agent itself runs in the workspace.
    let program = if program.contains('/') {
        Utf8Path::new(program)
            .canonicalize_utf8()
            .map_err(|error| format!("cannot start {program}: {error}"))?
    } else {
        Utf8PathBuf::from(program)
    };
    let open = |error: io::Error| format!("cannot prepare its files: {error}");
    let stdin = File::open(message).map_err(open)?;
    let stdout = File::create(output).map_err(open)?;
    let stderr = stdout.try_clone().map_err(open)?;
    Command::new(&program)
        .args(args)
        .current_dir(dir.workspace())
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .env("CLIQ_PHASE", if kind == Kind::Gate { "reviewer" } else { "checked" })
        .env("CLIQ_DIR", dir.root())
        .env("CLIQ_WORKSPACE", dir.workspace())
        .env("CLIQ_SIGNAL_FILE", signal_file)
        .env("CLIQ_RUN_ID", "conformance")
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot start {program}: {error}"))
}

fn follow(
    mut child: Child,
    signal_file: &Utf8Path,
    timeout: Duration,
    out: &mut Transcript,
) -> Result<(), FsError> {
    let mut tail = SignalTail::new(signal_file);
    let deadline = Instant::now() + timeout;
    let mut said_its_last: Option<Instant> = None;
    let status = loop {
        let status = child.try_wait().unwrap_or_default();
        tail.read_new(|line| out.lines.push(line))?;
        let terminal = |line: &Line| line.message.as_ref().is_ok_and(|message| message.body.is_terminal());
        if said_its_last.is_none() && out.lines.iter().any(terminal) {
            said_its_last = Some(Instant::now());
        }
        if let Some(status) = status {
            break status.code().map_or(Exit::Signal, Exit::Status);
        }
        match said_its_last {
            Some(since) if since.elapsed() > EXIT_GRACE => break Exit::Stayed,
            None if Instant::now() > deadline => break Exit::TimedOut,
            _ => thread::sleep(STEP),
        }
    };
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let exited = matches!(status, Exit::Status(_) | Exit::Signal);
    if let Some(group) = group {
        // A helper that is just leaving is not a leftover.
        let patience = Instant::now() + Duration::from_millis(500);
        let alive = || {
            rustix::process::test_kill_process_group(group).is_ok()
                && cliq_fs::process_group_is_alive(group.as_raw_nonzero().get()).unwrap_or(true)
        };
        while exited && alive() && Instant::now() < patience {
            thread::sleep(STEP);
        }
        out.left_processes = exited && alive();
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
    out.exit = Ok(status);
    Ok(())
}

fn files(dir: &CliqDir) -> Result<Vec<(Utf8PathBuf, Vec<u8>)>, FsError> {
    let mut found = Vec::new();
    let mut pending = vec![dir.root().to_owned()];
    while let Some(next) = pending.pop() {
        for entry in next.read_dir_utf8().at("read", &next)? {
            let path = entry.at("read", &next)?.into_path();
            if path.is_dir() {
                pending.push(path);
            } else {
                let contents = read_limited(&path, DEFAULT_FILE_LIMIT)?;
                found.push((path, contents));
            }
        }
    }
    Ok(found)
}

fn collect_files(
    dir: &CliqDir,
    before: &[(Utf8PathBuf, Vec<u8>)],
    signal_file: &Utf8Path,
    out: &mut Transcript,
) -> Result<(), FsError> {
    for (path, contents) in files(dir)? {
        if path == signal_file || before.iter().any(|(p, c)| *p == path && *c == contents) {
            continue;
        }
        let relative = dir.relative(&path);
        let channel = relative.strip_prefix("channels").ok().and_then(Utf8Path::parent);
        match (channel, relative.file_name()) {
            (Some(channel), Some("handoff.json")) => {
                let envelope = Envelope::decode(&contents).map_err(|error| error.to_string());
                out.handoffs.push((channel.to_string(), envelope));
            }
            (Some(_), Some("handoff.md")) => {}
            _ if relative.starts_with("files") => {}
            _ => out.other_files.push(relative.to_string()),
        }
    }
    Ok(())
}
