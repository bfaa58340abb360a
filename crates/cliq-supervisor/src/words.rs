//! Words of agents at work: the last that each phase of a run has reported. They are not stored: what is not seen is gone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use cliq_fs::CliqDir;
use cliq_orchestrator::{PhaseStatus, RunView};
use cliq_project::internals::WordsTail;
use cliq_protocol::{PhaseName, RunId};
use tokio::time::Instant;

/// Minimum time between two looks at the words of a run.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of phases of a run whose words are read.
const PHASES: usize = 200;

/// Words of a phase at work.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Words {
    /// Run.
    pub run: RunId,
    /// Phase, or item of a phase.
    pub phase: PhaseName,
    /// Text in one line. Empty when the phase no longer works.
    pub text: Arc<str>,
    /// When it was read, in milliseconds since 1970.
    pub at_ms: i64,
}

/// Reader of the words of a run.
#[derive(Debug, Default)]
pub(crate) struct WordsReader {
    phases: BTreeMap<PhaseName, Spoken>,
    /// Time of the last look.
    last: Option<Instant>,
}

#[derive(Debug)]
struct Spoken {
    tail: WordsTail,
    text: Arc<str>,
}

impl WordsReader {
    /// Whether a look is due.
    pub(crate) fn is_due(&self) -> bool {
        self.last.is_none_or(|last| last.elapsed() >= PAUSE)
    }

    /// Time of the next look after a notification.
    pub(crate) fn next(&self) -> Instant {
        self.last.map_or_else(Instant::now, |last| last + PAUSE)
    }

    /// Returns the words that are new since the last look, and empty ones of phases that no longer work.
    pub(crate) fn read(&mut self, run: &RunId, workspace: &Utf8Path, view: &RunView) -> Vec<Words> {
        self.last = Some(Instant::now());
        let works = |status: PhaseStatus| status == PhaseStatus::Running;
        let running: Vec<&PhaseName> = view
            .phases
            .iter()
            .filter(|phase| works(phase.status))
            .map(|phase| &phase.name)
            .take(PHASES)
            .collect();
        let mut new = Vec::new();
        let words = |phase: &PhaseName, text: &Arc<str>| Words {
            run: run.clone(),
            phase: phase.clone(),
            text: Arc::clone(text),
            at_ms: cliq_fs::now_millis(),
        };
        self.phases.retain(|phase, _| {
            let stays = running.contains(&phase);
            if !stays {
                new.push(words(phase, &Arc::from("")));
            }
            stays
        });
        if running.is_empty() {
            return new;
        }
        let Ok(dir) = CliqDir::open(workspace) else { return new };
        for phase in running {
            let spoken = self.phases.entry(phase.clone()).or_insert_with(|| Spoken {
                tail: WordsTail::new(&dir.signal_file(phase)),
                text: Arc::from(""),
            });
            let read = spoken.tail.read().unwrap_or_else(|error| {
                tracing::debug!(%run, %phase, %error, "cannot read the words of a phase");
                None
            });
            let Some(text) = read.filter(|text| **text != *spoken.text) else { continue };
            spoken.text = text.into();
            new.push(words(phase, &spoken.text));
        }
        new
    }
}
