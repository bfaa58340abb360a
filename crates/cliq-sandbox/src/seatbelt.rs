//! Profile of macOS' Seatbelt for a policy: the text that `sandbox-exec -p` takes. The rule that matches last holds, so that rules of
//! nearer paths come later (docs/platforms.md).

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{Network, Profile};

use crate::policy::Policy;

/// Program that starts a command in a profile. Part of each macOS.
pub(crate) const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// Trees of macOS that the profile `strict` may read, beside the system programs of each system.
const SYSTEM_TREES: &[&str] = &[
    "/System",
    "/Library",
    "/private/etc",
    "/private/var/db/timezone",
    "/private/var/select",
    "/opt/homebrew",
];

/// Secrets in the home directory of macOS.
pub(crate) const HOME_SECRETS: &[&str] = &[
    "Library/Application Support/BraveSoftware",
    "Library/Application Support/Chromium",
    "Library/Application Support/Firefox",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Microsoft Edge",
    "Library/Containers",
    "Library/Cookies",
    "Library/Group Containers",
    "Library/Keychains",
    "Library/Mail",
    "Library/Messages",
    "Library/Safari",
    "Library/Thunderbird",
];

/// Directories that all programs of a user or of the system share for temporary files.
const SHARED_TEMPORARY: &[&str] = &["/private/tmp", "/private/var/tmp", "/private/var/folders"];

/// Links at the root of macOS: programs look for files by these names.
const ROOT_LINKS: &[&str] = &["/etc", "/tmp", "/var"];

