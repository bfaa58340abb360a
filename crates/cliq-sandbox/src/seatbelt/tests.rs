//! Profiles as text, and a reader of them that decides as Seatbelt does: the rule that matches last holds.

use cliq_protocol::HostPattern;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::policy::{Egress, Mechanism};

fn policy(profile: Profile, network: Network) -> Policy {
    Policy {
        profile,
        mechanism: Mechanism::Seatbelt,
        home: Some("/Users/me".into()),
        write: vec!["/Users/me/project".into(), "/Users/me/project/.cliq/signals/build.jsonl".into()],
        read: match profile {
            Profile::Strict => vec!["/usr".into(), "/bin".into()],
            _ => vec!["/".into()],
        },
        protected: vec!["/Users/me/project/.cliq".into(), "/Users/me/project/.git".into()],
        hidden: vec!["/Users/me/.ssh".into(), "/Users/me/Library/Keychains".into()],
        covered: vec!["/Users/me/project/.cliq/signals".into()],
        temporary: Some("/private/var/folders/ab/T/cliq-1".into()),
        network,
        egress: None,
        env: Vec::new(),
    }
}

fn text(policy: &Policy) -> String {
    profile(policy, "/opt/cliq/cliq".into())
}

#[test]
fn profiles_are_pinned() {
    insta::assert_snapshot!("workspace", text(&policy(Profile::Workspace, Network::All)));
    let hosts = Network::Hosts(vec![HostPattern::parse("example.com").expect("a host")]);
    let mut strict = policy(Profile::Strict, hosts);
    strict.egress = Some(Egress { port: 4711, socket: "/tmp/e".into() });
    insta::assert_snapshot!("strict-hosts", text(&strict));
    let mut without = policy(Profile::Workspace, Network::None);
    without.write.push("/Users/me/a \"b\" \\c".into());
    insta::assert_snapshot!("workspace-none", text(&without));
}

/// Words of a profile: brackets, strings with their escapes resolved, and others.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut rest) = (Vec::new(), String::new(), text.chars());
    while let Some(c) = rest.next() {
        if matches!(c, '(' | ')' | '"') || c.is_whitespace() {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            match c {
                '(' | ')' => words.push(c.to_string()),
                '"' => {
                    let mut string = String::new();
                    while let Some(c) = rest.next().filter(|c| *c != '"') {
                        string.push(if c == '\\' { rest.next().expect("an escaped character") } else { c });
                    }
                    words.push(string);
                }
                _ => {}
            }
        } else {
            word.push(c);
        }
    }
    words
}

/// Whether a profile allows an operation with a path.
fn allows(text: &str, operation: &str, path: &Utf8Path) -> bool {
    let (mut allowed, mut depth) = (false, 0);
    let (mut allow, mut is_meant, mut filter, mut is_head) = (false, false, String::new(), false);
    for word in words(text) {
        match word.as_str() {
            "(" => {
                depth += 1;
                is_head = true;
                continue;
            }
            ")" => depth -= 1,
            _ if depth == 1 && is_head => {
                allow = word == "allow";
                is_meant = false;
            }
            _ if depth == 1 => {
                is_meant |= operation == word
                    || word.strip_suffix('*').is_some_and(|start| operation.starts_with(start));
            }
            _ if depth == 2 && is_head => filter = word,
            _ if depth == 2 && is_meant => {
                let matches = match filter.as_str() {
                    "subpath" => path.starts_with(&word),
                    "literal" => path == word,
                    _ => false,
                };
                if matches {
                    allowed = allow;
                }
            }
            _ => {}
        }
        is_head = false;
    }
    assert_eq!(depth, 0, "the brackets of {text}");
    allowed
}

#[test]
fn what_a_workspace_may_do() {
    let text = text(&policy(Profile::Workspace, Network::None));
    let may = |operation: &str, path: &str| allows(&text, operation, path.into());
    for path in ["/etc/hosts", "/Users/me/notes", "/Users/me/project/src/a"] {
        assert!(may("file-read-data", path), "{path}");
    }
    for path in
        ["/Users/me/.ssh/id", "/Users/me/project/.cliq/signals/other.jsonl", "/private/tmp/x", PROGRAM]
    {
        assert!(!may("file-read-data", path) && !may("file-write-create", path), "{path}");
    }
    for path in [
        "/Users/me/project/src/a",
        "/Users/me/project/.cliq/signals/build.jsonl",
        "/private/var/folders/ab/T/cliq-1/x",
        "/dev/null",
    ] {
        assert!(may("file-write-data", path), "{path}");
    }
    for path in [
        "/Users/me/notes",
        "/Users/me/project/.git/hooks/x",
        "/Users/me/project/.cliq/channels",
        "/usr/bin/x",
    ] {
        assert!(!may("file-write-data", path), "{path}");
    }
    // The directory around what is protected stays where it is.
    assert!(
        !may("file-write-unlink", "/Users/me/project") && may("file-write-unlink", "/Users/me/project/src")
    );
    assert!(!text.contains("(remote ip"), "{text}");
}

#[test]
fn strict_profile_shows_the_way_and_not_the_entries() {
    let text = text(&policy(Profile::Strict, Network::None));
    let may = |operation: &str, path: &str| allows(&text, operation, path.into());
    assert!(may("file-read-metadata", "/Users/me") && !may("file-read-data", "/Users/me"));
    assert!(may("file-read-data", "/usr/lib/dyld") && may("file-read-data", "/System/Library/x"));
    assert!(!may("file-read-data", "/Users/me/notes") && !may("file-read-metadata", "/Users/me/notes"));
}

fn path() -> impl Strategy<Value = Utf8PathBuf> {
    let part = prop_oneof![Just("a"), Just("b"), Just("ab"), Just("c \"d\" \\"), Just("(e)")];
    vec(part, 1..5).prop_map(|parts| Utf8PathBuf::from(format!("/{}", parts.join("/"))))
}

proptest! {
    /// Checks that a profile shows and lets write what its policy does, for any paths.
    #[test]
    fn profile_is_its_policy(
        lists in vec(vec(path(), 0..4), 5),
        paths in vec(path(), 1..20),
        is_strict in any::<bool>(),
    ) {
        let [write, read, protected, hidden, covered]: [Vec<Utf8PathBuf>; 5] = lists.try_into().expect("five");
        let mut policy = policy(if is_strict { Profile::Strict } else { Profile::Workspace }, Network::None);
        policy.read.extend(read);
        (policy.write, policy.protected, policy.hidden, policy.covered) = (write, protected, hidden, covered);
        let text = text(&policy);
        let depth = |list: &[Utf8PathBuf], path: &Utf8Path| {
            list.iter().filter(|entry| path.starts_with(entry)).map(|entry| entry.components().count()).max()
        };
        for path in &paths {
            let shown = depth(&policy.read, path).max(depth(&policy.write, path)).max(depth(&policy.protected, path));
            let concealed = depth(&policy.hidden, path).max(depth(&policy.covered, path));
            prop_assert_eq!(allows(&text, "file-read-data", path), shown.is_some() && shown >= concealed, "read {}\n{}", path, text);
            let writable = depth(&policy.write, path);
            let closed = depth(&policy.read, path).max(depth(&policy.protected, path)).max(concealed);
            prop_assert_eq!(allows(&text, "file-write-data", path), writable.is_some() && writable >= closed, "write {}\n{}", path, text);
        }
    }
}
