//! `cliq run --docker`: the run works in a container, and is shown here.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use camino::Utf8Path;
use cliq_docker::{
    ContainerEnd, DockerError, DockerOptions, Engine, Found, Job, Mount, Place, Stream, engine_address,
};
use cliq_project::{Check, CheckStatus, Handover, Project, REVIEW_SOCKET, ReviewSocket, Settings, timing};

use super::elsewhere::{
    GRACE, RESUME, Shown, Wanted, cancelled, last_run_id, not_begun, out_of_memory, take_project,
    warn_of_memory,
};
use super::run::interrupted;
use crate::failure::Failure;
use crate::gateway::{block_on, home};
use crate::reviews::Backend;
use crate::ui;

impl From<DockerError> for Failure {
    fn from(error: DockerError) -> Self {
        let failure = Self::failed(error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// The container that still works at the last run, after the process that followed it was killed.
pub(super) fn find_living(project: &Project, settings: &Settings) -> Result<Option<String>, Failure> {
    let Some(run_id) = last_run_id(project)? else { return Ok(None) };
    let address = engine_address(&DockerOptions::of(settings), &project.host().environment);
    block_on(async {
        let found = Engine::connect(&address).await?.find(&run_id).await?;
        Ok((found == Some(Found::Running)).then_some(run_id))
    })
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
pub(super) fn run(wanted: &Wanted<'_>) -> Result<ExitCode, Failure> {
    let (project, run_id) = (wanted.project, wanted.run_id.as_str());
    let options = DockerOptions::of(wanted.settings);
    let home = home()?;
    let places = home.join("containers");
    let lock = take_project(project.dir(), wanted.is_living)?;
    let mut shown = Shown::new(wanted, wanted.is_living)?;
    let notice = |text: &str| ui::hint(text);
    let end = block_on(async {
        let address = engine_address(&options, &project.host().environment);
        let engine = Engine::connect(&address).await?;
        let micros = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
        // Its name is the same for each follower of a run.
        let socket =
            home.join("reviews").join(format!("{}.sock", &run_id[run_id.len().saturating_sub(12)..]));
        let place = Place::take(&places, run_id, u64::try_from(micros).unwrap_or(u64::MAX))?;
        if wanted.is_living {
            notice("the run works in its container already: following it");
        } else {
            let job = job(wanted, engine.maps_users().await?)?;
            let mut env = wanted.variables()?;
            env.extend(options.env.clone());
            env.insert(REVIEW_SOCKET.to_owned(), socket.to_string());
            let handover = Handover { env, settings: project.host().settings_for_container() }.encode();
            tokio::select! {
                ready = async {
                    engine.require_image(&options.image, notice).await?;
                    engine.wait_for_place(&place, &home, &places, options.max_containers, notice).await
                } => ready?,
                () = cancelled(project.dir()) => return Ok(None),
            }
            // One that ended, and whose follower was killed before it could remove it.
            engine.remove(run_id).await?;
            engine.start(&job, &options, &handover).await?;
        }
        let end = tokio::select! {
            end = follow(&engine, run_id, &mut shown, timing(wanted.settings).kill_grace) => end,
            error = answer_about_reviews(&socket, project.dir().workspace()) => Err(error),
        };
        if end.is_ok() {
            engine.remove(run_id).await?;
        }
        drop(place);
        end.map(Some)
    })?;
    drop(lock);
    let Some(end) = end else { return not_begun(project.dir()) };
    finish(wanted, &options, &shown, &end)
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
    let mut following = std::pin::pin!(engine.follow(
        run_id,
        |stream, line| shown.line(stream == Stream::Stdout, line),
        ui::hint
    ));
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

fn job(wanted: &Wanted<'_>, keeps_user: bool) -> Result<Job, Failure> {
    let project = wanted.project;
    let contained = std::iter::once("contained".to_owned());
    let mounts = project.review_links().into_iter().chain(wanted.paths());
    Ok(Job {
        run_id: wanted.run_id.clone(),
        workspace: project.dir().workspace().to_owned(),
        home: home()?,
        mounts: mounts.map(|shared| Mount { path: shared.path, writable: shared.writable }).collect(),
        arguments: contained.chain(wanted.arguments.clone()).collect(),
        user: (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()),
        keeps_user,
    })
}

fn finish(
    wanted: &Wanted<'_>,
    options: &DockerOptions,
    shown: &Shown,
    end: &ContainerEnd,
) -> Result<ExitCode, Failure> {
    match end {
        // What the shells and `docker run` exit with for a program that cannot be started.
        ContainerEnd::Exited { code: 126 | 127, .. } if shown.end().is_none() => {
            Err(Failure::failed(format!("`cliq` cannot be started in the image `{}`: it is not found there", options.image))
                .hint("deploy/Dockerfile makes an image with it; `docker.image` names the image"))
        }
        ContainerEnd::Exited { code, out_of_memory } => {
            if *out_of_memory {
                warn_of_memory(options.memory, "docker.memory");
            }
            wanted.exited(shown, *code)
        }
        ContainerEnd::OutOfMemory => Err(out_of_memory(options.memory, "docker.memory")),
        ContainerEnd::Killed { signal } => Err(Failure::failed(format!(
            "the container of the run was ended by signal {signal}: by a person, or by the engine as it stopped"
        ))
        .hint(RESUME)),
        ContainerEnd::NotBegun { why } => {
            Err(Failure::failed(format!("the container engine cannot start the container: {why}")))
        }
        _ => Err(Failure::failed("the container of the run was removed while it worked").hint(RESUME)),
    }
}
