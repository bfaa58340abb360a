//! Command lines of the wrapper, and the variables by which processes of cliq hand a policy on.

use camino::{Utf8Path, Utf8PathBuf};

use cliq_protocol::Network;

use crate::policy::{Mechanism, Policy, resolve};
use crate::{bubblewrap, seatbelt, support};

/// Variable with the sandbox around a process of cliq, in JSON: what it starts is within it.
pub const SANDBOX_VARIABLE: &str = "CLIQ_SANDBOX";
/// Variable with the policy of the programs that a built-in agent starts, in JSON.
pub const POLICY_VARIABLE: &str = "CLIQ_SANDBOX_POLICY";
/// Variable with the program that puts the policy into force.
pub const PROGRAM_VARIABLE: &str = "CLIQ_SANDBOX_PROGRAM";

/// Wrapper around commands: `cliq confine POLICY COMMAND`, which bubblewrap or `sandbox-exec` starts if that is the mechanism.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapper {
    program: Utf8PathBuf,
    policy: Policy,
}

impl Wrapper {
    /// Makes a wrapper. `program` is cliq.
    #[must_use]
    pub fn new(program: Utf8PathBuf, policy: Policy) -> Self {
        Self { program, policy }
    }

    /// Returns the wrapper that the variables of a built-in agent describe; `None` without a policy.
    ///
    /// # Errors
    /// Returns an error if the policy is invalid, or the program is missing.
    pub fn of_variables(policy: Option<&str>, program: Option<&str>) -> Result<Option<Self>, String> {
        let Some(policy) = policy else { return Ok(None) };
        let policy = serde_json::from_str(policy).map_err(|error| format!("{POLICY_VARIABLE}: {error}"))?;
        let program = program.ok_or_else(|| format!("{PROGRAM_VARIABLE} is not set"))?;
        Ok(Some(Self::new(program.into(), policy)))
    }

    /// The same with paths that may be written, and with variables that are kept.
    #[must_use]
    pub fn with(
        mut self,
        write: impl IntoIterator<Item = Utf8PathBuf>,
        env: impl IntoIterator<Item = String>,
    ) -> Self {
        self.policy.write.extend(write);
        self.policy.env.extend(env);
        self
    }

    /// The same with the program of the wrapper as a file that may be read and executed.
    #[must_use]
    pub fn showing_its_program(mut self) -> Self {
        self.policy.read.push(self.program.clone());
        self
    }

    /// Program of the wrapper.
    #[must_use]
    pub fn program(&self) -> &Utf8Path {
        &self.program
    }

    /// Whether programs reach the network, or some hosts of it.
    #[must_use]
    pub fn has_network(&self) -> bool {
        match &self.policy.network {
            Network::All => true,
            Network::None => false,
            Network::Hosts(hosts) => !hosts.is_empty(),
        }
    }

    /// Variables for a built-in agent, by name.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, String); 2] {
        [(POLICY_VARIABLE, self.encoded()), (PROGRAM_VARIABLE, self.program.to_string())]
    }

    /// Returns the program and the arguments to put before a command with a working directory: `bwrap`, `sandbox-exec` or the wrapper. `path` is the value of `PATH`.
    ///
    /// # Errors
    /// Returns an error if `bwrap` is not there.
    pub fn command(&self, working: &Utf8Path, path: Option<&str>) -> Result<(String, Vec<String>), String> {
        let inner = ["confine".to_owned(), self.encoded()];
        match self.policy.mechanism {
            Mechanism::Landlock => Ok((self.program.to_string(), inner.into())),
            Mechanism::Bubblewrap => {
                let bwrap = support::find(path).ok_or("bubblewrap (`bwrap`) is not installed")?;
                let mut arguments = bubblewrap::arguments(&self.policy, working, &self.program);
                arguments.extend(["--".to_owned(), self.program.to_string()].into_iter().chain(inner));
                Ok((bwrap.into_string(), arguments))
            }
            Mechanism::Seatbelt => {
                let profile = seatbelt::profile(&self.policy.clone().resolved(), &resolve(&self.program));
                let before = ["-p".to_owned(), profile, self.program.to_string()];
                Ok((seatbelt::PROGRAM.to_owned(), before.into_iter().chain(inner).collect()))
            }
        }
    }

    fn encoded(&self) -> String {
        serde_json::to_string(&self.policy).unwrap_or_default()
    }
}
