//! Team of a run as it was when the run started, kept beside the run's record in `run_team.json`.

use std::collections::BTreeMap;

use camino::Utf8Path;
use cliq_fs::{CliqDir, FsError, read_if_exists, write_atomic};
use cliq_protocol::RunId;
use cliq_workflow::{EntryFile, TeamFiles, TeamTexts, ValidatedWorkflow};
use serde::{Deserialize, Serialize};

use crate::Project;
use crate::history::recorded_run_id;

/// Name of the file in `.cliq`, and in the history of an earlier run.
const FILE: &str = "run_team.json";
/// Maximum size in bytes.
const LIMIT: u64 = 64 << 20;

/// Team of a run as it was when the run started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTeam {
    /// Version of the format, 1.
    version: u32,
    /// Id of the run.
    run_id: RunId,
    /// Text of team.yml.
    team: String,
    /// Texts of the roles by name.
    roles: BTreeMap<String, String>,
    /// Names of the agents that were installed outside the team.
    installed_agents: Vec<String>,
}

impl RunTeam {
    /// Returns the team of a run that has started, from the texts that its workflow was checked from.
    pub(crate) fn new(run_id: &RunId, texts: &TeamTexts) -> Self {
        Self {
            version: 1,
            run_id: run_id.clone(),
            team: texts.text.clone(),
            roles: texts.roles.clone(),
            installed_agents: texts.installed_agents.clone(),
        }
    }

    /// Writes the team beside the record of the run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, dir: &CliqDir) -> Result<(), FsError> {
        write_atomic(&dir.root().join(FILE), &serde_json::to_vec(self).unwrap_or_default())
    }

    fn read(place: &Utf8Path, run_id: &RunId) -> Option<Self> {
        let bytes = read_if_exists(&place.join(FILE), LIMIT).ok().flatten()?;
        let read = serde_json::from_slice::<Self>(&bytes).ok()?;
        (read.version == 1 && read.run_id == *run_id).then_some(read)
    }

    /// Text of team.yml.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.team
    }

    /// Texts of the roles by name.
    #[must_use]
    pub fn roles(&self) -> &BTreeMap<String, String> {
        &self.roles
    }

    /// Returns the workflow, or `None` if this version of cliq no longer accepts the team.
    #[must_use]
    pub fn workflow(&self) -> Option<ValidatedWorkflow> {
        cliq_workflow::check(&self.team, self).workflow
    }
}

impl TeamFiles for RunTeam {
    fn has_role(&self, name: &str) -> bool {
        self.roles.contains_key(name)
    }
    fn role_names(&self) -> Vec<String> {
        self.roles.keys().cloned().collect()
    }
    fn role_texts(&self) -> Vec<String> {
        self.roles.values().cloned().collect()
    }
    fn entry(&self, _: &Utf8Path) -> EntryFile {
        EntryFile::Unknown
    }
    fn installed_agents(&self) -> Vec<String> {
        self.installed_agents.clone()
    }
}

impl Project {
    /// Returns the team of a run as it was when the run started. Returns `None` if it was not kept: the run started before cliq kept
    /// teams, or its record is gone.
    #[must_use]
    pub fn team_of_run(&self, run_id: &RunId) -> Option<RunTeam> {
        if recorded_run_id(self.dir().workspace()).as_ref() == Some(run_id) {
            return RunTeam::read(self.dir().root(), run_id);
        }
        RunTeam::read(&self.dir().history().join(run_id.as_str()), run_id)
    }
}

#[cfg(test)]
mod tests {
    use cliq_settings::Environment;

    use super::*;
    use crate::Host;

    #[test]
    fn kept_team_is_the_one_that_the_plan_was_made_from() {
        let temp = tempfile::tempdir().unwrap();
        let workspace = Utf8Path::from_path(temp.path()).unwrap();
        let project =
            Project::init_for_run(workspace, Host::new(Environment::default(), "/bin/false".into())).unwrap();
        let dir = project.dir();
        let team =
            "name: \"@local/kept\"\nphases:\n- {name: a, type: exec, commands: [{name: t, run: 'true'}]}\n";
        std::fs::write(dir.team_file(), team).unwrap();
        std::fs::create_dir_all(dir.root().join("roles")).unwrap();
        std::fs::write(dir.root().join("roles/a.md"), "Be brief.\n").unwrap();
        let workflow = project.workflow().unwrap();
        std::fs::write(dir.team_file(), "name: \"@local/other\"\n").unwrap();
        let [id, other] = ["r1", "r2"].map(|id| RunId::parse(id).unwrap());
        RunTeam::new(&id, &workflow.texts).write(dir).unwrap();
        let kept = RunTeam::read(dir.root(), &id).expect("a kept team");
        assert_eq!(kept.text(), team);
        assert_eq!(kept.roles()["a"], "Be brief.\n");
        assert_eq!(kept.workflow().expect("accepted").texts, workflow.texts);
        assert!(RunTeam::read(dir.root(), &other).is_none());
    }
}
