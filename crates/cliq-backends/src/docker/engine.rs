//! The engine: Docker, or Podman under the same API.

use std::collections::HashMap;
use std::time::Duration;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::models::ContainerSummaryStateEnum;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, CreateImageOptionsBuilder,
    KillContainerOptionsBuilder, ListContainersOptionsBuilder, LogsOptionsBuilder,
    RemoveContainerOptionsBuilder,
};
use camino::Utf8Path;
use cliq_protocol::RunId;
use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep, timeout};

use super::description::{HOME, RUN, container_name, description};
use super::error::status;
use super::{ContainerEnd, ContainerFacts, DockerError, DockerOptions, Job, Slot};

/// Maximum number of attempts to read a list of containers that cannot be parsed.
const MOST_LISTS: usize = 50;
/// Deadline for the first response of the engine.
const FIRST_ANSWER: Duration = Duration::from_secs(30);
/// Time to wait for an engine that is unreachable, such as during a restart.
const AWAY: Duration = Duration::from_secs(60);
/// Polling interval of a container.
const LOOK: Duration = Duration::from_millis(100);

/// Output stream of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A container of a run that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContainerState {
    /// The container is running.
    Running,
    /// The container has ended or never started.
    Ended,
}

/// A container engine.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    docker: Docker,
    address: String,
    is_podman: bool,
}

impl Engine {
    /// Connects to an engine, and agrees on a version of the API with it.
    ///
    /// # Errors
    /// None answers, or this user may not speak to it.
    pub(super) async fn connect(address: &str) -> Result<Self, DockerError> {
        let away = |error: &_| DockerError::of("answer", address, error);
        let docker = Docker::connect_with_host(address).map_err(|error| away(&error))?;
        let asked = timeout(FIRST_ANSWER, async {
            let docker = docker.negotiate_version().await?;
            let version = docker.version().await?;
            Ok((docker, version))
        });
        let (docker, version) = match asked.await {
            Ok(answer) => answer.map_err(|error: bollard::errors::Error| away(&error))?,
            Err(_) => {
                let why = format!("it did not answer in {} s", FIRST_ANSWER.as_secs());
                return Err(DockerError::NoEngine { address: address.to_owned(), why });
            }
        };
        let is_podman =
            version.components.iter().flatten().any(|component| component.name.contains("Podman"));
        Ok(Self { docker, address: address.to_owned(), is_podman })
    }

    /// Connects to an engine that has just answered. Retries for up to a minute while it is unreachable; `notice` then receives a message.
    ///
    /// # Errors
    /// The engine stays away.
    pub(super) async fn reconnect(address: &str, mut notice: impl FnMut(&str)) -> Result<Self, DockerError> {
        when_back(&mut notice, || Self::connect(address)).await
    }

    /// Whether it is a rootless Podman, which gives users of a container other numbers where it is not told to keep them.
    ///
    /// # Errors
    /// The engine does not answer.
    pub(super) async fn maps_users(&self) -> Result<bool, DockerError> {
        if !self.is_podman {
            return Ok(false);
        }
        let info = self.docker.info().await.map_err(|error| self.refused("say how it works", &error))?;
        Ok(info.security_options.iter().flatten().any(|option| option.contains("rootless")))
    }

    /// Whether it is Podman.
    #[must_use]
    pub(super) fn is_podman(&self) -> bool {
        self.is_podman
    }

    /// Whether an image is there.
    ///
    /// # Errors
    /// The engine does not answer.
    pub(super) async fn has_image(&self, image: &str) -> Result<bool, DockerError> {
        match self.docker.inspect_image(image).await {
            Ok(_) => Ok(true),
            Err(error) if status(&error) == Some(404) => Ok(false),
            Err(error) => Err(self.refused("look for the image", &error)),
        }
    }

