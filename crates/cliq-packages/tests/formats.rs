//! The formats that others read: the manifest, the config, the lock.

use std::collections::BTreeMap;

use cliq_packages::{
    Content, Digest, File, FormatError, Lock, LockedTeam, Manifest, Origin, PackageConfig, Signer,
};

fn config() -> (PackageConfig, Vec<u8>) {
    let mut content = Content::default();
    content
        .add("team.yml".into(), File { executable: false, bytes: b"name: \"@acme/site\"\n".to_vec() })
        .unwrap();
    let archive = content.to_archive().unwrap();
    let config = PackageConfig {
        format: 1,
        name: "@acme/site".parse().unwrap(),
        version: "1.2.0".parse().unwrap(),
        description: Some("Builds a site".to_owned()),
        // Not that of the archive: its bytes depend on the version of the library that compresses.
        archive: Digest::of(b"archive"),
        content: content.digest(),
        requires: BTreeMap::from([("@acme/lint".parse().unwrap(), "^1".parse().unwrap())]),
    };
    (config, archive)
}

#[test]
fn the_config_and_the_manifest_of_a_package() {
    let (config, _) = config();
    insta::assert_json_snapshot!("config", config);
    let manifest =
        Manifest::of(&config, &serde_json::to_vec(&config).unwrap(), b"archive", Some(b"signature"));
    insta::assert_json_snapshot!("manifest", manifest);
    let bytes = serde_json::to_vec(&manifest).unwrap();
    assert_eq!(Manifest::parse(&bytes).unwrap(), manifest);
    assert_eq!(manifest.parse_config(&serde_json::to_vec(&config).unwrap()).unwrap(), config);
}

#[test]
fn other_artifacts_are_refused() {
    let (config, _) = config();
    let good = Manifest::of(&config, b"{}", b"archive", None);
    let with = |change: &dyn Fn(&mut Manifest)| {
        let mut manifest = good.clone();
        change(&mut manifest);
        Manifest::parse(&serde_json::to_vec(&manifest).unwrap()).unwrap_err()
    };
    let index =
        br#"{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []}"#;
    assert!(
        matches!(Manifest::parse(index), Err(FormatError::OtherArtifact(kind)) if kind.contains("index"))
    );
    assert!(matches!(Manifest::parse(b"{"), Err(FormatError::Manifest(_))));
    assert!(matches!(with(&|manifest| manifest.artifact_type = None), FormatError::OtherArtifact(_)));
    assert!(matches!(with(&|manifest| manifest.layers.clear()), FormatError::Archives(0)));
    assert!(matches!(
        with(&|manifest| manifest.layers[0].size = 11 << 20),
        FormatError::TooLarge { what: "archive", .. }
    ));
    assert!(matches!(
        with(&|manifest| manifest.config.size = 2 << 20),
        FormatError::TooLarge { what: "config", .. }
    ));
    assert!(matches!(good.parse_config(b"{\"format\": 2}"), Err(FormatError::Newer(2))));
    assert!(matches!(good.parse_config(b"{}"), Err(FormatError::Config(_))));
}

fn locked(name: &str, version: &str, content: &str) -> LockedTeam {
    LockedTeam {
        name: name.parse().unwrap(),
        version: Some(version.parse().unwrap()),
        origin: Origin::Registry {
            repository: "oci://example.com/teams/site".parse().unwrap(),
            manifest: Digest::of(b"manifest"),
        },
        content: Digest::of(content.as_bytes()),
        requested: vec!["^1".parse().unwrap()],
        skills: BTreeMap::from([("words".to_owned(), Digest::of(b"skill"))]),
    }
}

#[test]
fn the_lock_of_a_project() {
    let git = LockedTeam {
        origin: Origin::Git {
            url: "https://example.com/lint.git".to_owned(),
            reference: Some("main".to_owned()),
            commit: "0123456789012345678901234567890123456789".to_owned(),
        },
        requested: Vec::new(),
        skills: BTreeMap::new(),
        version: None,
        ..locked("@acme/lint", "1.0.0", "lint")
    };
    let folder = LockedTeam { origin: Origin::Folder { path: "teams/own".into() }, ..git.clone() };
    let bundled = LockedTeam { origin: Origin::Bundled, ..git.clone() };
    let lock = Lock {
        format: 1,
        team: "@acme/site@^1".to_owned(),
        teams: vec![git, folder, bundled, locked("@acme/site", "1.2.0", "site")],
    };
    insta::assert_snapshot!("lock", lock.to_text());
    let dir = tempfile::tempdir().unwrap();
    let path = camino::Utf8Path::from_path(dir.path()).unwrap().join("team.lock");
    assert_eq!(Lock::read(&path).unwrap(), None);
    lock.write(&path).unwrap();
    assert_eq!(Lock::read(&path).unwrap(), Some(lock));
}

#[test]
fn differences_of_locks_are_sentences() {
    let lock = |teams: Vec<LockedTeam>| Lock { format: 1, team: "@acme/site".to_owned(), teams };
    let old = lock(vec![
        locked("@acme/a", "1.0.0", "a"),
        locked("@acme/b", "1.0.0", "b"),
        locked("@acme/c", "1.0.0", "c"),
    ]);
    assert_eq!(old.differences(&old), Vec::<String>::new());
    let mut other = locked("@acme/b", "1.0.0", "others");
    other.skills.insert("more".to_owned(), Digest::of(b"more"));
    let new = lock(vec![locked("@acme/a", "1.1.0", "a"), other, locked("@acme/d", "1.0.0", "d")]);
    insta::assert_debug_snapshot!(old.differences(&new));
}

#[test]
fn keys_of_signers() {
    let data = "AAAAC3NzaC1lZDI1NTE5AAAAIJ8f3p7g0GkVxQ7v0Wm0Yz3gqXb0k5m0m0m0m0m0m0m0";
    assert_eq!(Signer::parse(&format!("ssh-ed25519 {data} maria@acme\n")).unwrap().name(), "maria@acme");
    for wrong in [
        String::new(),
        "ssh-ed25519".to_owned(),
        format!("ssh-ed25519 {data}\nssh-ed25519 {data}"),
        format!("cert-authority ssh-ed25519 {data}"),
        format!("* namespaces=\"git\" ssh-ed25519 {data}"),
        "ssh-ed25519 not base64 at all, of course".to_owned(),
        "-----BEGIN OPENSSH PRIVATE KEY-----".to_owned(),
    ] {
        assert!(Signer::parse(&wrong).is_err(), "{wrong}");
    }
}
