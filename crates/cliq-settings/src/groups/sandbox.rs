//! Settings `sandbox.*`.

use cliq_protocol::{Network, Profile};

use super::{choice, group};

group! {
    /// Keys of the sandbox itself. [`Settings::sandboxes`] reads them file by file.
    Shared keys PROFILE {
        "sandbox", Option<Profile>,
            "the profile of agents and commands, if nothing else is to be set; the same as sandbox.profile";
        "sandbox.profile", Profile = "off",
            "the profile of agents and commands: off, workspace or strict; teams and projects can only make it stricter";
        "sandbox.read", Vec<String>, "paths that sandboxed processes may read too";
        "sandbox.write", Vec<String>, "paths that sandboxed processes may read and write too";
        "sandbox.network", Network = "all",
            "network access of sandboxed processes: all, none, or a list of hosts";
        "sandbox.env", Vec<String>, "environment variables that sandboxed processes keep";
    }
}

group! {
    /// Settings of the enforcement of sandboxes.
    Shared struct EnforcementSettings {
        @Person "sandbox.mechanism", mechanism: MechanismChoice = "auto",
            "what enforces a sandbox: bubblewrap, landlock, seatbelt (macOS), or auto for what works best; projects cannot set it";
        @Person "sandbox.missing", missing: MissingSandbox = "refuse",
            "whether a run is refused, or warns, if the system cannot enforce its sandbox; projects cannot set it";
    }
}

choice! {
    /// Mechanism that enforces a sandbox.
    enum MechanismChoice {
        /// Bubblewrap if it works, otherwise Landlock; on macOS Seatbelt.
        Auto = "auto",
        /// Bubblewrap.
        Bubblewrap = "bubblewrap",
        /// Landlock.
        Landlock = "landlock",
        /// Seatbelt.
        Seatbelt = "seatbelt",
    }
}

choice! {
    /// Reaction to a sandbox that the system cannot enforce.
    enum MissingSandbox {
        /// The run is refused.
        Refuse = "refuse",
        /// The run starts with a warning.
        Warn = "warn",
    }
}