    /// Makes sure that the image is there: fetches it where it is not. `notice` gets what happens.
    ///
    /// # Errors
    /// The image does not exist.
    pub(super) async fn require_image(
        &self,
        image: &str,
        mut notice: impl FnMut(&str),
    ) -> Result<(), DockerError> {
        if self.has_image(image).await? {
            return Ok(());
        }
        notice(&format!("there is no image {image} here: fetching it"));
        // Without a tag, all tags would be fetched.
        let tagged = if image.rsplit('/').next().unwrap_or(image).contains([':', '@']) {
            image.to_owned()
        } else {
            format!("{image}:latest")
        };
        let options = CreateImageOptionsBuilder::new().from_image(&tagged).build();
        let mut pull = std::pin::pin!(self.docker.create_image(Some(options), None, None));
        let failed = |why: String| DockerError::NoImage { image: image.to_owned(), why };
        while let Some(step) = pull.next().await {
            match step {
                Ok(step) => {
                    if let Some(message) = step.error_detail.and_then(|detail| detail.message) {
                        return Err(failed(message));
                    }
                    // Not each layer's progress: a line per layer's step is enough for a log.
                    if let (Some(what), None) =
                        (step.status, step.progress_detail.and_then(|detail| detail.current))
                    {
                        notice(&what);
                    }
                }
                Err(bollard::errors::Error::DockerStreamError { error }) => return Err(failed(error)),
                Err(error) => {
                    return Err(match DockerError::of("fetch the image", &self.address, &error) {
                        DockerError::Refused { why, .. } => failed(why),
                        other => other,
                    });
                }
            }
        }
        Ok(())
    }

    /// The container of a run, if there is one.
    ///
    /// # Errors
    /// The engine does not answer.
    pub(super) async fn find(&self, run_id: &RunId) -> Result<Option<ContainerState>, DockerError> {
        Ok(self
            .facts(&container_name(run_id))
            .await?
            .map(|facts| if facts.is_running { ContainerState::Running } else { ContainerState::Ended }))
    }

    /// Starts the container of a run, and writes what it needs to its standard input.
    ///
    /// # Errors
    /// The engine refuses: a mount, a network, a limit. Nothing is left then.
    pub(super) async fn start(
        &self,
        job: &Job,
        options: &DockerOptions,
        handover: &[u8],
    ) -> Result<(), DockerError> {
        let name = container_name(&job.run_id);
        let create = CreateContainerOptionsBuilder::new().name(&name).build();
        let created = self.docker.create_container(Some(create), description(job, options)).await;
        created.map_err(|error| match status(&error) {
            Some(404) => DockerError::NoImage {
                image: options.image.clone(),
                why: "it has gone in the meantime".to_owned(),
            },
            _ => self.refused("make the container", &error),
        })?;
        let begun = self.begin(&name, handover).await;
        if begun.is_err() {
            let _ = self.remove(&job.run_id).await;
        }
        begun
    }

    async fn begin(&self, name: &str, handover: &[u8]) -> Result<(), DockerError> {
        let attach = AttachContainerOptionsBuilder::new().stdin(true).stream(true).build();
        let attached = self.docker.attach_container(name, Some(attach)).await;
        let mut attached = attached.map_err(|error| self.refused("attach to the container", &error))?;
        let started = self.docker.start_container(name, None).await;
        started.map_err(|error| self.refused("start the container", &error))?;
        let written = async {
            attached.input.write_all(handover).await?;
            attached.input.flush().await?;
            attached.input.shutdown().await
        };
        // One that has ended at once says why in its output.
        if let Err(error) = written.await {
            tracing::debug!(%error, "the container took no input");
        }
        Ok(())
    }

    /// Follows the output of a run's container to its end. `line` gets each line without its end; those of an earlier follower again. An engine that is away for
    /// up to a minute is waited for, and `notice` is told.
    ///
    /// # Errors
    /// The engine stays away.
    pub(super) async fn follow(
        &self,
        run_id: &RunId,
        mut line: impl FnMut(Stream, &str),
        mut notice: impl FnMut(&str),
    ) -> Result<ContainerEnd, DockerError> {
        let name = container_name(run_id);
        let mut output = Lines::default();
        loop {
            output.begin_again();
            let options = LogsOptionsBuilder::new().follow(true).stdout(true).stderr(true).build();
            let mut log = self.docker.logs(&name, Some(options));
            while let Some(Ok(chunk)) = log.next().await {
                output.take(&chunk, &mut line);
            }
            match self.facts_when_back(&name, &mut notice).await? {
                None => return Ok(ContainerEnd::Removed),
                Some(facts) => {
                    if let Some(end) = ContainerEnd::of(&facts) {
                        output.finish(&mut line);
                        return Ok(end);
                    }
                }
            }
            // The log has ended a moment before the container, or the engine was away.
            sleep(LOOK).await;
        }
    }

    async fn facts_when_back(
        &self,
        name: &str,
        notice: &mut impl FnMut(&str),
    ) -> Result<Option<ContainerFacts>, DockerError> {
        when_back(notice, || self.facts(name)).await
    }

