//! `cliq run --docker`: the run works in a container, and is shown here.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use camino::Utf8Path;
use cliq_docker::{
    ContainerEnd, DockerError, DockerOptions, Engine, Found, Handover, Job, Mount, Place, Stream,
    engine_address,
};
use cliq_orchestrator::{Record, RunView};
use cliq_project::{Check, CheckStatus, Project, REVIEW_SOCKET, ReviewSocket, RunStart, Settings, timing};
use cliq_protocol::Timestamp;
use cliq_workflow::ValidatedWorkflow;

use super::run::{interrupted, last_run_id};
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::gateway::{block_on, home};
use crate::render::{progress::Progress, summary};
use crate::reviews::Backend;
use crate::ui;

/// How long a run has to end, beside what its agents have, before its container is ended.
const GRACE: Duration = Duration::from_secs(15);

impl From<DockerError> for Failure {
    fn from(error: DockerError) -> Self {
        let failure = Self::failed(error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// Whether a run is to work in a container.
pub(super) fn is_wanted(args: &RunArgs, settings: &Settings) -> bool {
    args.docker || (!args.no_docker && settings.flag("docker.enabled"))
}

/// The container that still works at the last run, after the process that followed it was killed.
pub(super) fn find_living(project: &Project, settings: &Settings) -> Result<Option<String>, Failure> {
    let Some(run_id) = last_run_id(project)? else { return Ok(None) };
    let address = engine_address(&options(project, settings)?, &project.host().environment);
    block_on(async {
        let found = Engine::connect(&address).await?.find(&run_id).await?;
        Ok((found == Some(Found::Running)).then_some(run_id))
    })
}

/// The options of containers. Where a person's own settings turn containers on, those of the project do not change them: agents can write
/// these.
fn options(project: &Project, settings: &Settings) -> Result<DockerOptions, Failure> {
    let own = Settings::load(project.host().home.as_deref(), None)?;
    let own = own.flag("docker.enabled").then_some(own);
    Ok(DockerOptions::of(own.as_ref().unwrap_or(settings)))
}

/// Whether the engine answers and has the image; nothing where runs do not work in containers.
pub(super) fn check(settings: &Settings) -> Option<Check> {
    if !settings.flag("docker.enabled") {
        return None;
    }
    let options = DockerOptions::of(settings);
    let address = engine_address(&options, &crate::project::host().environment);
    let looked = block_on(async {
        let engine = Engine::connect(&address).await?;
        Ok((engine.has_image(&options.image).await?, engine.is_podman()))
    });
    let (status, detail) = match looked {
        Ok((true, is_podman)) => {
            let name = if is_podman { "Podman" } else { "Docker" };
            (CheckStatus::Ok, format!("{name} at {address} has {}", options.image))
        }
        Ok((false, _)) => {
            (CheckStatus::Note, format!("there is no image {} yet: the first run fetches it", options.image))
        }
        Err(failure) => (CheckStatus::Missing, failure.text().to_owned()),
    };
    Some(Check::new("docker", status, detail))
}

/// Runs the team in a container, and shows what it does; or follows the container of a run that works already.
pub(super) fn run(
    project: &Project,
    workflow: &ValidatedWorkflow,
    settings: &Settings,
    args: &RunArgs,
    start: &RunStart,
    living: Option<&str>,
) -> Result<ExitCode, Failure> {
    let options = options(project, settings)?;
    let home = home()?;
    let places = home.join("containers");
    let is_resume = matches!(start, RunStart::Resume { .. });
    let run_id = match (living, &args.run_id) {
        (Some(run_id), _) => run_id.to_owned(),
        (None, Some(run_id)) => run_id.clone(),
        (None, None) if is_resume => last_run_id(project)?.unwrap_or_else(new_id),
        (None, None) => new_id(),
    };
    let mut shown = Shown::new(project, workflow, args, is_resume, living.is_some())?;
    let notice = |text: &str| ui::hint(text);
    let end = block_on(async {
        let address = engine_address(&options, &project.host().environment);
        let engine = Engine::connect(&address).await?;
        let micros = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
        // Its name is the same for each follower of a run.
        let socket =
            home.join("reviews").join(format!("{}.sock", &run_id[run_id.len().saturating_sub(12)..]));
        let place = Place::take(&places, &run_id, u64::try_from(micros).unwrap_or(u64::MAX))?;
        if living.is_some() {
            notice("the run works in its container already: following it");
        } else {
            let job = job(project, settings, args, start, &run_id, engine.is_podman())?;
            let mut env = project.variables_for_container()?;
            env.extend(options.env.clone());
            env.insert(REVIEW_SOCKET.to_owned(), socket.to_string());
            let handover = Handover { env, settings: project.host().settings_for_container() };
            tokio::select! {
                ready = async {
                    engine.require_image(&options.image, notice).await?;
                    engine.wait_for_place(&place, &home, &places, options.max_containers, notice).await
                } => ready?,
                () = interrupted() => return Ok(None),
            }
            // One that ended, and whose follower was killed before it could remove it.
            engine.remove(&run_id).await?;
            engine.start(&job, &options, &handover).await?;
        }
        let end = tokio::select! {
            end = follow(&engine, &run_id, &mut shown, timing(settings).kill_grace) => end,
            error = answer_about_reviews(&socket, project.dir().workspace()) => Err(error),
        };
        if end.is_ok() {
            engine.remove(&run_id).await?;
        }
        drop(place);
        end.map(Some)
    })?;
    let Some(end) = end else { return Ok(ExitCode::from(130)) };
    finish(project, &options, &shown, args, &end)
}

/// Lets human gates of the run reach the reviews of this machine. Ends only where it cannot.
async fn answer_about_reviews(socket: &Utf8Path, workspace: &Utf8Path) -> Failure {
    match ReviewSocket::listen(socket) {
        Ok(listening) => {
            listening.serve(workspace, Arc::new(Backend::default())).await;
            Failure::failed("no review can be asked for any more")
        }
        Err(error) => Failure::failed(format!("cannot listen at {socket}: {error}")),
    }
}

/// Follows a container to its end. Signals cancel the run in it; one that does not end in time is ended.
async fn follow(
    engine: &Engine,
    run_id: &str,
    shown: &mut Shown,
    kill_grace: Duration,
) -> Result<ContainerEnd, Failure> {
    let mut following =
        std::pin::pin!(engine.follow(run_id, |stream, line| shown.line(stream, line), ui::hint));
    tokio::select! {
        end = &mut following => return Ok(end?),
        () = interrupted() => engine.terminate(run_id).await?,
    }
    match tokio::time::timeout(kill_grace * 2 + GRACE, &mut following).await {
        Ok(end) => Ok(end?),
        Err(_) => {
            engine.kill(run_id).await?;
            Ok(following.await?)
        }
    }
}

fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

fn job(
    project: &Project,
    settings: &Settings,
    args: &RunArgs,
    start: &RunStart,
    run_id: &str,
    keeps_user: bool,
) -> Result<Job, Failure> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut arguments = words(&["contained", "--", "run", "--headless", "--json", "--no-docker", "--yes"]);
    match start {
        RunStart::Fresh => arguments.extend(words(&["--force", "--run-id", run_id])),
        RunStart::Resume { from: None } => arguments.push("--resume".to_owned()),
        RunStart::Resume { from: Some(from) } => arguments.extend(words(&["--from", from])),
    }
    arguments.extend(args.choices());
    if let Some(instance) = &args.a2a_events {
        arguments.extend(words(&["--a2a-events", instance]));
    }
    let mounts = project.paths_for_container(settings).into_iter();
    Ok(Job {
        run_id: run_id.to_owned(),
        workspace: project.dir().workspace().to_owned(),
        home: home()?,
        mounts: mounts.map(|shared| Mount { path: shared.path, writable: shared.writable }).collect(),
        arguments,
        user: (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()),
        keeps_user,
    })
}

/// The run as it is shown here: the events that the cliq in the container prints.
struct Shown {
    view: RunView,
    progress: Progress,
    reader_is_gone: bool,
    /// When what `view` has already ends: a container's log begins with the container.
    seen: Option<Timestamp>,
}

impl Shown {
    fn new(
        project: &Project,
        workflow: &ValidatedWorkflow,
        args: &RunArgs,
        is_resume: bool,
        is_living: bool,
    ) -> Result<Self, Failure> {
        let last = if is_resume { project.last_run(workflow)? } else { None };
        let newest = last.as_ref().and_then(|(journal, _)| Some(journal.records.last()?.ts.clone()));
        Ok(Self {
            view: last.map_or_else(|| RunView::new(workflow), |(_, view)| view),
            progress: Progress::new(args.json, args.headless),
            reader_is_gone: false,
            seen: newest.filter(|_| is_living),
        })
    }

    fn line(&mut self, stream: Stream, line: &str) {
        match (stream, Record::decode(line.as_bytes())) {
            (Stream::Stdout, Ok(record)) => {
                if self.seen.as_ref().is_some_and(|seen| record.ts.as_str() <= seen.as_str()) {
                    return;
                }
                self.view.apply(&record);
                self.reader_is_gone = self.reader_is_gone || self.progress.show(&record, &self.view).is_err();
            }
            // What its cliq says beside: warnings, and why it could not begin.
            _ => drop(writeln!(std::io::stderr(), "{}", ui::plain(line))),
        }
    }
}

fn finish(
    project: &Project,
    options: &DockerOptions,
    shown: &Shown,
    args: &RunArgs,
    end: &ContainerEnd,
) -> Result<ExitCode, Failure> {
    let memory = cliq_http::size(options.memory);
    let resume = "`cliq run --resume` goes on where it stopped";
    match end {
        // What the shells and `docker run` exit with for a program that cannot be started.
        ContainerEnd::Exited { code: 126 | 127, .. } if shown.view.pipeline_status().is_none() => {
            Err(Failure::failed(format!("`cliq` cannot be started in the image `{}`: it is not found there", options.image))
                .hint("deploy/Dockerfile makes an image with it; `docker.image` names the image"))
        }
        ContainerEnd::Exited { code, out_of_memory } => {
            if *out_of_memory {
                ui::warning(&format!("a process of the run was ended for want of memory: it has {memory} (`docker.memory`)"));
            }
            if !args.json && shown.view.pipeline_status().is_some() {
                summary::show(&shown.view, project)?;
            }
            Ok(ExitCode::from(*code))
        }
        ContainerEnd::OutOfMemory => Err(Failure::failed(format!(
            "the run was ended for want of memory: it has {memory} (`docker.memory`)"
        ))
        .hint(resume)),
        ContainerEnd::Killed { signal } => Err(Failure::failed(format!(
            "the container of the run was ended by signal {signal}: by a person, or by the engine as it stopped"
        ))
        .hint(resume)),
        ContainerEnd::NotBegun { why } => {
            Err(Failure::failed(format!("the container engine cannot start the container: {why}")))
        }
        _ => Err(Failure::failed("the container of the run was removed while it worked").hint(resume)),
    }
}