/// Rules for each process: others that it starts are in the same sandbox, and it may ask the system about itself.
const PROCESS: &str = "\
(allow process-exec process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow file-map-executable)
(allow ipc-posix-sem)
(allow ipc-posix-shm-read-data (ipc-posix-name \"apple.shm.notification_center\"))
(allow mach-lookup
  (global-name \"com.apple.bsd.dirhelper\")
  (global-name \"com.apple.system.logger\")
  (global-name \"com.apple.system.notification_center\")
  (global-name \"com.apple.system.opendirectoryd.libinfo\")
  (global-name \"com.apple.system.opendirectoryd.membership\"))
";

/// Devices that each process may use.
const DEVICES: &str = "\
(allow pseudo-tty)
(allow file-read* file-write* file-ioctl
  (literal \"/dev/null\")
  (literal \"/dev/ptmx\")
  (literal \"/dev/tty\")
  (literal \"/dev/zero\")
  (regex #\"^/dev/ttys[0-9]+$\"))
(allow file-read*
  (literal \"/dev\")
  (literal \"/dev/random\")
  (literal \"/dev/urandom\")
  (subpath \"/dev/fd\"))
";

/// The whole network. Not among the services: that of the keychain.
const NETWORK: &str = "\
(allow system-socket)
(allow network* (local ip \"*:*\") (remote ip \"*:*\"))
(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))
(allow mach-lookup
  (global-name \"com.apple.SystemConfiguration.DNSConfiguration\")
  (global-name \"com.apple.SystemConfiguration.configd\")
  (global-name \"com.apple.networkd\")
  (global-name \"com.apple.ocspd\")
  (global-name \"com.apple.trustd.agent\"))
";

/// Access to a tree. In order of precedence for equal paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Access {
    Hidden,
    ReadOnly,
    Writable,
}

/// Returns the profile of a policy whose paths have their links resolved. `wrapper` is a file that may be read and executed.
pub(crate) fn profile(policy: &Policy, wrapper: &Utf8Path) -> String {
    let trees = trees(policy, wrapper);
    let rules = trees.iter().map(|(path, access)| {
        let filter = format!("(subpath {})", quoted(path));
        match access {
            Access::Hidden => format!("(deny file-read* file-write* {filter})\n"),
            Access::ReadOnly => format!("(deny file-write* {filter})\n(allow file-read* {filter})\n"),
            Access::Writable => format!("(allow file-read* file-write* {filter})\n"),
        }
    });
    [
        "(version 1)\n(deny default)\n".to_owned(),
        PROCESS.to_owned(),
        rules.collect(),
        list("allow file-read-metadata", &passages(&trees)),
        list("deny file-write-unlink", &anchors(&trees)),
        DEVICES.to_owned(),
        network(policy, &trees),
        // Nothing in a sandbox needs it, and `cliq confine` sees by it that it is in one.
        list("deny file-read* process-exec", &[PROGRAM.into()]),
    ]
    .concat()
}

/// Trees of a policy with their access, outer ones before inner ones; one entry for each path.
fn trees(policy: &Policy, wrapper: &Utf8Path) -> Vec<(Utf8PathBuf, Access)> {
    let mut all: Vec<(Utf8PathBuf, Access)> = Vec::new();
    let mut add = |paths: &[Utf8PathBuf], access: Access| {
        all.extend(paths.iter().map(|path| (path.clone(), access)));
    };
    let fixed = |paths: &[&str]| paths.iter().map(Utf8PathBuf::from).collect::<Vec<_>>();
    add(&policy.hidden, Access::Hidden);
    add(&policy.covered, Access::Hidden);
    if let Some(temporary) = &policy.temporary {
        add(&fixed(SHARED_TEMPORARY), Access::Hidden);
        add(std::slice::from_ref(temporary), Access::Writable);
    }
    if policy.profile == Profile::Strict {
        add(&fixed(SYSTEM_TREES), Access::ReadOnly);
    }
    add(&[wrapper.to_owned()], Access::ReadOnly);
    add(&policy.read, Access::ReadOnly);
    add(&policy.protected, Access::ReadOnly);
    add(&policy.write, Access::Writable);
    all.sort_by_key(|(path, access)| (path.components().count(), path.clone(), std::cmp::Reverse(*access)));
    all.dedup_by(|next, kept| next.0 == kept.0);
    all
}

/// Directories on the way to what may be read: their entries stay hidden, but programs find their way.
fn passages(trees: &[(Utf8PathBuf, Access)]) -> Vec<Utf8PathBuf> {
    let shown = trees.iter().filter(|(_, access)| *access != Access::Hidden);
    let mut all: Vec<Utf8PathBuf> = ROOT_LINKS.iter().map(Utf8PathBuf::from).collect();
    all.extend(shown.flat_map(|(path, _)| path.ancestors().skip(1).map(Utf8Path::to_owned)));
    all.sort();
    all.dedup();
    all
}

/// Directories that may not be moved, as what is protected in them would be at another path then.
fn anchors(trees: &[(Utf8PathBuf, Access)]) -> Vec<Utf8PathBuf> {
    let is_writable = |path: &Utf8Path| {
        let nearest = trees.iter().rev().find(|(tree, _)| path.starts_with(tree));
        nearest.is_some_and(|(_, access)| *access == Access::Writable)
    };
    let protected = trees.iter().filter(|(_, access)| *access != Access::Writable);
    let mut all: Vec<Utf8PathBuf> = protected
        .flat_map(|(path, _)| path.ancestors().skip(1))
        .filter(|path| is_writable(path))
        .map(Utf8Path::to_owned)
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Rules of the network. UNIX sockets in writable trees belong to the command itself; those of other programs are refused.
fn network(policy: &Policy, trees: &[(Utf8PathBuf, Access)]) -> String {
    let own = trees.iter().filter(|(_, access)| *access == Access::Writable).map(|(path, _)| {
        let path = quoted(path);
        format!(
            "(allow network-bind (local unix-socket (subpath {path})))\n\
             (allow network-outbound (remote unix-socket (subpath {path})))\n"
        )
    });
    let reached = match (&policy.network, &policy.egress) {
        (Network::All, _) => NETWORK.to_owned(),
        (Network::Hosts(_), Some(egress)) => format!(
            "(allow system-socket (socket-domain AF_INET))\n\
             (allow network-outbound (remote ip \"localhost:{}\"))\n",
            egress.port
        ),
        (Network::None | Network::Hosts(_), _) => String::new(),
    };
    format!("(allow system-socket (socket-domain AF_UNIX))\n{}{reached}", own.collect::<String>())
}

/// A rule for some paths; no text without any.
fn list(rule: &str, paths: &[Utf8PathBuf]) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let filters: Vec<String> = paths.iter().map(|path| format!("\n  (literal {})", quoted(path))).collect();
    format!("({rule}{})\n", filters.concat())
}

/// A path as a string of the language of profiles.
fn quoted(path: &Utf8Path) -> String {
    format!("\"{}\"", path.as_str().replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests;