    /// Removes the container of a run that has ended. Retries as [`Self::reconnect`] does.
    ///
    /// # Errors
    /// The engine stays away.
    pub(super) async fn remove_ended(
        &self,
        run_id: &RunId,
        mut notice: impl FnMut(&str),
    ) -> Result<(), DockerError> {
        when_back(&mut notice, || self.remove(run_id)).await
    }

    /// Asks a run's container to end, as SIGTERM asks a process.
    ///
    /// # Errors
    /// The engine does not answer.
    pub(super) async fn terminate(&self, run_id: &RunId) -> Result<(), DockerError> {
        self.signal(run_id, "SIGTERM").await
    }

    /// Ends a run's container at once.
    ///
    /// # Errors
    /// The engine does not answer.
    pub(super) async fn kill(&self, run_id: &RunId) -> Result<(), DockerError> {
        self.signal(run_id, "SIGKILL").await
    }

    async fn signal(&self, run_id: &RunId, signal: &str) -> Result<(), DockerError> {
        let options = KillContainerOptionsBuilder::new().signal(signal).build();
        match self.docker.kill_container(&container_name(run_id), Some(options)).await {
            // It has ended, or is gone.
            Err(error) if matches!(status(&error), Some(404 | 409 | 500)) => Ok(()),
            other => other.map_err(|error| self.refused("signal the container", &error)),
        }
    }

    /// Removes the container of a run, whatever it does.
    ///
    /// # Errors
    /// The engine does not answer.
    pub(super) async fn remove(&self, run_id: &RunId) -> Result<(), DockerError> {
        self.remove_named(&container_name(run_id)).await
    }

    async fn remove_named(&self, name: &str) -> Result<(), DockerError> {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        match self.docker.remove_container(name, Some(options)).await {
            // It is gone, or on its way.
            Err(error) if matches!(status(&error), Some(404 | 409)) => Ok(()),
            other => other.map_err(|error| self.refused("remove the container", &error)),
        }
    }

    /// Removes containers of this home that have ended and that nobody follows: their followers were killed. Gives how many work although nobody follows
    /// them.
    ///
    /// # Errors
    /// The engine does not answer, or the directory of places cannot be read.
    pub(super) async fn sweep(&self, home: &Utf8Path, places: &Utf8Path) -> Result<usize, DockerError> {
        let filters = HashMap::from([("label".to_owned(), vec![format!("{HOME}={home}")])]);
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        let mut tries = 0;
        let found = loop {
            match self.docker.list_containers(Some(options.clone())).await {
                // Podman names a state, for a moment, that the API does not have.
                Err(bollard::errors::Error::JsonDataError { .. }) if tries < MOST_LISTS => tries += 1,
                found => break found.map_err(|error| self.refused("list the containers", &error))?,
            }
            sleep(LOOK).await;
        };
        let mut at_work = 0;
        for container in found {
            let run = container.labels.as_ref().and_then(|labels| RunId::parse(labels.get(RUN)?).ok());
            let (Some(run), Some(id)) = (run, container.id) else { continue };
            if Slot::is_taken(places, &run)? {
                continue;
            }
            if container.state == Some(ContainerSummaryStateEnum::RUNNING) {
                at_work += 1;
            } else {
                self.remove_named(&id).await?;
            }
        }
        Ok(at_work)
    }

    /// Waits for a place to be free: until fewer than `max` are before it. `notice` is told once.
    ///
    /// # Errors
    /// As for [`Self::sweep`].
    pub(super) async fn wait_for_place(
        &self,
        place: &Slot,
        home: &Utf8Path,
        places: &Utf8Path,
        max: usize,
        mut notice: impl FnMut(&str),
    ) -> Result<(), DockerError> {
        let mut was_told = false;
        loop {
            let before = place.ahead()? + self.sweep(home, places).await?;
            if before < max {
                return Ok(());
            }
            if !std::mem::replace(&mut was_told, true) {
                let waiting = before - max;
                let others = if waiting > 0 { format!(", and {waiting} wait") } else { String::new() };
                notice(&format!(
                    "{max} containers work{others} (`docker.max_containers`): waiting for a place"
                ));
            }
            sleep(LOOK * 2).await;
        }
    }

