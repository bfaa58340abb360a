//! Actions on runs: by commands and files of the project, or by the API of the server.

use std::process::Child;
use std::time::{Duration, Instant};

use cliq_model::RunSpec;
use cliq_orchestrator::Journal;
use cliq_project::Project;
use cliq_project::internals::recorded_run_id;
use cliq_protocol::{NewSteering, PhaseName, RunId};
use cliq_review::{Answer, Comment, Event, Review, ReviewId, Side, Via, guidance, place_in};
use cliq_terminal::{Action, ActionResult, RunKey};
use serde_json::json;
use uuid::Uuid;

use super::machine::{KnownRun, Machine};
use super::{pages, rows};
use crate::commands::{audit, review};
use crate::failure::Failure;
use crate::gateway::{self, block_on};
use crate::{reviews, run_process};

/// Deadline for the first record of a run that was started.
const STARTS: Duration = Duration::from_secs(20);

pub(super) fn carry_out(machine: &Machine, action: &Action) -> Result<ActionResult, Failure> {
    match action {
        Action::Answer { run, review, choice, message, inputs, reviewer } => {
            let answer = |review: &Review, actor: &str| {
                let reviewer = review
                    .reviewer_for(reviewer.as_deref(), actor)
                    .map_err(|refusal| Failure::refused(refusal.to_string()))?;
                Ok(Event::Answer(Answer {
                    reviewer,
                    actor: actor.to_owned(),
                    via: Via::CommandLine,
                    choice: choice.clone(),
                    reason: message.clone(),
                    inputs: inputs.clone(),
                }))
            };
            let review = apply(machine, run, review, "review answer", answer)?;
            answered(machine, run, &review)
        }
        Action::Comment { run, review: Some(review), path, side, line, text, .. } => {
            comment(machine, run, review, (path, *side, *line), text)
        }
        Action::Comment { run, review: None, path, hunks, side, line, text } => {
            let place =
                place_in(path, hunks, *side, *line).map_err(|error| Failure::usage(error.to_string()))?;
            steer(machine, run, None, &guidance(&place, text))
        }
        Action::Steer { run, phase, text } => steer(machine, run, phase.as_deref(), text),
        Action::Cancel(run) => cancel(machine, run),
        Action::Resume(run) => resume(machine, run),
        Action::RunAgain(run) => run_again(machine, run),
        Action::Start { project, team, requirement, inputs } => {
            let project = project_at(machine, project)?;
            let spec = RunSpec { inputs: inputs.iter().cloned().collect(), ..RunSpec::default() };
            start(&project, team.as_deref(), &spec, requirement)
        }
        Action::Open(run) => pages::open(machine, run).map_err(Failure::failed),
    }
}

/// Project in a directory that a person wrote. The directory becomes a project if it is none.
fn project_at(machine: &Machine, written: &str) -> Result<Project, Failure> {
    let home = std::env::var("HOME").ok().filter(|_| written == "~" || written.starts_with("~/"));
    let path = home.map_or_else(|| written.to_owned(), |home| written.replacen('~', &home, 1));
    let path = camino::Utf8PathBuf::from(path);
    if !path.is_absolute() {
        return Err(Failure::usage(format!("{path} is not absolute: write the whole path")));
    }
    if !path.is_dir() {
        return Err(Failure::usage(format!("there is no directory {path}")));
    }
    match Project::open(&path, machine.host.clone()) {
        Ok(project) => Ok(project),
        Err(_) => Ok(Project::init(&path, machine.host.clone())?),
    }
}

fn done(message: impl Into<String>) -> ActionResult {
    ActionResult { message: message.into(), ..ActionResult::default() }
}

fn known(machine: &Machine, run: &RunKey) -> Result<KnownRun, Failure> {
    machine.known(run).map_err(Failure::failed)
}

fn project_of(machine: &Machine, known: &KnownRun) -> Result<Project, Failure> {
    known.project(&machine.host).map_err(Failure::failed)
}

