//! Delivering notifications: fire and forget, and failures are warnings (docs/team-yml.md). A delivery needs no pane, so it is
//! a plain child process with any launcher.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_fs::{CliqDir, write_atomic};
use cliq_protocol::{AgentMessage, Dispatch, NotifyDetails, NotifyDispatch, NotifyRequest, PhaseName};
use serde_json::json;

use super::channel::{Follower, Terminal};
use super::shared::Shared;
use crate::events::RunEvent;
use crate::launcher::{Job, Launcher};
use crate::process::ProcessLauncher;

/// Deadline of a delivery.
const LIMIT: Duration = Duration::from_secs(60);

/// Delivers one notification; a failure becomes a warning.
pub(super) async fn deliver(
    shared: Arc<Shared>,
    phase: Option<PhaseName>,
    request: NotifyRequest,
    number: u32,
) {
    let claim = match request.id.as_deref().map(|id| Claim::take(shared.dir(), id)) {
        None => None,
        Some(Ok(Some(claim))) => Some(claim),
        // It was delivered, or is being delivered.
        Some(Ok(None)) => return,
        Some(Err(why)) => {
            let message = format!("`{}` was not told of {}: {why}", request.agent, request.event);
            return shared.send(RunEvent::Warning { phase, message });
        }
    };
    let delivered = try_deliver(&shared, phase.as_ref(), &request, number).await;
    if let Some(claim) = claim {
        claim.settle(&delivered);
    }
    if let Err(why) = delivered {
        let message = format!("`{}` could not be told of {}: {why}", request.agent, request.event);
        shared.send(RunEvent::Warning { phase, message });
    }
}

/// The file of a notification that has an id. It is made before the delivery begins, so that a run that is resumed does not deliver twice, and
/// has the outcome afterwards: the agent that asked reads it.
struct Claim {
    file: Utf8PathBuf,
}

impl Claim {
    /// Takes a notification; `None` if it was taken before.
    fn take(dir: &CliqDir, id: &str) -> Result<Option<Self>, String> {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        if id.is_empty() || id.len() > 100 || !id.bytes().all(is_plain) {
            return Err(format!("{id:?} is not a valid notification id: use letters, digits and `-`"));
        }
        let file = dir.notice_file(id);
        match OpenOptions::new().write(true).create_new(true).open(&file) {
            Ok(_) => Ok(Some(Self { file })),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(format!("cannot create {file}: {error}")),
        }
    }

    fn settle(&self, delivered: &Result<(), String>) {
        let outcome = match delivered {
            Ok(()) => json!({"state": "sent"}),
            Err(why) => json!({"state": "failed", "error": why}),
        };
        // Without it the outcome is unknown, and shown as unknown.
        let _ = write_atomic(&self.file, outcome.to_string().as_bytes());
    }
}

async fn try_deliver(
    shared: &Shared,
    phase: Option<&PhaseName>,
    request: &NotifyRequest,
    number: u32,
) -> Result<(), String> {
    let Some(command) = shared.plan.agents.get(&request.agent) else {
        return Err(if let Some(why) = shared.plan.agents.why_unusable(&request.agent) {
            why.to_owned()
        } else if cliq_workflow::BUILT_IN.contains(&request.agent.as_str()) {
            "this version of cliq cannot run that agent yet".to_owned()
        } else {
            "there is no such agent".to_owned()
        });
    };
    let dir = shared.dir();
    let signal_file = dir.signals().join(format!("_notify-{number}.jsonl"));
    let message_file = dir.messages().join(format!("_notify-{number}.json"));
    let message = AgentMessage {
        run_id: shared.run_id.clone(),
        workspace: dir.workspace().to_owned(),
        cliq_dir: dir.root().to_owned(),
        dispatch: Dispatch::Notify(NotifyDispatch {
            notify: NotifyDetails {
                agent: request.agent.clone(),
                channel: request.channel.clone(),
                event: request.event.clone(),
                payload: request.payload.clone().unwrap_or_default(),
            },
            signal_file: signal_file.clone(),
        }),
    };
    write_atomic(&message_file, &message.encode()).map_err(|error| error.to_string())?;
    // A resumed run counts from the beginning: what an earlier delivery reported is not about this one.
    match std::fs::remove_file(&signal_file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(format!("cannot remove {signal_file}: {error}"));
        }
        _ => {}
    }
    // It does not belong to the phase: the phase's end must not end it.
    let mut env = shared.environment(&format!("_notify-{number}"));
    env.insert("CLIQ_SIGNAL_FILE".to_owned(), signal_file.to_string());
    let job = Job {
        title: phase.map_or_else(|| request.agent.clone(), |phase| format!("{} for {phase}", request.agent)),
        program: command.program.to_string(),
        args: command.args.clone(),
        env,
        dir: dir.workspace().to_owned(),
        stdin: Some(message_file),
        log: dir.logs().join(format!("_notify-{number}.log")),
    };
    let mut process = ProcessLauncher.launch(&job).await.map_err(|error| error.to_string())?;
    let ended = tokio::select! {
        ended = tokio::time::timeout(LIMIT, process.wait()) => ended,
        () = shared.no_more_deliveries.cancelled() => Ok(Err(std::io::ErrorKind::Interrupted.into())),
    };
    process.end(shared.plan.timing.kill_grace).await;
    let terminal = Follower::new(&signal_file).read(|_| (), |_| ())?;
    match (terminal, ended) {
        (Some(Terminal::Complete(_)), _) => Ok(()),
        (Some(Terminal::Error(error, _, _)), _) => Err(error),
        (None, Ok(Ok(exit))) => Err(format!("it ended without a terminal message ({exit})")),
        (None, Ok(Err(error))) => Err(error.to_string()),
        (None, Err(_)) => Err(format!("it did not finish within {} s", LIMIT.as_secs())),
    }
}
