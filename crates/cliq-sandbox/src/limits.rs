//! Limits of a process: paths, network and variables. Combining two never allows what one of them refuses.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{Network, Profile, Sandbox};

/// Directories by which the paths of a [`Sandbox`] are resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Workspace of the run. Relative paths are below it.
    pub workspace: Utf8PathBuf,
    /// Home directory of the user.
    pub home: Option<Utf8PathBuf>,
    /// Paths that nothing may read unless it names them.
    pub secrets: Vec<Utf8PathBuf>,
}

impl Base {
    /// Resolves a path of `read` or `write`: absolute, below `~/`, or relative to the workspace. `.` and `..` are removed.
    #[must_use]
    pub fn resolve(&self, path: &str) -> Utf8PathBuf {
        let full = match (path.strip_prefix("~/").or((path == "~").then_some("")), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.workspace.join(path),
        };
        normalize(&full)
    }

    /// Whether a path is a secret, or inside one.
    fn is_secret(&self, path: &Utf8Path) -> bool {
        self.secrets.iter().any(|secret| path.starts_with(secret))
    }

    /// Intersection of two sets of trees. A tree that contains a secret does not name it.
    fn common(&self, a: &[Utf8PathBuf], b: &[Utf8PathBuf]) -> Vec<Utf8PathBuf> {
        let inside = |path: &Utf8Path, trees: &[Utf8PathBuf]| {
            let is_secret = self.is_secret(path);
            trees.iter().any(|tree| path.starts_with(tree) && (!is_secret || self.is_secret(tree)))
        };
        let of_a = a.iter().filter(|path| inside(path, b));
        let mut paths: Vec<Utf8PathBuf> =
            of_a.chain(b.iter().filter(|path| inside(path, a))).cloned().collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

/// Removes `.` and `..` from an absolute path without looking at the file system.
#[must_use]
pub fn normalize(path: &Utf8Path) -> Utf8PathBuf {
    let mut normal = Utf8PathBuf::from("/");
    for part in path.components() {
        match part {
            camino::Utf8Component::ParentDir => {
                normal.pop();
            }
            camino::Utf8Component::Normal(name) => normal.push(name),
            _ => {}
        }
    }
    normal
}

/// What a sandbox allows beyond its profile, with resolved paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Profile.
    pub profile: Profile,
    /// Paths that may be read.
    pub read: Vec<Utf8PathBuf>,
    /// Paths that may be read and written.
    pub write: Vec<Utf8PathBuf>,
    /// Network access.
    pub network: Network,
    /// Environment variables that are kept.
    pub env: Vec<String>,
}

impl Limits {
    /// Resolves the paths of a sandbox.
    #[must_use]
    pub fn new(sandbox: &Sandbox, base: &Base) -> Self {
        let paths = |list: &[String]| list.iter().map(|path| base.resolve(path)).collect();
        Self {
            profile: sandbox.profile,
            read: paths(&sandbox.read),
            write: paths(&sandbox.write),
            network: sandbox.network.clone(),
            env: sandbox.env.clone(),
        }
    }

    /// Returns the sandbox with these limits.
    #[must_use]
    pub fn to_sandbox(&self) -> Sandbox {
        let paths = |list: &[Utf8PathBuf]| list.iter().map(ToString::to_string).collect();
        Sandbox {
            profile: self.profile,
            read: paths(&self.read),
            write: paths(&self.write),
            network: self.network.clone(),
            env: self.env.clone(),
        }
    }

    /// Returns what both allow.
    #[must_use]
    pub fn within(&self, other: &Self, base: &Base) -> Self {
        let (lax, strict) = if self.profile <= other.profile { (self, other) } else { (other, self) };
        if lax.profile == Profile::Off {
            return strict.clone();
        }
        let read = if lax.profile == strict.profile {
            base.common(&readable(lax), &readable(strict))
        } else {
            // The laxer profile reads all but secrets.
            let (secret, plain): (Vec<_>, Vec<_>) =
                readable(strict).into_iter().partition(|path| base.is_secret(path));
            plain.into_iter().chain(base.common(&secret, &readable(lax))).collect()
        };
        Self {
            profile: strict.profile,
            read,
            write: base.common(&lax.write, &strict.write),
            network: lax.network.within(&strict.network),
            env: strict.env.iter().filter(|name| lax.env.contains(name)).cloned().collect(),
        }
    }