/// Applies an event to a review, and records the action.
fn apply(
    machine: &Machine,
    run: &RunKey,
    id: &ReviewId,
    action: &str,
    event: impl Fn(&Review, &str) -> Result<Event, Failure>,
) -> Result<Review, Failure> {
    let project = project_of(machine, &known(machine, run)?)?;
    block_on(async {
        let found = review::find_in(&project, id.as_str()).await?;
        let event = event(&found.review, &reviews::user())?;
        let review = found.reviews.apply(&found.review.id, event).await?;
        if let Ok(store) = gateway::open().await {
            audit::record(store.as_ref(), action, review.id.as_str()).await;
        }
        Ok(review)
    })
}

fn comment(
    machine: &Machine,
    run: &RunKey,
    id: &ReviewId,
    (path, side, line): (&str, Side, u64),
    text: &str,
) -> Result<ActionResult, Failure> {
    let project = project_of(machine, &known(machine, run)?)?;
    let content = block_on(async {
        let found = review::find_in(&project, id.as_str()).await?;
        Ok(found.reviews.content(&found.review.id).await?.unwrap_or_default())
    })?;
    let place = content.place(path, side, line).map_err(|error| Failure::usage(error.to_string()))?;
    let shown = place.to_string();
    let event = move |_: &Review, actor: &str| {
        Ok(Event::Comment(Comment {
            id: Uuid::now_v7().to_string(),
            actor: actor.to_owned(),
            via: Via::CommandLine,
            text: text.to_owned(),
            place: Some(place.clone()),
        }))
    };
    apply(machine, run, id, "review comment", event)?;
    Ok(done(format!("commented on {shown}: `a` sends it with a request for changes")))
}

/// Tells what follows from an answer. A parked run of a project is continued.
fn answered(machine: &Machine, run: &RunKey, review: &Review) -> Result<ActionResult, Failure> {
    let Some(ending) = review.ending() else {
        return Ok(done(format!("answered; the review waits for {} too", review.waits_for().join(", "))));
    };
    let known = known(machine, run)?;
    if known.is_parked && !known.is_on_server && known.is_last {
        let project = project_of(machine, &known)?;
        if !run_process::is_active(project.dir())? {
            let proof = StartProof::of_continuation(&project)?;
            let child = run_process::spawn(&project, &["--resume"])?;
            wait_for_start(&project, &proof, child)?;
            return Ok(done(format!("{ending}; the run goes on")));
        }
    }
    Ok(done(ending))
}

fn steer(machine: &Machine, run: &RunKey, phase: Option<&str>, text: &str) -> Result<ActionResult, Failure> {
    let known = known(machine, run)?;
    // Rows of items and of phases in a team phase are parts of a phase of the run.
    let phase = phase.map(|phase| phase.split('/').next().unwrap_or(phase));
    let to = phase.map_or_else(|| "the run".to_owned(), |phase| format!("phase {phase}"));
    let message = format!("sent to {to}: agents that listen receive it now, others when they start");
    if known.is_on_server {
        let body = json!({"text": text, "phase": phase});
        machine.server.post(&format!("/runs/{}/steering", known.id), &body).map_err(Failure::refused)?;
        return Ok(done(message));
    }
    let phase = phase.map(PhaseName::parse_with_item).transpose();
    let phase = phase.map_err(|error| Failure::usage(error.to_string()))?;
    let new = NewSteering::new(Uuid::now_v7().to_string(), &reviews::user(), text, phase)
        .map_err(|error| Failure::usage(error.to_string()))?;
    project_of(machine, &known)?.steer(Some(&known.id), new)?;
    Ok(done(message))
}

fn cancel(machine: &Machine, run: &RunKey) -> Result<ActionResult, Failure> {
    let known = known(machine, run)?;
    if known.is_on_server {
        machine.server.post(&format!("/runs/{}/cancel", known.id), &json!({})).map_err(Failure::refused)?;
        return Ok(done("the run is being cancelled"));
    }
    run_process::cancel(project_of(machine, &known)?.dir())?;
    Ok(done("the run is cancelled"))
}

