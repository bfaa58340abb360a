//! Sandboxes of a run's processes (docs/sandbox.md): of a person's settings, the project's, and what the team asks for.

use std::collections::HashMap;
#[cfg(feature = "egress")]
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
#[cfg(feature = "egress")]
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_agents::ModelAgent;
use cliq_fs::CliqDir;
use cliq_orchestrator::{AgentCommand, Confinement, Job, PhaseProcess, RunPlan};
#[cfg(feature = "egress")]
use cliq_protocol::HostPattern;
use cliq_protocol::{AgentTools, Network, PhaseName, Profile, Sandbox};
#[cfg(feature = "egress")]
use cliq_sandbox::Egress;
#[cfg(feature = "egress")]
use cliq_sandbox::egress::{EgressProxy, EgressRules, Refusal};
use cliq_sandbox::{Access, Base, Limits, Mechanism, Policy, Preference, SANDBOX_VARIABLE, Wrapper};
use cliq_settings::{EnforcementSettings, MechanismChoice, MissingSandbox, Settings};
use cliq_workflow::Phase;

use crate::sandbox::combined;
use crate::sandbox_git::{GitGuard, GitPaths};
use crate::{Project, ProjectError};

/// Part of a sandbox that the caller of a run decides.
#[derive(Debug, Default)]
pub(crate) struct RunAccess<'a> {
    /// Sandbox around all processes, beside those of settings and team.
    pub(crate) requested: Option<&'a Sandbox>,
    /// Paths below the `.cliq` directory, and elsewhere, that all processes write.
    pub(crate) write: Vec<Utf8PathBuf>,
    /// Paths that none reads.
    pub(crate) hidden: Vec<Utf8PathBuf>,
    /// Git directory of which the workspace is a worktree, and that processes write.
    pub(crate) git: Option<Utf8PathBuf>,
}

/// Sandboxes of a run.
#[derive(Debug)]
struct RunSandbox {
    /// What every process is within.
    around: Limits,
    base: Base,
    dir: CliqDir,
    path: Option<String>,
    /// Program of cliq, which is the wrapper.
    wrapper: Utf8PathBuf,
    /// Mechanism, or what is missing.
    mechanism: Result<Mechanism, String>,
    write: Vec<Utf8PathBuf>,
    hidden: Vec<Utf8PathBuf>,
    git: GitPaths,
    /// Tools of the model agents of phases that have any. They run in a sandbox of their own.
    tools: HashMap<PhaseName, AgentTools>,
    /// Git directory to be guarded while the run goes on. The team of a team phase leaves that to the outermost run.
    guarded: Option<Utf8PathBuf>,
    guard: OnceLock<Option<GitGuard>>,
    /// Egress proxies of phases that may reach some hosts.
    #[cfg(feature = "egress")]
    proxies: Proxies,
}

/// Egress proxies by phase. They end with the run.
#[cfg(feature = "egress")]
#[derive(Debug, Default)]
struct Proxies {
    of_phases: Mutex<HashMap<PhaseName, (Vec<HostPattern>, EgressProxy)>>,
}

#[cfg(feature = "egress")]
impl Proxies {
    /// Returns the way to the proxy of a process. Starts one if the phase has none with these hosts.
    fn egress(&self, hosts: &[HostPattern], process: &PhaseProcess<'_>) -> std::io::Result<Egress> {
        let mut of_phases = self.of_phases.lock().unwrap_or_else(PoisonError::into_inner);
        let known = of_phases.get(&process.phase.name).filter(|(known, _)| known == hosts);
        if known.is_none() {
            let (on_refusal, reported) = (process.on_refusal.clone(), Mutex::new(HashSet::new()));
            // Programs try again and again.
            let report = move |refusal: &Refusal| {
                let access = refusal.to_string();
                if reported.lock().unwrap_or_else(PoisonError::into_inner).insert(access.clone()) {
                    on_refusal.report(access);
                }
            };
            let proxy = EgressProxy::start(EgressRules::new(hosts.to_vec()), Arc::new(report))?;
            of_phases.insert(process.phase.name.clone(), (hosts.to_vec(), proxy));
        }
        let (_, proxy) = &of_phases[&process.phase.name];
        Ok(Egress { port: proxy.port(), socket: proxy.socket().to_owned() })
    }
}