    /// Whether a file may be read because of the profile or of the lists. Inside the workspace everything may.
    #[must_use]
    pub fn may_read(&self, path: &Utf8Path, base: &Base, programs: &[Utf8PathBuf]) -> bool {
        let named = readable(self);
        match self.profile {
            Profile::Off => true,
            // An entry that contains a secret does not name it.
            _ if base.is_secret(path) => {
                named.iter().any(|entry| base.is_secret(entry) && path.starts_with(entry))
            }
            Profile::Workspace => true,
            Profile::Strict => {
                let readable = named.iter().chain(programs).chain([&base.workspace]);
                readable.into_iter().any(|entry| path.starts_with(entry))
            }
        }
    }

    /// Whether a file may be written.
    #[must_use]
    pub fn may_write(&self, path: &Utf8Path, base: &Base) -> bool {
        self.profile == Profile::Off
            || self.may_read(path, base, &[])
                && self.write.iter().chain([&base.workspace]).any(|entry| path.starts_with(entry))
    }
}

/// Paths that the lists make readable: those that may be written are among them.
fn readable(limits: &Limits) -> Vec<Utf8PathBuf> {
    limits.read.iter().chain(&limits.write).cloned().collect()
}

#[cfg(test)]
mod tests {
    use cliq_protocol::HostPattern;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn base() -> Base {
        Base {
            workspace: "/w".into(),
            home: Some("/h".into()),
            secrets: vec!["/h/.ssh".into(), "/h/a/key".into()],
        }
    }

    fn path() -> impl Strategy<Value = String> {
        let part = prop_oneof![Just("h"), Just("w"), Just(".ssh"), Just("a"), Just("key"), Just("..")];
        (any::<bool>(), vec(part, 0..4))
            .prop_map(|(home, parts)| format!("{}{}", if home { "~/" } else { "/" }, parts.join("/")))
    }

    fn network() -> impl Strategy<Value = Network> {
        let host = prop_oneof![Just("a.com"), Just("*.a.com"), Just("*.b.a.com"), Just("c.b.a.com")];
        prop_oneof![
            Just(Network::All),
            Just(Network::None),
            vec(host, 1..3).prop_map(|hosts| {
                Network::Hosts(
                    hosts.into_iter().map(|host| HostPattern::parse(host).expect("valid")).collect(),
                )
            }),
        ]
    }

    fn sandbox() -> impl Strategy<Value = Sandbox> {
        let env = vec(prop_oneof![Just("A".to_owned()), Just("B".to_owned())], 0..2);
        (0..3_usize, vec(path(), 0..4), vec(path(), 0..4), network(), env).prop_map(
            |(profile, read, write, network, env)| match Profile::ALL[profile] {
                Profile::Off => Sandbox::default(),
                profile => Sandbox { profile, read, write, network, env },
            },
        )
    }

    proptest! {
        /// Checks that a combination allows nothing that one of its parts refuses, in either order.
        #[test]
        fn combining_never_loosens(a in sandbox(), b in sandbox(), c in sandbox(), paths in vec(path(), 1..12)) {
            let base = base();
            let programs = ["/usr".into()];
            let [a, b, c] = [&a, &b, &c].map(|sandbox| Limits::new(sandbox, &base));
            let both = a.within(&b, &base).within(&c, &base);
            prop_assert_eq!(both.profile, a.profile.max(b.profile).max(c.profile));
            for path in paths.iter().map(|path| base.resolve(path)) {
                for part in [&a, &b, &c] {
                    prop_assert!(!both.may_read(&path, &base, &programs) || part.may_read(&path, &base, &programs), "read {path} {both:?} {part:?}");
                    prop_assert!(!both.may_write(&path, &base) || part.may_write(&path, &base), "write {path} {both:?} {part:?}");
                }
            }
            for host in ["a.com", "b.a.com", "c.b.a.com", "d.b.a.com", "x.org"] {
                let allowed = [&a, &b, &c].iter().all(|part| part.network.allows(host) );
                prop_assert_eq!(both.network.allows(host), allowed, "{}", host);
            }
            for name in ["A", "B"] {
                let keeps = |part: &Limits| part.profile == Profile::Off || part.env.contains(&name.to_owned());
                prop_assert!(!keeps(&both) || [&a, &b, &c].into_iter().all(keeps));
            }
        }
    }

    #[test]
    fn secrets_are_named_one_by_one() {
        let base = base();
        let limits = |read: &str| {
            let sandbox = Sandbox { read: vec![read.to_owned()], ..Sandbox::profile(Profile::Strict) };
            Limits::new(&sandbox, &base)
        };
        assert!(!limits("~").may_read("/h/.ssh/id".into(), &base, &[]));
        assert!(limits("~").may_read("/h/notes".into(), &base, &[]));
        assert!(limits("~/.ssh/config").may_read("/h/.ssh/config".into(), &base, &[]));
        assert!(!limits("~/.ssh/config").may_read("/h/.ssh/id".into(), &base, &[]));
        assert_eq!(base.resolve("../x/./y"), "/x/y");
    }
}
