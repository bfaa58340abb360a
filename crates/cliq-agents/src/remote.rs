//! `a2a`: a phase that is done by a remote A2A agent (docs/a2a.md): another cliq, or any other.
//!
//! The requirement and the handoffs go as one message; progress comes as a stream that is taken up again where it breaks; artifacts
//! become files of the phase. A cancellation is passed on. A question of the remote agent ends the phase: a person answers it.

mod artifacts;
mod client;

use std::io::BufReader;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_a2a::{StreamItem, Task, TaskState};
use cliq_http::{CallError, SseEvent, read_events};
use cliq_protocol::TRACE_VARIABLE;
use cliq_sdk::{Completion, Handoff, StandardContext};
use cliq_settings::Environment;
use serde_json::{Value, json};

use crate::AnyError;
use crate::llm::opening;
use artifacts::Collector;
use client::{Client, Session};

/// Polling interval for a cancellation.
const TICK: Duration = Duration::from_millis(50);
/// Maximum number of reconnections of a stream without news in between.
const TRIES: u32 = 8;
/// The pauses before that: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(15));
/// Polling interval for an agent that does not stream.
const POLL: Duration = Duration::from_secs(1);

/// Configuration of a remote agent: `config` in team.yml.
struct Config {
    url: String,
    token: Option<String>,
    skill: Option<String>,
    /// Values for inputs of the remote team: keys `inputs.NAME`.
    inputs: serde_json::Map<String, Value>,
}

impl Config {
    fn read(ctx: &StandardContext, environment: &Environment) -> Result<Self, AnyError> {
        let config = &ctx.phase().config;
        let text = |key: &str| config.get(key).and_then(Value::as_str).map(str::to_owned);
        let token = match text("token_env") {
            None => None,
            Some(name) => Some(environment.get(&name).ok_or_else(|| {
                format!(
                    "the environment has no {name}, which `config.token_env` of phase `{}` names",
                    ctx.phase().name
                )
            })?),
        };
        let inputs = config
            .iter()
            .filter_map(|(key, value)| Some((key.strip_prefix("inputs.")?.to_owned(), value.clone())))
            .collect();
        Ok(Self {
            url: text("url").ok_or("`config.url` is missing: the address of the remote agent")?,
            token: token.map(str::to_owned),
            skill: text("skill"),
            inputs,
        })
    }
}

/// StreamNews of the remote task.
enum StreamNews {
    Item(Box<StreamItem>),
    /// No more come: the task is over, or it cannot be followed.
    End(Result<(), CallError>),
}