impl Project {
    /// Restricts the processes of a plan by the settings, by the sandbox around this process, and by what the team asks for.
    ///
    /// # Errors
    /// Returns an error if the system cannot enforce a sandbox, unless `sandbox.missing` is `warn`.
    pub(crate) fn confine(
        &self,
        plan: &mut RunPlan,
        settings: &Settings,
        access: RunAccess<'_>,
    ) -> Result<(), ProjectError> {
        let around = self.host().sandboxes_around(settings, access.requested)?;
        let asked = |phase: &Phase| {
            let agent = plan.agent_of(phase).and_then(|agent| plan.agents.get(agent));
            phase.sandbox.is_on() || agent.is_some_and(|agent| agent.sandbox.is_on())
        };
        let tools = model_tools(plan, settings);
        let is_asked =
            around.iter().any(Sandbox::is_on) || plan.workflow.phases().any(|(_, phase)| asked(phase));
        // Finding secrets takes time.
        if !is_asked && tools.is_empty() {
            return Ok(());
        }
        let base = self.host().sandbox_base(self.dir().workspace());
        let enforcement = EnforcementSettings::read(settings);
        let preference = match enforcement.mechanism {
            MechanismChoice::Auto => Preference::Auto,
            MechanismChoice::Bubblewrap => Preference::Only(Mechanism::Bubblewrap),
            MechanismChoice::Landlock => Preference::Only(Mechanism::Landlock),
            MechanismChoice::Seatbelt => Preference::Only(Mechanism::Seatbelt),
        };
        let mechanism = self.host().sandbox_support().choose(preference);
        let permits = enforcement.missing == MissingSandbox::Warn;
        let workspace = self.dir().workspace();
        let sandbox = RunSandbox {
            around: combined(&around, &base),
            base,
            git: GitPaths::of(workspace, access.git.as_deref()),
            guarded: plan.parent.is_none().then(|| access.git.unwrap_or_else(|| workspace.join(".git"))),
            guard: OnceLock::new(),
            write: access.write,
            hidden: access.hidden,
            tools,
            dir: self.dir().clone(),
            path: self.host().environment.get("PATH").map(str::to_owned),
            wrapper: self.host().program.clone(),
            mechanism,
            #[cfg(feature = "egress")]
            proxies: Proxies::default(),
        };
        if let (Err(missing), false) = (&sandbox.mechanism, permits) {
            if is_asked {
                let why = format!("this system cannot enforce the sandbox of the run: {missing}");
                return Err(ProjectError::Sandbox(why));
            }
            if let Some((phase, _)) = sandbox.tools.iter().find(|(_, tools)| tools.allows_changes()) {
                return Err(ProjectError::Sandbox(format!(
                    "phase `{phase}` has a model with tools, and this system cannot enforce their sandbox: {missing}; `agent_tools: read` \
                     needs none"
                )));
            }
            return Ok(());
        }
        #[cfg(not(feature = "egress"))]
        for (_, phase) in plan.workflow.phases() {
            let agent = plan.agent_of(phase).and_then(|agent| plan.agents.get(agent));
            if let Network::Hosts(_) = sandbox.limits(phase, agent).network {
                let why = "this program was built without lists of hosts (feature `egress` of cliq-project)";
                return Err(ProjectError::Sandbox(format!("phase `{}`: {why}", phase.name)));
            }
        }
        plan.confinement = Some(Arc::new(sandbox));
        Ok(())
    }
}

/// Tools of phases whose agent is a model behind an API.
fn model_tools(plan: &RunPlan, settings: &Settings) -> HashMap<PhaseName, AgentTools> {
    let of_phase = |phase: &Phase| {
        let name = plan.agent_of(phase)?;
        let is_part_of_cliq = plan.agents.get(name).is_some_and(|agent| agent.is_part_of_cliq);
        if !is_part_of_cliq || !ModelAgent::find(name, settings).is_some_and(|agent| agent.is_api()) {
            return None;
        }
        let tools = cliq_agents::agent_tools(name, settings, phase.agent_tools.as_ref(), phase.kind);
        let has_any = tools.built_in().next().is_some();
        has_any.then(|| (phase.name.clone(), tools))
    };
    plan.workflow.phases().filter_map(|(_, phase)| of_phase(phase)).collect()
}

impl RunSandbox {
    fn limits(&self, phase: &Phase, agent: Option<&AgentCommand>) -> Limits {
        let asked = [Some(&phase.sandbox), agent.map(|agent| &agent.sandbox)];
        let has_tools = agent.is_some() && self.tools.contains_key(phase.name.whole());
        let around = match (self.around.profile, has_tools) {
            // Tools are in a sandbox if nothing else is.
            (Profile::Off, true) => {
                let sandbox = Sandbox { network: Network::None, ..Sandbox::profile(Profile::Workspace) };
                Limits::new(&sandbox, &self.base)
            }
            _ => self.around.clone(),
        };
        asked
            .into_iter()
            .flatten()
            .fold(around, |limits, sandbox| limits.within(&Limits::new(sandbox, &self.base), &self.base))
    }

