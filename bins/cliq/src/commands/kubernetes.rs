//! `cliq run --kubernetes`: the run works as a Job of a cluster, and is shown here from its journal.

use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use cliq_fs::{CliqDir, PipelineStatus, write_status};
use cliq_kubernetes::{
    Cluster, Found, HANDOVER_FILE, JobEnd, KubernetesError, KubernetesOptions, Mount, Work, on_claim,
};
use cliq_orchestrator::{JournalFollower, JournalUpdate, RunEvent};
use cliq_project::{Check, CheckStatus, Handover, Project, Settings, timing};
use tokio::time::{Instant, sleep};

use super::elsewhere::{
    GRACE, RESUME, Shown, Wanted, cancelled, last_run_id, not_begun, out_of_memory, take_project,
    warn_of_memory,
};
use super::run::{DIE_BY_SIGNALS, exit_status, interrupted};
use crate::failure::Failure;
use crate::gateway::{self, block_on, home};
use crate::ui;

/// How often the journal is read.
const POLL: Duration = Duration::from_millis(100);
/// How long the end of a journal may take to be seen here: file systems of networks keep what they know for a while.
const LATE: Duration = Duration::from_secs(60);
/// How long the cluster may take to say that a run has ended, once its journal says so.
const SLOW: Duration = Duration::from_secs(15);