fn resume(machine: &Machine, run: &RunKey) -> Result<ActionResult, Failure> {
    let known = known(machine, run)?;
    if known.is_on_server {
        machine.server.post(&format!("/runs/{}/resume", known.id), &json!({})).map_err(Failure::refused)?;
        return Ok(done("the run goes on"));
    }
    let project = project_of(machine, &known)?;
    cliq_fs::ProjectLock::check(project.dir())?;
    let proof = StartProof::of_continuation(&project)?;
    let child = run_process::spawn(&project, &["--resume"])?;
    wait_for_start(&project, &proof, child)?;
    Ok(done("the run goes on"))
}

fn run_again(machine: &Machine, run: &RunKey) -> Result<ActionResult, Failure> {
    let known = known(machine, run)?;
    if known.is_on_server {
        let old = machine.document(run, &known).map_err(Failure::failed)?;
        let body = json!({
            "team": old["team"], "instance": old["instance"], "title": old["title"],
            "requirement": old["requirement"], "inputs": old["inputs"],
        });
        let new = machine.server.post("/runs", &body).map_err(Failure::refused)?;
        let chosen = new["id"].as_str().map(rows::key);
        return Ok(ActionResult {
            message: "a new run was started".to_owned(),
            chosen,
            ..ActionResult::default()
        });
    }
    let project = project_of(machine, &known)?;
    cliq_fs::ProjectLock::check(project.dir())?;
    let spec = RunSpec { inputs: project.last_inputs()?, ..RunSpec::default() };
    cliq_fs::write_atomic(&project.dir().detached_spec(), &spec.encode())?;
    if let Some(home) = &machine.host.home {
        reviews::cancel_left_over(home, project.dir().workspace())?;
    }
    let id = cliq_fs::new_run_id();
    let spec = project.dir().detached_spec();
    let arguments = ["--force", "--run-id", id.as_str(), "--spec", spec.as_str()];
    let child = run_process::spawn(&project, &arguments)?;
    wait_for_start(&project, &StartProof::Run(id.clone()), child)?;
    Ok(ActionResult {
        message: "the team runs again".to_owned(),
        chosen: Some(rows::key(id.as_str())),
        ..ActionResult::default()
    })
}

fn start(
    project: &Project,
    team: Option<&str>,
    spec: &RunSpec,
    requirement: &str,
) -> Result<ActionResult, Failure> {
    let id = run_process::prepare(project, team, spec, requirement)?;
    let child = run_process::spawn_new(project, &id)?;
    wait_for_start(project, &StartProof::Run(id.clone()), child)?;
    Ok(ActionResult {
        message: "the run has started".to_owned(),
        chosen: Some(rows::key(id.as_str())),
        ..ActionResult::default()
    })
}

/// Proof that a run has started, in the journal of its project.
enum StartProof {
    /// The journal is that of this run.
    Run(RunId),
    /// The journal has more records than this number.
    Records(usize),
}

impl StartProof {
    /// Proof for a continuation of the last run.
    fn of_continuation(project: &Project) -> Result<Self, Failure> {
        Ok(Self::Records(records(project)?))
    }

    fn is_there(&self, project: &Project) -> Result<bool, Failure> {
        Ok(match self {
            Self::Run(id) => recorded_run_id(project.dir().workspace()).as_ref() == Some(id),
            Self::Records(before) => records(project)? > *before,
        })
    }
}

/// Number of records of the last run.
fn records(project: &Project) -> Result<usize, Failure> {
    Ok(Journal::read(&project.dir().journal())?.map_or(0, |journal| journal.records.len()))
}

/// Waits until the journal proves that a run has started. The process goes on, and a thread waits for its end.
fn wait_for_start(project: &Project, proof: &StartProof, mut child: Child) -> Result<(), Failure> {
    let deadline = Instant::now() + STARTS;
    while !proof.is_there(project)? {
        // A short run may have ended between the two looks.
        if child.try_wait()?.is_some() && !proof.is_there(project)? {
            let words = run_process::last_words(project.dir());
            return Err(Failure::failed(format!("the run did not start: {words}")));
        }
        if Instant::now() > deadline {
            std::thread::spawn(move || child.wait());
            let output = project.dir().detached_output();
            return Err(Failure::failed(format!(
                "the run has recorded nothing within {} s; {output} has what its process prints",
                STARTS.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::spawn(move || child.wait());
    Ok(())
}
