//! Settings of runs.

use std::time::Duration;

use super::{choice, group};

group! {
    /// Settings of runs: agent, launcher, limits and times.
    Shared struct RunSettings {
        "default_agent", default_agent: Option<String>,
            "the agent for phases that name none; without it, the first model agent that can be used";
        "launcher", launcher: LauncherChoice = "auto",
            "where phases run: panes of tmux, plain child processes, or tmux where it is installed and a person looks on";
        "tmux.keep_session", keep_session: bool = "false",
            "whether panes stay after a run, for people to read; `cliq clean` and the next run close them";
        "max_parallel", max_parallel: Option<usize>,
            "how many phases may work at the same time; without it, as many as can";
        "durability", durability: DurabilityChoice = "process",
            "what the record of a run is safe against: the death of the orchestrator, or a power failure too, which costs some milliseconds per phase";
        "max_file_bytes", max_file_bytes: usize = "1073741824",
            "the most bytes of a file that an agent wrote, such as a handoff; larger files are refused";
        "phase_timeout", phase_timeout: Duration = "20m", "how long a phase may take";
        "gate_agent_timeout", gate_agent_timeout: Duration = "15m", "how long the agent of a gate may take";
        "poll_interval", poll_interval: Duration = "3s",
            "how often signal files are looked at where nothing tells of changes";
    }
}

choice! {
    /// Choice of the launcher for the processes of a run.
    enum LauncherChoice {
        /// Panes of tmux if it is installed and a person watches, otherwise plain child processes.
        Auto = "auto",
        /// Plain child processes.
        Process = "process",
        /// Panes of tmux.
        Tmux = "tmux",
    }
}

choice! {
    /// Durability of the record of a run.
    enum DurabilityChoice {
        /// The record survives the death of the orchestrator.
        Process = "process",
        /// The record survives a power failure.
        Power = "power",
    }
}