impl From<KubernetesError> for Failure {
    fn from(error: KubernetesError) -> Self {
        let failure = Self::failed(error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// Finds the run with this id, else the last run, where its Job has not ended. Another process may follow it, here or on another machine.
pub(super) fn find_living(
    project: &Project,
    settings: &Settings,
    run_id: Option<&str>,
) -> Result<Option<String>, Failure> {
    let Some(run_id) = run_id.map(str::to_owned).map_or_else(|| last_run_id(project), |id| Ok(Some(id)))?
    else {
        return Ok(None);
    };
    let options = KubernetesOptions::of(settings);
    block_on(async {
        let found = Cluster::connect(&options).await?.find(&run_id).await?;
        Ok((found == Some(Found::Living)).then_some(run_id))
    })
}

/// Runs in a cluster share their state with servers on other machines (seed 004).
pub(crate) fn require_postgres() -> Result<(), Failure> {
    if gateway::location()?.is_shared() {
        return Ok(());
    }
    Err(Failure::failed("runs in a cluster need PostgreSQL: `database.url` names none")
        .hint("`cliq settings set -g database.url postgresql://USER@HOST/DATABASE`; docs/kubernetes.md has the whole set-up"))
}

/// Whether the cluster answers, has the claim, and grants what cliq needs; nothing where runs do not work in a cluster.
pub(super) fn check(settings: &Settings) -> Option<Check> {
    if !settings.flag("kubernetes.enabled") {
        return None;
    }
    let (status, detail) = match look(&KubernetesOptions::of(settings)) {
        Ok(checked) => checked,
        Err(failure) => (CheckStatus::Missing, failure.text().to_owned()),
    };
    Some(Check::new("kubernetes", status, detail))
}

fn look(options: &KubernetesOptions) -> Result<(CheckStatus, String), Failure> {
    require_postgres()?;
    block_on(async {
        let cluster = Cluster::connect(options).await?;
        let missing = cluster.missing_rights().await?;
        let place = format!("{} (namespace {})", cluster.address(), cluster.namespace());
        if !missing.is_empty() {
            return Ok((CheckStatus::Missing, format!("{place} does not grant: {}", missing.join(", "))));
        }
        let claim = cluster.claim(&options.claim).await?;
        Ok(match claim {
            Some(claim) if !claim.is_shared => {
                let detail = format!(
                    "only one node can write to the claim {} (ReadWriteMany is needed)",
                    options.claim
                );
                (CheckStatus::Note, detail)
            }
            _ if !options.mount_path.is_dir() => {
                let detail = format!("the claim is not mounted here, at {}", options.mount_path);
                (CheckStatus::Note, detail)
            }
            _ => (CheckStatus::Ok, format!("{place} has the claim {}", options.claim)),
        })
    })
}

/// Runs the team as a Job, and shows what it does; or follows the Job of a run that works already.
pub(super) fn run(wanted: &Wanted<'_>) -> Result<ExitCode, Failure> {
    require_postgres()?;
    let &Wanted { project, settings, is_living, ref run_id, .. } = wanted;
    let options = KubernetesOptions::of(settings);
    if !is_living && settings.text("hug.server_url").is_none() && project.asks_people()? {
        return Err(Failure::failed("the team asks people, and no server is named that keeps its reviews")
            .hint("`hug.server_url` and `hug.token` name one that pods can reach: docs/kubernetes.md"));
    }
    let lock = take_project(project.dir(), is_living)?;
    let mut shown = Shown::new(wanted, true)?;
    let grace = timing(settings).kill_grace * 2 + GRACE;
    let end = block_on(async {
        let cluster = Cluster::connect(&options).await?;
        let mut asked_to_end = std::pin::pin!(interrupted());
        if is_living {
            ui::hint("the run works in the cluster already: following it");
        } else {
            let work = work(wanted, &options, grace)?;
            let mut env = wanted.variables()?;
            env.extend(options.env.clone());
            // A node that is drained ends its pods by signals: that cancels no run.
            env.insert(DIE_BY_SIGNALS.to_owned(), "1".to_owned());
            let handover = Handover { env, settings: project.host().settings_for_container() }.encode();
            tokio::select! {
                started = begin(&cluster, &work, &options, handover) => started?,
                () = &mut asked_to_end => {
                    cluster.remove(run_id).await?;
                    return Ok(None);
                }
            }
            ui::hint(&format!("the Job cliq-{run_id} waits for a node of {}", cluster.address()));
        }
        let dir = project.dir();
        let followed =
            Followed { cluster: &cluster, run_id, options: &options, dir, grace, is_own: !is_living };
        let end = followed.to_its_end(&mut shown, asked_to_end).await?;
        if let Err(error) = cluster.forget_secret(run_id).await {
            ui::warning(&error.to_string());
        }
        Ok(end)
    })?;
    drop(lock);
    let Some(end) = end else { return not_begun(project.dir()) };
    finish(wanted, &options, &shown, &end)
}

fn work(wanted: &Wanted<'_>, options: &KubernetesOptions, grace: Duration) -> Result<Work, Failure> {
    let project = wanted.project;
    let workspace = project.dir().workspace();
    on_claim(workspace, &options.mount_path).map_err(KubernetesError::from)?;
    let mut mounts = Vec::new();
    for shared in wanted.paths() {
        match on_claim(&shared.path, &options.mount_path) {
            Ok(_) => mounts.push(Mount { path: shared.path, writable: shared.writable }),
            Err(_) if is_empty(&shared.path) => {}
            Err(error) => ui::warning(&format!("the run will not see {}: {error}", shared.path)),
        }
    }
    let contained = ["contained", "--handover", HANDOVER_FILE].map(str::to_owned);
    Ok(Work {
        run_id: wanted.run_id.clone(),
        workspace: workspace.to_owned(),
        home: home()?,
        mounts,
        arguments: contained.into_iter().chain(wanted.arguments.clone()).collect(),
        user: (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()),
        grace,
    })
}

fn is_empty(path: &camino::Utf8Path) -> bool {
    path.read_dir_utf8().is_ok_and(|mut entries| entries.next().is_none())
}

/// The journal of a run that works elsewhere.
struct Tail {
    journal: JournalFollower,
    run_id: String,
    /// Whether what is read is of this run.
    is_ours: bool,
}

impl Tail {
    fn new(dir: &CliqDir, run_id: &str) -> Self {
        let journal = JournalFollower::new(&dir.journal());
        Self { journal, run_id: run_id.to_owned(), is_ours: false }
    }

    fn read(&mut self, shown: &mut Shown) {
        // One that cannot be read at this moment is read again.
        let Ok(JournalUpdate::More(records) | JournalUpdate::Afresh(records)) = self.journal.read() else {
            return;
        };
        for record in records {
            if let RunEvent::RunStarted { run_id, .. } = &record.event {
                self.is_ours = *run_id == self.run_id;
            }
            if self.is_ours {
                shown.record(&record);
            }
        }
    }
}

/// Makes the Job.
async fn begin(
    cluster: &Cluster,
    work: &Work,
    options: &KubernetesOptions,
    handover: Vec<u8>,
) -> Result<(), KubernetesError> {
    cluster.claim(&options.claim).await?;
    cluster.sweep().await?;
    // One that ended before this run goes on.
    cluster.remove(&work.run_id).await?;
    cluster.start(work, options, handover).await
}

/// A run whose Job is there.
struct Followed<'a> {
    cluster: &'a Cluster,
    run_id: &'a str,
    options: &'a KubernetesOptions,
    dir: &'a CliqDir,
    /// How long it has to end after it was asked to.
    grace: Duration,
    /// Whether this process made its Job.
    is_own: bool,
}

impl Followed<'_> {
    /// Follows Job and journal to the end. `None` where the run was cancelled before it began.
    async fn to_its_end(
        &self,
        shown: &mut Shown,
        mut asked_to_end: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Option<JobEnd>, Failure> {
        let mut journal = Tail::new(self.dir, self.run_id);
        let mut job = std::pin::pin!(self.cluster.follow(self.run_id, self.options, ui::hint));
        let mut cancel = std::pin::pin!(cancelled(self.dir));
        let (mut is_asked, mut is_cancelled): (Option<Instant>, bool) = (None, false);
        let mut over: Option<Instant> = None;
        let end = loop {
            tokio::select! {
                end = &mut job => {
                    journal.read(shown);
                    if end.is_err() && self.is_own && !shown.has_begun() {
                        // Nobody would see it begin.
                        let _ = self.cluster.remove(self.run_id).await;
                    }
                    break end?;
                }
                () = &mut asked_to_end, if is_asked.is_none() => {
                    is_asked = Some(Instant::now());
                    write_status(self.dir, PipelineStatus::Cancelled)?;
                }
                () = &mut cancel, if !is_cancelled && !shown.has_begun() => is_cancelled = true,
                () = sleep(POLL) => {}
            }
            journal.read(shown);
            // A run that works ends by itself: it sees the request.
            let is_overdue = is_asked.is_some_and(|asked| asked.elapsed() > self.grace);
            if is_overdue || (!shown.has_begun() && (is_cancelled || is_asked.is_some())) {
                self.cluster.remove(self.run_id).await?;
                journal.read(shown);
                if !shown.has_begun() {
                    return Ok(None);
                }
                break JobEnd::Removed;
            }
            // The API server is away, or slow.
            if shown.end().is_some() && over.get_or_insert_with(Instant::now).elapsed() > SLOW {
                break JobEnd::Removed;
            }
        };
        let deadline = Instant::now() + LATE;
        let exited = matches!(end, JobEnd::Exited { .. });
        loop {
            journal.read(shown);
            let is_whole = shown.end().is_some() || !shown.has_begun() || !exited;
            if is_whole || Instant::now() > deadline {
                return Ok(Some(end));
            }
            sleep(POLL).await;
        }
    }
}

fn finish(
    wanted: &Wanted<'_>,
    options: &KubernetesOptions,
    shown: &Shown,
    end: &JobEnd,
) -> Result<ExitCode, Failure> {
    let failed = |why: String| Err(Failure::failed(why).hint(RESUME));
    match end {
        JobEnd::Exited { code, out_of_memory, last_words } => {
            if *out_of_memory {
                warn_of_memory(options.memory, "kubernetes.memory");
            }
            if shown.end().is_none() {
                shown.say(last_words);
            }
            wanted.exited(shown, *code)
        }
        // It said how it ended before its Job was removed, or before the cluster knew.
        _ if shown.end().is_some() => wanted.exited(shown, exit_status(shown.end())),
        JobEnd::OutOfMemory => Err(out_of_memory(options.memory, "kubernetes.memory")),
        JobEnd::Killed { signal } => failed(format!(
            "the process of the run was ended by signal {signal}: by a person, or by its node"
        )),
        JobEnd::Evicted { why } => failed(format!("the run was evicted from its node: {why}")),
        JobEnd::Disrupted { why } => failed(format!("the cluster took the run's node from it: {why}")),
        JobEnd::DeadlineExceeded => {
            let most = options.deadline.map_or_else(String::new, |time| format!(" {} s", time.as_secs()));
            failed(format!("the run took longer than its Job may{most} (`kubernetes.deadline`)"))
        }
        JobEnd::NotBegun(waiting) => {
            let why = if waiting.why.is_empty() { "the cluster does not say why" } else { &waiting.why };
            Err(Failure::failed(format!("the run did not begin, for want of {}: {why}", waiting.cause)).hint(
                "docs/kubernetes.md explains these; `kubernetes.start_timeout` is how long a run waits",
            ))
        }
        _ => failed("the Job of the run was deleted while it worked".to_owned()),
    }
}
