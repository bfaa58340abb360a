//! Policy of one process: what the wrapper puts into force.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{Network, Profile};
use serde::{Deserialize, Serialize};

use crate::limits::{Base, Limits};
use crate::{seatbelt, secrets};

/// Mechanism that enforces a policy. On Linux, Landlock and seccomp are in force in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mechanism {
    /// Own mount, process, IPC and network namespaces, made by the program `bwrap`.
    Bubblewrap,
    /// Landlock and seccomp alone.
    Landlock,
    /// Seatbelt of macOS, by the program `sandbox-exec`.
    Seatbelt,
}

impl Mechanism {
    /// Name of the mechanism.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
            Self::Seatbelt => "seatbelt",
        }
    }
}

/// Files that one process needs, or must not see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Paths that it writes.
    pub write: Vec<Utf8PathBuf>,
    /// Paths that it reads.
    pub read: Vec<Utf8PathBuf>,
    /// Paths inside writable trees that it may only read.
    pub protected: Vec<Utf8PathBuf>,
    /// Paths that it may not read.
    pub hidden: Vec<Utf8PathBuf>,
    /// Directory of its own for temporary files.
    pub temporary: Option<Utf8PathBuf>,
    /// Environment variables that it keeps.
    pub env: Vec<String>,
}

/// Policy of one process. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Profile. Not `off`.
    pub profile: Profile,
    /// Mechanism.
    pub mechanism: Mechanism,
    /// Home directory of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<Utf8PathBuf>,
    /// Trees and files that may be read and written.
    pub write: Vec<Utf8PathBuf>,
    /// Trees and files that may be read.
    pub read: Vec<Utf8PathBuf>,
    /// Trees and files that may be read and not written, inside of `write`.
    pub protected: Vec<Utf8PathBuf>,
    /// Trees and files that may not be read, unless an entry of `read` or `write` is inside. Directories above them are no links.
    pub hidden: Vec<Utf8PathBuf>,
    /// The same inside of `write`, where Landlock alone cannot hide them.
    pub covered: Vec<Utf8PathBuf>,
    /// Directory for temporary files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary: Option<Utf8PathBuf>,
    /// Network access.
    pub network: Network,
    /// Way to the egress proxy, for a list of hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
    /// Environment variables that are kept.
    pub env: Vec<String>,
}

/// Way to the egress proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Egress {
    /// Port on the loopback address, by which processes reach it. In a network namespace of its own a forwarder listens there.
    pub port: u16,
    /// UNIX socket of the proxy, for the forwarder.
    pub socket: Utf8PathBuf,
}

impl Policy {
    /// Makes the policy of a process. Entries of `read` and `write` that contain a secret do not show it.
    #[must_use]
    pub fn new(limits: &Limits, base: &Base, access: &Access, mechanism: Mechanism) -> Self {
        let mut read = access.read.clone();
        if limits.profile == Profile::Strict {
            read.extend(secrets::SYSTEM_PROGRAMS.iter().map(Utf8PathBuf::from));
        } else {
            read.push("/".into());
        }
        read.extend(limits.read.iter().cloned());
        let mut write = vec![base.workspace.clone()];
        write.extend(limits.write.iter().chain(&access.write).cloned());
        let mut env: Vec<String> = secrets::VARIABLES.iter().map(|name| (*name).to_owned()).collect();
        env.extend(limits.env.iter().chain(&access.env).cloned());
        Self {
            profile: limits.profile,
            mechanism,
            home: base.home.clone(),
            write,
            read,
            protected: access.protected.clone(),
            hidden: base.secrets.clone(),
            covered: access.hidden.clone(),
            temporary: access.temporary.clone(),
            network: limits.network.clone(),
            egress: None,
            env,
        }
    }

    /// The same with a way to the egress proxy.
    #[must_use]
    pub fn with_egress(mut self, egress: Egress) -> Self {
        self.read.push(egress.socket.clone());
        self.egress = Some(egress);
        self
    }

    /// The same with the links in all paths resolved, as they are now. Of a path that is not there, those of the directories above.
    pub(crate) fn resolved(mut self) -> Self {
        for list in
            [&mut self.write, &mut self.read, &mut self.protected, &mut self.hidden, &mut self.covered]
        {
            for path in list {
                *path = resolve(path);
            }
        }
        self.temporary = self.temporary.as_deref().map(resolve);
        self
    }

    /// Whether a path is hidden: an entry that hides it is nearer to it than one that shows it.
    #[must_use]
    pub fn hides(&self, path: &Utf8Path) -> bool {
        let nearest = |list: &[Utf8PathBuf]| {
            list.iter().filter(|entry| path.starts_with(entry)).map(|entry| entry.components().count()).max()
        };
        let shown = nearest(&self.read).max(nearest(&self.write));
        nearest(&self.hidden).max(nearest(&self.covered)) > shown
    }
}

/// Resolves the links in a path; of one that is not there, those of the directories above.
pub(crate) fn resolve(path: &Utf8Path) -> Utf8PathBuf {
    let found = path.ancestors().find_map(|dir| Some((dir, dir.canonicalize_utf8().ok()?)));
    match found.and_then(|(dir, real)| Some((real, path.strip_prefix(dir).ok()?))) {
        Some((real, rest)) if rest.as_str().is_empty() => real,
        Some((real, rest)) => real.join(rest),
        None => path.to_owned(),
    }
}

/// Secrets of a user and of the system, with the cliq home. Leaves out files of the system that this user cannot read anyway.
#[must_use]
pub fn secret_paths(home: Option<&Utf8Path>, cliq_home: Option<&Utf8Path>) -> Vec<Utf8PathBuf> {
    let of_macos: &[&str] = if cfg!(target_os = "macos") { seatbelt::HOME_SECRETS } else { &[] };
    let of_user =
        home.into_iter().flat_map(|home| secrets::HOME.iter().chain(of_macos).map(|name| home.join(name)));
    let is_readable = |path: &&&str| std::fs::File::open(path).is_ok();
    let of_system = secrets::SYSTEM.iter().filter(is_readable).map(Utf8PathBuf::from);
    of_user.chain(of_system).chain(cliq_home.map(Utf8Path::to_owned)).collect()
}
