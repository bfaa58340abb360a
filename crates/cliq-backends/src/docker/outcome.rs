//! End of a container.

/// State of a container as reported by the engine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ContainerFacts {
    /// Whether it runs.
    pub is_running: bool,
    /// Whether it has begun.
    pub has_begun: bool,
    /// Whether the system ended a process of it due to a lack of memory.
    pub out_of_memory: bool,
    /// The exit status of its first process.
    pub exit_code: i64,
    /// Reason why it could not begin.
    pub error: String,
}

/// End of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub(super) enum ContainerEnd {
    /// The first process exited: the process of the run.
    Exited {
        /// Exit status.
        code: u8,
        /// Whether another process was killed: out of memory.
        out_of_memory: bool,
    },
    /// The run was killed: out of memory.
    OutOfMemory,
    /// The run was ended by a signal: by a person, by the engine as it stopped, or by the system.
    Killed {
        /// The number of the signal.
        signal: u8,
    },
    /// The engine could not begin it.
    NotBegun {
        /// Message of the engine.
        why: String,
    },
    /// Another has removed it.
    Removed,
}

impl ContainerEnd {
    /// The end that the facts show; `None` if it runs.
    #[must_use]
    pub(super) fn of(facts: &ContainerFacts) -> Option<Self> {
        if facts.is_running {
            return None;
        }
        if !facts.has_begun || !facts.error.is_empty() {
            return Some(Self::NotBegun { why: facts.error.clone() });
        }
        Some(match u8::try_from(facts.exit_code).unwrap_or(1) {
            137 if facts.out_of_memory => Self::OutOfMemory,
            // SIGINT and SIGTERM are those by which a run is cancelled: it exits with 130 by itself then.
            code @ (129 | 131 | 134 | 137 | 139 | 143) => Self::Killed { signal: code - 128 },
            code => Self::Exited { code, out_of_memory: facts.out_of_memory },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(exit_code: i64) -> ContainerFacts {
        ContainerFacts { has_begun: true, exit_code, ..ContainerFacts::default() }
    }

    #[test]
    fn ends() {
        let exited = |code| Some(ContainerEnd::Exited { code, out_of_memory: false });
        for code in [0, 1, 2, 3, 4, 130] {
            assert_eq!(ContainerEnd::of(&facts(code.into())), exited(code));
        }
        assert_eq!(ContainerEnd::of(&facts(137)), Some(ContainerEnd::Killed { signal: 9 }));
        assert_eq!(ContainerEnd::of(&facts(143)), Some(ContainerEnd::Killed { signal: 15 }));
        let oom = ContainerFacts { out_of_memory: true, ..facts(137) };
        assert_eq!(ContainerEnd::of(&oom), Some(ContainerEnd::OutOfMemory));
        let inner = ContainerFacts { out_of_memory: true, ..facts(3) };
        assert_eq!(ContainerEnd::of(&inner), Some(ContainerEnd::Exited { code: 3, out_of_memory: true }));
        let broken = ContainerFacts { error: "no such file".into(), ..facts(127) };
        assert_eq!(ContainerEnd::of(&broken), Some(ContainerEnd::NotBegun { why: "no such file".into() }));
        assert_eq!(ContainerEnd::of(&ContainerFacts { is_running: true, ..facts(0) }), None);
    }
}
