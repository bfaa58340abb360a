//! Data that a run takes along into a container: variables, a person's settings, directories.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{SharedPath, read_limited};
use cliq_protocol::PhaseKind;
use cliq_settings::{AgentSettings, GdriveSettings, Key, Settings};
use cliq_workflow::Phase;

use crate::host::GUARD_INPUTS;
use crate::{Host, Project, ProjectError};

/// Variables that a run gets beside those of its agents.
const ALWAYS: &[&str] = &[
    GUARD_INPUTS,
    "CLIQ_LOG",
    "TZ",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
];
/// The most bytes of a settings file.
const SETTINGS_LIMIT: u64 = 16 << 20;

impl Project {
    /// The variables of this host's environment that a run of the assembled team may need: those that its agents declare, those that
    /// built-in agents look at, proxies, exports of traces. Nothing else leaves the host.
    ///
    /// # Errors
    /// No team is assembled, or it has errors.
    #[doc(hidden)]
    pub fn variables_for_container(&self) -> Result<BTreeMap<String, String>, ProjectError> {
        let mut names: BTreeSet<String> =
            cliq_agents::variables().iter().map(|name| (*name).to_owned()).collect();
        names.extend(ALWAYS.iter().map(|name| (*name).to_owned()));
        self.collect_variables(&mut names)?;
        let environment = &self.host().environment;
        names.extend(environment.names().filter(|name| name.starts_with("OTEL_")).map(str::to_owned));
        let value = |name: String| Some((name.clone(), environment.get(&name)?.to_owned()));
        Ok(names.into_iter().filter_map(value).collect())
    }

    fn collect_variables(&self, names: &mut BTreeSet<String>) -> Result<(), ProjectError> {
        let workflow = self.workflow()?;
        names.extend(workflow.agents.values().flat_map(|agent| agent.env.iter().cloned()));
        names.extend(self.host().variables_of_installed_agents());
        for (_, phase) in workflow.phases().filter(|(_, phase)| phase.kind == PhaseKind::Team) {
            let inner = self.team_phase(&phase.name);
            if inner.has_team() {
                inner.collect_variables(names)?;
            }
        }
        Ok(())
    }

    /// Whether the team, or one within it, asks people.
    ///
    /// # Errors
    /// No team is assembled, or it has errors.
    #[doc(hidden)]
    pub fn asks_people(&self) -> Result<bool, ProjectError> {
        let settings = self.settings()?;
        for (_, phase) in self.workflow()?.phases() {
            let is_asking = phase.kind == PhaseKind::HumanGate
                || phase.agent.as_deref() == Some("hug")
                || self.may_ask(phase, &settings);
            let inner = self.team_phase(&phase.name);
            if is_asking || (phase.kind == PhaseKind::Team && inner.has_team() && inner.asks_people()?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the agent of a phase asks people about permissions.
    fn may_ask(&self, phase: &Phase, settings: &Settings) -> bool {
        let of_agent = || {
            let default = self.host().default_agent(settings);
            AgentSettings::read(settings, phase.agent.as_ref().or(default.as_ref())?).permissions
        };
        phase.permissions.clone().or_else(of_agent).is_some_and(|permissions| permissions.may_ask())
    }

    /// The directory with the links of reviews, which is made where it is missing.
    #[doc(hidden)]
    #[must_use]
    pub fn review_links(&self) -> Option<SharedPath> {
        let path = self.host().home.as_ref()?.join("reviews");
        // Made by who needs it first; in the container that would be too late.
        let _ = std::fs::create_dir_all(&path);
        Some(SharedPath { path, writable: true })
    }

    /// Returns the paths that a run needs besides its workspace: installed teams and agents, credential files that a person's own
    /// settings name, and the repository of a worktree. Nothing that an agent wrote determines a path.
    #[doc(hidden)]
    #[must_use]
    pub fn paths_for_container(&self) -> Vec<SharedPath> {
        let mut paths = Vec::new();
        let mut add = |path: Utf8PathBuf, writable: bool| {
            if path.exists() {
                paths.push(SharedPath { path, writable });
            }
        };
        if let Some(home) = &self.host().home {
            add(home.join("teams"), false);
            add(home.join("agents"), false);
            add(home.join("google-grant.json"), true);
        }
        let own = Settings::load(self.host().home.as_deref(), None).unwrap_or_default();
        if let Some(file) = GdriveSettings::read(&own).credentials_file {
            add(Utf8PathBuf::from(file), false);
        }
        if let Some(repository) = repository_of_worktree(self.dir().workspace()) {
            add(repository, true);
        }
        paths
    }
}

impl Host {
    /// A person's settings for a run in a container: without what is about this machine's database, server and containers. `None` if
    /// there are none.
    #[doc(hidden)]
    #[must_use]
    pub fn settings_for_container(&self) -> Option<String> {
        let bytes = read_limited(&self.home.as_ref()?.join("settings.json"), SETTINGS_LIMIT).ok()?;
        let mut settings: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&bytes).ok()?;
        settings.retain(|group, _| !Key::is_group_of_machine(group));
        serde_json::to_string(&settings).ok()
    }
}

/// The repository of a worktree of git: its `.git` is a file that names a directory below `worktrees` of that repository, where a file names the worktree.
///
/// An agent can write the first, and would have any directory mounted; it cannot write the second.
fn repository_of_worktree(workspace: &Utf8Path) -> Option<Utf8PathBuf> {
    let read = |file: &Utf8Path| String::from_utf8(read_limited(file, 4096).ok()?).ok();
    let file = workspace.join(".git");
    let dir = workspace.join(read(&file)?.strip_prefix("gitdir:")?.trim());
    let dir = dir.canonicalize_utf8().ok()?;
    let back = dir.join(read(&dir.join("gitdir"))?.trim()).canonicalize_utf8().ok()?;
    if back != file.canonicalize_utf8().ok()? {
        return None;
    }
    let worktrees = dir.parent()?;
    (worktrees.file_name() == Some("worktrees")).then(|| worktrees.parent().map(Utf8Path::to_owned))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_of_a_worktree() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = Utf8Path::from_path(dir.path()).expect("UTF-8");
        assert_eq!(repository_of_worktree(dir), None);
        let dir = dir.canonicalize_utf8().expect("a path");
        let (workspace, repository) = (dir.join("work"), dir.join("repo/.git"));
        std::fs::create_dir_all(&workspace).expect("made");
        for place in ["worktrees/x", "modules/x"] {
            std::fs::create_dir_all(repository.join(place)).expect("made");
            let named = format!("gitdir: {}\n", repository.join(place));
            std::fs::write(workspace.join(".git"), named).expect("written");
            assert_eq!(
                repository_of_worktree(&workspace),
                None,
                "nobody says that it is a worktree of that repository"
            );
            let back = format!("{}\n", workspace.join(".git"));
            std::fs::write(repository.join(place).join("gitdir"), back).expect("written");
            let expected = (place == "worktrees/x").then(|| repository.clone());
            assert_eq!(repository_of_worktree(&workspace), expected);
        }
    }
}