pub(crate) fn run(ctx: &StandardContext, environment: &Environment) -> Result<Completion, AnyError> {
    let config = Config::read(ctx, environment)?;
    let (cancelled, parent) = (Arc::new(AtomicBool::new(false)), std::os::unix::process::parent_id());
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&cancelled))?;
    }
    let trace = environment.get(TRACE_VARIABLE).and_then(|context| context.parse().ok());
    let client = Client::discover(&config.url, config.token.clone(), trace)?;
    ctx.progress(format!("calling {}", client.agent()))?;
    let mut message = message(ctx, &config)?;
    let attempt = Attempt::begin(ctx, &message)?;
    message["messageId"] = attempt.message_id.as_str().into();
    let (sender, news) = mpsc::channel();
    let session = Arc::new(client.session());
    let follower = Arc::clone(&session);
    // A read that waits cannot be interrupted: it has a thread of its own, and ends with the process.
    std::thread::spawn(move || {
        let end = follow(&follower, &message, &sender);
        let _ = sender.send(StreamNews::End(end));
    });
    let mut task: Option<Task> = None;
    let mut collector = Collector::new(ctx.files_dir());
    loop {
        if cancelled.load(Ordering::Relaxed) {
            // The run died, and the next one ends what it left: it goes on with the remote task.
            if std::os::unix::process::parent_id() != parent {
                return Err("the run is gone; the remote task goes on".into());
            }
            if let Some(task) = &task {
                session.cancel(&task.id);
            }
            attempt.end();
            return Err("cancelled; the remote task was asked to stop".into());
        }
        match news.recv_timeout(TICK) {
            Ok(StreamNews::Item(item)) => take(ctx, *item, &mut task, &mut collector)?,
            Ok(StreamNews::End(Ok(()))) | Err(RecvTimeoutError::Disconnected) => break,
            Ok(StreamNews::End(Err(error))) => return Err(error.message.into()),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    attempt.end();
    finish(ctx, &client, task.as_ref(), collector)
}

/// One attempt at the phase's work, kept in a file until the remote task is over: a phase whose process died goes on with the task
/// that it began, and one that is done anew begins another.
struct Attempt {
    file: Utf8PathBuf,
    message_id: String,
}

impl Attempt {
    fn begin(ctx: &StandardContext, message: &Value) -> Result<Self, AnyError> {
        let file = ctx.files_dir().join(".remote-task");
        // A message that says something else begins another task.
        let hash = ring::digest::digest(&ring::digest::SHA256, message.to_string().as_bytes());
        let hash = hex::encode(&hash.as_ref()[..8]);
        let own = format!("{}.{}.{hash}.", ctx.run_id(), ctx.phase().name);
        let known = std::fs::read_to_string(&file).ok().filter(|id| id.starts_with(&own) && id.len() < 300);
        if let Some(message_id) = known {
            return Ok(Self { file, message_id });
        }
        let message_id = format!("{own}{}", uuid::Uuid::now_v7());
        std::fs::create_dir_all(ctx.files_dir())?;
        std::fs::write(&file, &message_id).map_err(|error| format!("cannot write {file}: {error}"))?;
        Ok(Self { file, message_id })
    }

    fn end(&self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

/// The message of a phase, without an id.
fn message(ctx: &StandardContext, config: &Config) -> Result<Value, AnyError> {
    let mut parts = vec![json!({"text": opening(ctx, &ctx.dispatch().steering)?})];
    if config.skill.is_some() || !config.inputs.is_empty() {
        let mut data = json!({});
        if let Some(skill) = &config.skill {
            data["team"] = skill.as_str().into();
        }
        if !config.inputs.is_empty() {
            data["inputs"] = Value::Object(config.inputs.clone());
        }
        parts.push(json!({"data": data}));
    }
    Ok(json!({"role": "ROLE_USER", "contextId": ctx.run_id(), "parts": parts}))
}

/// Processes an item of the stream.
fn take(
    ctx: &StandardContext,
    item: StreamItem,
    task: &mut Option<Task>,
    collector: &mut Collector,
) -> Result<(), AnyError> {
    match item {
        StreamItem::Task(new) => {
            for artifact in new.artifacts.iter().flatten() {
                collector.keep(artifact)?;
            }
            *task = Some(new);
        }
        StreamItem::Status { status, .. } => {
            if let Some(text) = status.message.as_ref().and_then(cliq_a2a::Message::text) {
                println(&text);
                let gist: String = text.lines().next().unwrap_or_default().chars().take(120).collect();
                ctx.progress(gist)?;
            }
            if let Some(task) = task {
                task.status = status;
            }
        }
        StreamItem::Artifact { artifact, .. } => collector.keep(&artifact)?,
        StreamItem::Message(message) => collector.answer(message.text().unwrap_or_default()),
    }
    Ok(())
}

/// Prints a message of the remote agent to the log of the phase.
#[expect(clippy::print_stdout, reason = "the standard output of an agent is its log")]
fn println(text: &str) {
    println!("{text}");
}

fn finish(
    ctx: &StandardContext,
    client: &Client,
    task: Option<&Task>,
    collector: Collector,
) -> Result<Completion, AnyError> {
    let said = task.and_then(|task| task.status.message.as_ref()).and_then(cliq_a2a::Message::text);
    let said = said.unwrap_or_default();
    let state = task.map_or(TaskState::Completed, |task| task.status.state);
    let agent = client.agent();
    match state {
        TaskState::Completed => {}
        TaskState::InputRequired => return Err(format!("{agent} asks: {said}").into()),
        TaskState::AuthRequired => return Err(format!("{agent} needs credentials: {said}").into()),
        TaskState::Canceled => return Err(format!("{agent} says that the task was cancelled. {said}").into()),
        TaskState::Rejected => return Err(format!("{agent} rejected the task. {said}").into()),
        TaskState::Failed | TaskState::Submitted | TaskState::Working => {
            return Err(format!("{agent} failed. {said}").into());
        }
    }
    let id = task.map(|task| task.id.clone());
    let (text, files) = collector.into_handoff(&said);
    let data = json!({"agent": agent, "task_id": id, "artifacts": files});
    ctx.send(&Handoff::text(text).with_data(data.clone()))?;
    Ok(ctx.complete(data))
}

/// Sends the message and follows the task to its end. A stream that breaks is taken up where it was.
fn follow(session: &Session, message: &Value, sender: &Sender<StreamNews>) -> Result<(), CallError> {
    let (mut task_id, mut last, mut failures, mut over): (Option<String>, Option<String>, u32, bool) =
        (None, None, 0, false);
    if !session.streams() {
        return poll(session, message, sender);
    }
    loop {
        let opened = match &task_id {
            // The same message gives the same task: it may be sent again where the first response was lost.
            None => session.send_streaming(message),
            Some(id) => session.subscribe(id, last.as_deref()),
        };
        let mut failed = None;
        match opened {
            Ok(response) => {
                let read =
                    read_events(BufReader::new(response.into_body().into_reader()), |event: &SseEvent| {
                        match session.item(&event.data) {
                            Ok(item) => {
                                failures = 0;
                                if let StreamItem::Task(task) = &item {
                                    task_id = Some(task.id.clone());
                                    over |=
                                        task.status.state.is_terminal() || task.status.state.is_interrupted();
                                }
                                if let StreamItem::Status { status, .. } = &item {
                                    over |= status.state.is_interrupted();
                                }
                                last = event.id.clone().or_else(|| last.take());
                                over |= item.is_last();
                                sender.send(StreamNews::Item(Box::new(item))).is_ok() && !over
                            }
                            Err(error) => {
                                failed = Some(error);
                                false
                            }
                        }
                    });
                if let Err(error) = read {
                    failed.get_or_insert(session.broken(&error.to_string()));
                }
            }
            // The task ended while the stream was broken.
            Err(error) if task_id.is_some() && !error.is_transient => {
                let id = task_id.as_deref().unwrap_or_default();
                let item = StreamItem::Task(session.get(id)?);
                over = true;
                let _ = sender.send(StreamNews::Item(Box::new(item)));
            }
            Err(error) => failed = Some(error),
        }
        if over {
            return Ok(());
        }
        let error = failed.unwrap_or_else(|| session.broken("it ended before the task"));
        failures += 1;
        if !error.is_transient || failures > TRIES {
            return Err(error);
        }
        let pause = PAUSES.0.saturating_mul(1 << failures.min(10)).min(PAUSES.1);
        std::thread::sleep(error.pause.unwrap_or(pause).min(PAUSES.1));
    }
}

/// The same for an agent that does not stream.
fn poll(session: &Session, message: &Value, sender: &Sender<StreamNews>) -> Result<(), CallError> {
    let mut item = session.send(message)?;
    let mut failures = 0;
    loop {
        let over = match &item {
            StreamItem::Task(task) => task.status.state.is_terminal() || task.status.state.is_interrupted(),
            _ => true,
        };
        let id = if let StreamItem::Task(task) = &item { task.id.clone() } else { String::new() };
        if sender.send(StreamNews::Item(Box::new(item))).is_err() || over {
            return Ok(());
        }
        item = loop {
            std::thread::sleep(POLL);
            match session.get(&id) {
                Ok(task) => break StreamItem::Task(task),
                Err(error) if error.is_transient && failures < TRIES => failures += 1,
                Err(error) => return Err(error),
            }
        };
    }
}