    async fn facts(&self, name: &str) -> Result<Option<ContainerFacts>, DockerError> {
        let state = match self.docker.inspect_container(name, None).await {
            Ok(container) => container.state.unwrap_or_default(),
            Err(error) if status(&error) == Some(404) => return Ok(None),
            Err(error) => return Err(self.refused("look at the container", &error)),
        };
        Ok(Some(ContainerFacts {
            is_running: state.running.unwrap_or_default() || state.restarting.unwrap_or_default(),
            // An engine gives the year 1 for what has not begun.
            has_begun: state.started_at.is_some_and(|at| !at.starts_with("0001-")),
            out_of_memory: state.oom_killed.unwrap_or_default(),
            exit_code: state.exit_code.unwrap_or_default(),
            error: state.error.unwrap_or_default(),
        }))
    }

    fn refused(&self, action: &'static str, error: &bollard::errors::Error) -> DockerError {
        DockerError::of(action, &self.address, error)
    }
}

/// Repeats a call while the engine is away, for at most a minute.
async fn when_back<T, F: Future<Output = Result<T, DockerError>>>(
    notice: &mut impl FnMut(&str),
    call: impl Fn() -> F,
) -> Result<T, DockerError> {
    let deadline = Instant::now() + AWAY;
    let mut was_told = false;
    loop {
        match call().await {
            Err(error @ DockerError::NoEngine { .. }) if Instant::now() < deadline => {
                if !std::mem::replace(&mut was_told, true) {
                    notice(&format!("{error}; waiting for it"));
                }
                sleep(LOOK * 5).await;
            }
            other => return other,
        }
    }
}

/// Lines of both streams, from chunks. What was given is not given again when the log is read from its beginning.
#[derive(Debug, Default)]
struct Lines {
    streams: [Partial; 2],
}

#[derive(Debug, Default)]
struct Partial {
    line: Vec<u8>,
    /// Number of received bytes in total and since the log was last opened.
    given: usize,
    seen: usize,
}

impl Lines {
    fn begin_again(&mut self) {
        self.streams.iter_mut().for_each(|stream| stream.seen = 0);
    }

    fn take(&mut self, chunk: &LogOutput, line: &mut impl FnMut(Stream, &str)) {
        let (stream, bytes) = match chunk {
            LogOutput::StdOut { message } | LogOutput::Console { message } => (Stream::Stdout, message),
            LogOutput::StdErr { message } => (Stream::Stderr, message),
            LogOutput::StdIn { .. } => return,
        };
        let partial = &mut self.streams[stream as usize];
        for byte in bytes.iter().copied() {
            partial.seen += 1;
            if partial.seen <= partial.given {
                continue;
            }
            partial.given += 1;
            if byte == b'\n' {
                line(stream, &String::from_utf8_lossy(&partial.line));
                partial.line.clear();
            } else {
                partial.line.push(byte);
            }
        }
    }

    /// Passes on the last line if it has no line end.
    fn finish(&mut self, line: &mut impl FnMut(Stream, &str)) {
        for (stream, partial) in [Stream::Stdout, Stream::Stderr].into_iter().zip(&mut self.streams) {
            if !partial.line.is_empty() {
                line(stream, &String::from_utf8_lossy(&partial.line));
                partial.line.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines_of(chunks: &[Vec<u8>], again: &[usize]) -> Vec<String> {
        let mut lines = Lines::default();
        let mut got = Vec::new();
        let mut take = |lines: &mut Lines, chunk: &[u8]| {
            lines.take(&LogOutput::StdOut { message: chunk.to_vec().into() }, &mut |_, line| {
                got.push(line.to_owned());
            });
        };
        // The log breaks off after some chunks, and is read again from its beginning.
        for &count in again {
            lines.begin_again();
            chunks.iter().take(count).for_each(|chunk| take(&mut lines, chunk));
        }
        lines.begin_again();
        chunks.iter().for_each(|chunk| take(&mut lines, chunk));
        lines.finish(&mut |_, line| got.push(line.to_owned()));
        got
    }

    proptest! {
        #[test]
        fn each_line_is_given_once(
            text in "[a-c\n]{0,60}",
            cuts in prop::collection::vec(0_usize..60, 0..6),
            again in prop::collection::vec(0_usize..6, 0..4),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<Vec<u8>> =
                cuts.windows(2).map(|pair| text.as_bytes()[pair[0]..pair[1]].to_vec()).collect();
            let expected: Vec<String> = text.lines().map(str::to_owned).collect();
            prop_assert_eq!(lines_of(&chunks, &again), expected);
        }
    }
}
