//! Command line of bubblewrap for a policy.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{Network, Profile};

use crate::policy::Policy;

/// Mount of one path. In order of precedence for equal paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mount {
    Hidden,
    Private,
    ReadOnly,
    Writable,
}

/// Returns the arguments of `bwrap` up to the command. `working` is the working directory, `program` a file that is shown.
///
/// Looks at the file system: paths that do not exist are left out, and links are followed.
pub(crate) fn arguments(policy: &Policy, working: &Utf8Path, program: &Utf8Path) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "--die-with-parent",
        "--unshare-user-try",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--cap-drop",
        "ALL",
    ]
    .map(str::to_owned)
    .into();
    let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
    if policy.network != Network::All {
        add(&["--unshare-net"]);
    }
    match policy.profile {
        Profile::Strict => add(&["--tmpfs", "/"]),
        _ => add(&["--ro-bind", "/", "/"]),
    }
    add(&["--dev", "/dev", "--proc", "/proc"]);
    for (path, mount) in mounts(policy, program) {
        let path = path.as_str();
        match mount {
            Mount::Hidden if Utf8Path::new(path).is_dir() => {
                // Nobody has the capability to write into it later.
                add(&["--perms", "0555", "--tmpfs", path]);
            }
            Mount::Hidden => add(&["--ro-bind", "/dev/null", path]),
            Mount::Private => {
                let source = policy.temporary.as_deref().map_or("/tmp", Utf8Path::as_str);
                add(&["--bind", source, path]);
            }
            Mount::ReadOnly => add(&["--ro-bind", path, path]),
            Mount::Writable => add(&["--bind", path, path]),
        }
    }
    if policy.profile == Profile::Strict {
        if let Some(home) = &policy.home {
            add(&["--dir", home.as_str()]);
        }
        add(&["--remount-ro", "/"]);
    }
    add(&["--chdir", working.as_str()]);
    arguments
}

/// All mounts, parents before children.
fn mounts(policy: &Policy, program: &Utf8Path) -> Vec<(Utf8PathBuf, Mount)> {
    let existing = |paths: &[Utf8PathBuf], mount: Mount| {
        let paths = paths.iter().filter_map(|path| path.canonicalize_utf8().ok());
        paths.map(|path| (path, mount)).collect::<Vec<_>>()
    };
    let mut all = existing(&policy.hidden, Mount::Hidden);
    all.extend(existing(&policy.covered, Mount::Hidden));
    // Sockets of the user's session and of system services are there.
    all.extend(existing(&["/run".into()], Mount::Hidden));
    all.extend(existing(
        &["/run/systemd/resolve".into(), "/run/NetworkManager/resolv.conf".into()],
        Mount::ReadOnly,
    ));
    if policy.temporary.is_some() {
        all.extend(existing(&["/tmp".into(), "/var/tmp".into()], Mount::Private));
    }
    let read: Vec<Utf8PathBuf> = policy.read.iter().filter(|path| *path != "/").cloned().collect();
    all.extend(existing(&read, Mount::ReadOnly));
    all.extend(existing(&policy.protected, Mount::ReadOnly));
    all.extend(existing(&policy.write, Mount::Writable));
    // The wrapper is nearly always visible.
    let covers = |(path, mount): &(Utf8PathBuf, Mount)| {
        matches!(mount, Mount::Hidden | Mount::Private) && program.starts_with(path)
    };
    if policy.profile == Profile::Strict || all.iter().any(covers) {
        all.extend(existing(&[program.to_owned()], Mount::ReadOnly));
    }
    // `/bin` may be a link: programs are looked for by that name.
    for link in policy.read.iter().filter(|path| path.is_symlink()) {
        all.push((link.clone(), Mount::ReadOnly));
    }
    all.sort_by_key(|(path, mount)| (path.components().count(), path.clone(), std::cmp::Reverse(*mount)));
    // Of mounts of one path, the last one in precedence holds.
    all.dedup_by(|next, kept| next.0 == kept.0);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Mechanism;

    #[test]
    fn nearer_mounts_come_later() {
        let place = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(place.path()).expect("UTF-8").canonicalize_utf8().expect("there");
        for dir in ["w/.cliq/signals", "home/.ssh/known", "home/.state"] {
            std::fs::create_dir_all(root.join(dir)).expect("made");
        }
        std::fs::write(root.join("w/.cliq/signals/own"), "").expect("written");
        let policy = Policy {
            profile: Profile::Workspace,
            mechanism: Mechanism::Bubblewrap,
            home: None,
            write: vec![
                root.join("w"),
                root.join("w/.cliq/signals/own"),
                root.join("missing"),
                root.join("home/.state"),
            ],
            read: vec!["/".into(), root.join("home/.ssh/known")],
            protected: vec![root.join("w/.cliq")],
            hidden: vec![root.join("home/.ssh"), root.join("home/.state")],
            covered: vec![root.join("w/.cliq/signals")],
            temporary: None,
            network: Network::None,
            egress: None,
            env: Vec::new(),
        };
        let line = arguments(&policy, &root, "/bin/sh".into()).join(" ").replace(root.as_str(), "R");
        let place = |text: &str| line.find(text).unwrap_or_else(|| panic!("{text}: {line}"));
        assert!(
            line.contains("--unshare-net") && line.contains("--ro-bind / /") && !line.contains("missing")
        );
        assert!(line.contains("--bind R/home/.state") && !line.contains("--remount-ro R/home/.state"));
        assert!(place("--bind R/w R/w") < place("--ro-bind R/w/.cliq"));
        assert!(place("--ro-bind R/w/.cliq") < place("--tmpfs R/w/.cliq/signals"));
        assert!(place("--tmpfs R/w/.cliq/signals") < place("--bind R/w/.cliq/signals/own"));
        assert!(place("--tmpfs R/home/.ssh") < place("--ro-bind R/home/.ssh/known"));
    }
}
