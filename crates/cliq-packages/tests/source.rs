//! Sources and ranges, as people write them.

use cliq_packages::{Part, Range, Repository, Source};
use proptest::prelude::*;
use semver::Version;

fn kind(text: &str) -> String {
    match Source::parse(text) {
        Ok(Source::Folder(path)) => format!("folder {path}"),
        Ok(Source::Git(git)) => format!("git {} {}", git.url, git.reference.unwrap_or_default()),
        Ok(source @ Source::Registry { .. }) => format!("registry {source}"),
        Ok(Source::Named(named)) => format!("name {named}"),
        Err(error) => format!("error {error}"),
    }
}

#[test]
fn each_form_of_a_source() {
    let digest = format!("sha256:{}", "a".repeat(64));
    for (text, expected) in [
        (".", "folder ."),
        ("./team", "folder ./team"),
        ("team/team.yml", "folder team/team.yml"),
        ("@acme/site", "name @acme/site"),
        ("@acme/site@^1.2", "name @acme/site@^1.2"),
        ("@acme/site@1.2.3", "name @acme/site@1.2.3"),
        ("@acme/site@>=1, <3", "name @acme/site@>=1, <3"),
        ("@acme/site@*", "name @acme/site@*"),
        ("https://example.com/team.git", "git https://example.com/team.git "),
        ("https://example.com/team#v1", "git https://example.com/team v1"),
        ("git@example.com:a/b.git#main", "git git@example.com:a/b.git main"),
        ("ssh://git@example.com/a", "git ssh://git@example.com/a "),
        ("team.git", "git team.git "),
        ("oci://example.com/a/b", "registry oci://example.com/a/b"),
        ("oci://example.com/a/b:1.2.3", "registry oci://example.com/a/b:1.2.3"),
        ("oci://localhost:5000/b:1.2.3-rc.1", "registry oci://localhost:5000/b:1.2.3-rc.1"),
        ("oci://[::1]:5000/b", "registry oci://[::1]:5000/b"),
    ] {
        assert_eq!(kind(text), expected, "{text}");
    }
    assert_eq!(kind(&format!("oci://a.example/b@{digest}")), format!("registry oci://a.example/b@{digest}"));
    for (text, part) in [
        ("@acme", "write `@scope/name`"),
        ("@acme/site@next", "is not a range of versions"),
        ("@a b/site", "is not the name of a team"),
        ("oci://example.com", "it has no path"),
        ("oci://example.com/a:latest", "is not a version"),
        ("oci://example.com/a@sha256:123", "is not a digest"),
        ("oci://user:secret@example.com/a", "`docker login HOST`"),
        ("oci://localhost:5000", "it has no path"),
        ("oci://exa mple/a", "its host has other signs"),
        ("oci://example.com:99999/a", "its port is not a number"),
        ("oci://example.com/A", "lower-case letters"),
        ("oci://example.com/a/../b", "lower-case letters"),
        ("hub://x/y@1", "is the address of a hub"),
    ] {
        let found = kind(text);
        assert!(found.starts_with("error") && found.contains(part), "{text}: {found}");
        assert!(!found.contains("secret"), "{found}");
    }
}

fn version() -> impl Strategy<Value = Version> {
    (0..4u64, 0..4u64, 0..4u64, prop::option::of("[a-c]\\.[0-3]")).prop_map(
        |(major, minor, patch, before)| {
            let mut version = Version::new(major, minor, patch);
            if let Some(before) = before {
                version.pre = before.parse().unwrap();
            }
            version
        },
    )
}

proptest! {
    #[test]
    fn the_newest_is_in_the_range_and_none_in_it_is_newer(
        range in prop_oneof!["\\^[0-3]", "~[0-3]\\.[0-3]", "[0-3]\\.[0-3]\\.[0-3]", ">=[0-3]\\.[0-3]", Just("*".to_owned())],
        versions in prop::collection::vec(version(), 0..12),
    ) {
        let range: Range = range.parse().unwrap();
        match range.newest(&versions) {
            Some(newest) => prop_assert!(
                range.contains(newest) && versions.iter().all(|version| !range.contains(version) || version <= newest)
            ),
            None => prop_assert!(!versions.iter().any(|version| range.contains(version))),
        }
        prop_assert_eq!(&range.to_string().parse::<Range>().unwrap(), &range);
    }

    #[test]
    fn a_raised_version_is_newer(version in version()) {
        for part in [Part::Major, Part::Minor, Part::Patch] {
            prop_assert!(part.raise(&version) > version && part.raise(&version).pre.is_empty());
        }
    }

    #[test]
    fn a_whole_version_means_itself(version in version(), other in version()) {
        let range = Range::exactly(&version);
        prop_assert_eq!(range.contains(&other), version == other);
    }

    #[test]
    fn no_text_makes_a_panic(text in ".{0,60}") {
        let _ = Source::parse(&text);
        let _ = text.parse::<Repository>();
        let _ = Source::parse(&format!("oci://{text}"));
        let _ = Source::parse(&format!("@{text}"));
    }
}