    /// Files of a process, and those that it must not reach in the workspace.
    fn access(&self, job: &Job, process: &PhaseProcess<'_>) -> Access {
        let has_tools = process.agent.is_some() && self.tools.contains_key(process.phase.name.whole());
        let mut write = [&self.write[..], &self.git.write].concat();
        if has_tools {
            // The agent itself reports and hands over: its tools must not do it in its name.
            let files = process.directories.iter().filter(|dir| dir.starts_with(self.dir.files()));
            write.extend(files.cloned());
        } else {
            write.extend(process.directories.iter().cloned());
            write.push(process.signal_file.clone());
        }
        let outermost = self.dir.outermost().to_owned();
        let mut hidden = self.hidden.clone();
        // This run's directory and those of the runs around it.
        let levels = self.dir.root().ancestors().take_while(|dir| dir.starts_with(&outermost));
        for level in levels.filter(|dir| {
            let is_team = dir.parent().is_none_or(|parent| parent.file_name() == Some("teams"));
            is_team || **dir == outermost || *dir == self.dir.root()
        }) {
            hidden.extend(
                [
                    "messages",
                    "signals",
                    "transcripts",
                    "conversations",
                    "asks",
                    "settings.json",
                    "lock",
                    "parking",
                    "follower",
                    "teams",
                    "tmp",
                ]
                .map(|name| level.join(name)),
            );
        }
        Access {
            write,
            read: vec![self.dir.root().to_owned()],
            protected: [outermost].into_iter().chain(self.git.protected.iter().cloned()).collect(),
            hidden,
            temporary: Some(self.dir.root().join("tmp").join(process.phase.name.as_str())),
            env: job
                .env
                .keys()
                .cloned()
                .chain(process.agent.into_iter().flat_map(|agent| agent.needs_env.clone()))
                .collect(),
        }
    }
}

impl Confinement for RunSandbox {
    fn confine(&self, mut job: Job, process: &PhaseProcess<'_>) -> Result<Job, String> {
        let limits = self.limits(process.phase, process.agent);
        let Ok(mechanism) = &self.mechanism else { return Ok(job) };
        if limits.profile == Profile::Off {
            return Ok(job);
        }
        let access = self.access(&job, process);
        if let Some(temporary) = &access.temporary {
            // What an earlier activation left is not this one's.
            empty_dir(temporary).map_err(|error| format!("cannot empty {temporary}: {error}"))?;
        }
        if *mechanism == Mechanism::Bubblewrap {
            self.guard.get_or_init(|| self.guarded.as_deref().and_then(GitGuard::new));
        }
        // Bubblewrap shows files that exist.
        cliq_fs::append_line(&process.signal_file, b"").map_err(|error| error.to_string())?;
        let policy = Policy::new(&limits, &self.base, &access, *mechanism);
        #[cfg(feature = "egress")]
        let policy = match &limits.network {
            Network::Hosts(hosts) => {
                let egress = self.proxies.egress(hosts, process);
                policy.with_egress(egress.map_err(|error| format!("cannot start the egress proxy: {error}"))?)
            }
            _ => policy,
        };
        let wrapper = Wrapper::new(self.wrapper.clone(), policy);
        if process.agent.is_some_and(|agent| agent.is_part_of_cliq) {
            let sandbox = serde_json::to_string(&limits.to_sandbox()).map_err(|error| error.to_string())?;
            job.env.insert(SANDBOX_VARIABLE.to_owned(), sandbox);
            job.env.extend(wrapper.variables().map(|(name, value)| (name.to_owned(), value)));
            return Ok(job);
        }
        let (program, mut arguments) = wrapper.command(&job.dir, self.path.as_deref())?;
        arguments.push(std::mem::replace(&mut job.program, program));
        arguments.append(&mut job.args);
        job.args = arguments;
        Ok(job)
    }

    fn sandbox(&self, phase: &Phase, agent: Option<&AgentCommand>) -> Sandbox {
        self.limits(phase, agent).to_sandbox()
    }

    fn mechanism(&self) -> Option<&'static str> {
        self.mechanism.as_ref().ok().map(|mechanism| mechanism.as_str())
    }

    fn warning(&self) -> Option<String> {
        let missing = self.mechanism.as_ref().err()?;
        Some(format!("processes of this run are not restricted: {missing} (`sandbox.missing` is `warn`)"))
    }
}

/// Makes an empty directory. One that is there is emptied: to make it anew takes several times as long.
fn empty_dir(dir: &Utf8Path) -> std::io::Result<()> {
    if !std::fs::symlink_metadata(dir).is_ok_and(|metadata| metadata.is_dir()) {
        // A link that a process put there is removed, not followed.
        let _ = std::fs::remove_file(dir);
        return std::fs::create_dir_all(dir);
    }
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let is_dir = entry.file_type()?.is_dir();
        if is_dir { std::fs::remove_dir_all(entry.path())? } else { std::fs::remove_file(entry.path())? }
    }
    Ok(())
}
