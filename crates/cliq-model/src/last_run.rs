//! Rule of resumptions: only the last run of a project can go on. Pure.
//!
//! A project has the files of one run. A later run has put those of an earlier one aside, so an earlier run can never go on, and its outcome stays.

use crate::run::Run;
use cliq_protocol::RunId;

/// Run whose journal is in the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedRun<'a> {
    /// The directory of the project is not on this machine.
    Elsewhere,
    /// The project has no journal.
    None,
    /// The journal is that of the run with this id.
    Id(&'a str),
}

/// Proof that a run is the last of its project. Only [`LastRun::check`] makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRun(());

/// Reason why a run cannot be resumed. Its outcome stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotLast {
    /// A later run works in the project or has worked there.
    Later(String),
    /// The files of the run are gone.
    RecordGone,
}

impl std::fmt::Display for NotLast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Later(run) => write!(
                f,
                "cannot resume the run: run {run} of the same project is later, and only the last run of a project can be resumed; its outcome stays. Start a new run with the same request"
            ),
            Self::RecordGone => f.write_str(
                "cannot resume the run: its files are gone from the project, and its outcome stays. Start a new run with the same request",
            ),
        }
    }
}

impl std::error::Error for NotLast {}

impl LastRun {
    /// Checks that a run is the last of its project. `recorded` is the run whose journal is in the project, `later` a run of the same
    /// project in the store that has not ended or has started after this one.
    ///
    /// # Errors
    /// Returns the later run, or that the files of the run are gone.
    pub fn check(run: &Run, recorded: RecordedRun<'_>, later: Option<&RunId>) -> Result<Self, NotLast> {
        match (recorded, later) {
            (RecordedRun::Id(id), _) if id == run.id.as_str() => {}
            // The journal is newer than the rows: a person may have started the run a moment ago.
            (RecordedRun::Id(id), _) if run.life.began => return Err(NotLast::Later(id.to_owned())),
            (RecordedRun::None, None) if run.life.began => return Err(NotLast::RecordGone),
            (RecordedRun::Id(_) | RecordedRun::None | RecordedRun::Elsewhere, _) => {}
        }
        match later {
            Some(later) => Err(NotLast::Later(later.to_string())),
            None => Ok(Self(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use cliq_protocol::{TeamName, Timestamp};

    use super::*;
    use crate::run::RunOrigin;

    fn run(began: bool) -> Run {
        let id = cliq_fs::new_run_id();
        let mut run = Run::new(
            id,
            TeamName::parse("@a/b").unwrap(),
            RunOrigin::Server,
            "/w".into(),
            Timestamp::UNIX_EPOCH,
        );
        run.life.began = began;
        run
    }

    #[test]
    fn only_the_last_run_of_a_project_can_be_resumed() {
        let (own, other) = (run(true), cliq_fs::new_run_id());
        let check =
            |recorded: RecordedRun<'_>, later: Option<&RunId>| LastRun::check(&own, recorded, later).err();
        assert_eq!(check(RecordedRun::Id(own.id.as_str()), None), None);
        assert_eq!(check(RecordedRun::Elsewhere, None), None);
        let later = Some(NotLast::Later(other.to_string()));
        assert_eq!(check(RecordedRun::Id(other.as_str()), None), later, "a person started it");
        assert_eq!(check(RecordedRun::Id(own.id.as_str()), Some(&other)), later, "it is queued");
        assert_eq!(check(RecordedRun::Elsewhere, Some(&other)), later, "it is in the store");
        assert_eq!(check(RecordedRun::None, None), Some(NotLast::RecordGone));
    }

    #[test]
    fn a_run_that_never_began_needs_no_journal() {
        let (own, other) = (run(false), cliq_fs::new_run_id());
        assert!(LastRun::check(&own, RecordedRun::None, None).is_ok());
        assert!(LastRun::check(&own, RecordedRun::Id("earlier"), None).is_ok());
        assert_eq!(
            LastRun::check(&own, RecordedRun::Id("x"), Some(&other)),
            Err(NotLast::Later(other.to_string()))
        );
    }

    #[test]
    fn the_reason_names_the_later_run() {
        let text = NotLast::Later("0190".into()).to_string();
        assert!(text.contains("run 0190") && text.contains("its outcome stays"), "{text}");
    }
}
