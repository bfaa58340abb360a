//! Arguments of the `cliq run` that is the process of a run. What the run does is in its [`RunSpec`], which the process reads from its
//! standard input.

#[cfg(doc)]
use cliq_project::RunSpec;
use cliq_project::RunStart;
use cliq_protocol::RunId;

/// Behaviour of the process of a run, beside the description of the run.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RunMode {
    /// Whether the run ends its process while it only waits for people.
    pub parks: bool,
    /// Name of this cliq if another agent delegated the run.
    pub instance_id: Option<String>,
}

impl RunMode {
    /// Sets whether the run ends its process while it only waits for people. Resuming it continues from there.
    #[must_use]
    pub fn with_parking(mut self, parks: bool) -> Self {
        self.parks = parks;
        self
    }

    /// Sets the name of this cliq for a run that another agent delegated.
    #[must_use]
    pub fn with_instance_id(mut self, instance_id: Option<String>) -> Self {
        self.instance_id = instance_id;
        self
    }

    /// Returns the arguments of a `cliq run` that works without a terminal and reads its description from standard input.
    pub(crate) fn arguments(&self, run_id: &RunId, start: &RunStart) -> Vec<String> {
        let mut arguments = match start {
            RunStart::Fresh => words(&["--force", "--run-id", run_id.as_str()]),
            RunStart::Changed => words(&["--changed", "--run-id", run_id.as_str()]),
            RunStart::Resume { from: None } => words(&["--resume"]),
            RunStart::Resume { from: Some(from) } => words(&["--from", from]),
        };
        arguments.extend(words(&["--spec", "-"]));
        arguments.extend(self.parks.then(|| "--park".to_owned()));
        arguments.extend(self.instance_id.iter().flat_map(|name| ["--a2a-events".to_owned(), name.clone()]));
        arguments
    }
}

pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
