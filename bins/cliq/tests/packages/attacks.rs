//! Attacks by a registry, by a user with access to it, and by the author of a package. Each is refused by name, and installs nothing.

use std::fs;
use std::process::Command;

use cliq_packages::{ARCHIVE_TYPE, Content, Descriptor, Digest, Manifest, PackageConfig, SIGNATURE_TYPE};
use cliq_testkit::env::Env;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::{Registry, team, team_of};

/// A publisher with a key, and the homes of others.
struct World {
    registry: Registry,
    maria: Env,
    key: String,
}

impl World {
    fn start() -> Option<Self> {
        let registry = Registry::start()?;
        let (maria, key) = (registry.home(), registry.key("maria"));
        Some(Self { registry, maria, key })
    }

    /// Publishes `@acme/site` in a version, signed.
    fn publish(&self, version: &str, word: &str) {
        team(&self.maria, "site", "@acme/site", version, word);
        self.registry.cliq(&self.maria, ["team", "publish", "site", "--key", &self.key]).expect(0);
    }

    /// A home that accepts the key.
    fn home(&self) -> Env {
        let env = self.registry.home();
        Registry::trust(&env, &self.key);
        env
    }

    /// Installing a version in a new home fails, and names the reason.
    #[track_caller]
    fn refuses(&self, version: &str, reason: &str) {
        self.refuses_in(&self.home(), version, reason);
    }

    #[track_caller]
    fn refuses_in(&self, env: &Env, version: &str, reason: &str) {
        let source = format!("@acme/site@{version}");
        self.registry.cliq(env, ["team", "install", &source, "--yes"]).expect(4).says(reason);
        let installed = env.home().join("teams/@acme/site/team.yml");
        let is_there = fs::read_to_string(installed).is_ok_and(|text| text.contains(version));
        assert!(!is_there, "{reason}: it was installed");
    }

    /// Signs a config with a key and a namespace.
    fn signature(&self, key: &str, namespace: &str, config: &[u8]) -> Vec<u8> {
        let file = self.registry.path("config");
        fs::write(&file, config).unwrap();
        let _ = fs::remove_file(self.registry.path("config.sig"));
        let done = Command::new("ssh-keygen")
            .args(["-q", "-Y", "sign", "-n", namespace, "-f", key])
            .arg(&file)
            .output();
        assert!(done.unwrap().status.success());
        fs::read(self.registry.path("config.sig")).unwrap()
    }

    /// Uploads a package as it is, with the tag of a version.
    fn put(
        &self,
        tag: &str,
        config: &[u8],
        archive: &[u8],
        signature: Option<&[u8]>,
        change: impl Fn(&mut Manifest),
    ) {
        let repository = "teams/site";
        for blob in [Some(config), Some(archive), signature].into_iter().flatten() {
            self.registry.put_blob(repository, blob);
        }
        let parsed: PackageConfig =
            serde_json::from_slice(config).unwrap_or_else(|_| self.config("1.0.0", archive));
        let mut manifest = Manifest::of(&parsed, config, archive, signature);
        change(&mut manifest);
        self.registry.put_manifest(repository, tag, &serde_json::to_vec(&manifest).unwrap());
    }

    fn config(&self, version: &str, archive: &[u8]) -> PackageConfig {
        PackageConfig {
            format: 1,
            name: "@acme/site".parse().unwrap(),
            version: version.parse().unwrap(),
            description: None,
            archive: Digest::of(archive),
            content: Content::from_archive(archive).map_or(Digest::of(archive), |content| content.digest()),
            requires: [].into(),
        }
    }

    /// Uploads a package of the author, signed, with any archive.
    fn put_signed(&self, version: &str, archive: &[u8]) {
        let config = serde_json::to_vec(&self.config(version, archive)).unwrap();
        let signature = self.signature(&self.key, "cliq-team", &config);
        self.put(version, &config, archive, Some(&signature), |_| {});
    }
}

/// Path, kind and content of an entry; of a link, what it leads to.
type Entry<'a> = (&'a str, EntryType, &'a [u8]);

/// An archive of entries with any path, kind and content.
fn archive(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, kind, bytes) in entries {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.as_old_mut().linkname[..bytes.len()].copy_from_slice(bytes);
            header.set_size(0);
        } else {
            header.set_size(bytes.len() as u64);
        }
        header.set_mode(0o644);
        header.set_cksum();
        let data: &[u8] = if header.size().unwrap() == 0 { &[] } else { bytes };
        builder.append(&header, data).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

const TEAM: &[u8] = b"name: \"@acme/site\"\nversion: 3.0.0\nphases:\n  - name: a\n    type: exec\n    commands: [{name: x, run: 'true'}]\n";

#[test]
fn what_the_registry_or_others_change_is_refused() {
    let Some(world) = World::start() else { return };
    let registry = &world.registry;
    world.publish("1.0.0", "roses");
    let good = registry.manifest("teams/site", "1.0.0");
    let digest = |manifest: &serde_json::Value, blob: &str| {
        manifest.pointer(blob).unwrap()["digest"].as_str().unwrap().to_owned()
    };
    let good_home = world.home();
    registry.cliq(&good_home, ["team", "install", "@acme/site@1.0.0", "--yes"]).expect(0);

    // 1, 2: a blob with other bytes, as one who can write to the disk of the registry leaves it.
    for blob in ["/layers/0", "/config"] {
        let file = registry.blob_file(&digest(&good, blob));
        let bytes = fs::read(&file).unwrap();
        let mut changed = bytes.clone();
        let last = changed.len() - 3;
        changed[last] ^= 1;
        fs::write(&file, changed).unwrap();
        world.refuses("1.0.0", "was changed: it is sha256:");
        fs::write(&file, bytes).unwrap();
    }
    // 3: a manifest with other bytes, in place of the locked one.
    let locked = world.home();
    registry.cliq(&locked, ["init"]).expect(0);
    registry.cliq(&locked, ["assemble", "@acme/site@^1"]).expect(0);
    let manifest =
        locked.read_json(".cliq/team.lock")["teams"][0]["origin"]["manifest"].as_str().unwrap().to_owned();
    let file = registry.blob_file(&manifest);
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, String::from_utf8(bytes.clone()).unwrap().replace("roses", "weeds")).unwrap();
    fs::remove_dir_all(locked.home().join("packages")).unwrap();
    registry
        .cliq(&locked, ["assemble", "--locked"])
        .expect(4)
        .says("the manifest of oci://")
        .says("was changed");
    fs::write(&file, bytes).unwrap();
    registry.cliq(&locked, ["assemble", "--locked"]).expect(0);

    let read = |blob: &str| fs::read(registry.blob_file(&digest(&good, blob))).unwrap();
    let (content, config, signature) = (read("/layers/0"), read("/config"), read("/layers/1"));
    let next = |version: &str| serde_json::to_vec(&world.config(version, &content)).unwrap();

    // Without a demand for signatures, one of another version is named for what it is.
    let text = String::from_utf8_lossy(TEAM).replace("3.0.0", "1.0.12");
    let whole = archive(&[("team.yml", EntryType::Regular, text.as_bytes())]);
    let unsigned = serde_json::to_vec(&world.config("1.0.12", &whole)).unwrap();
    world.put("1.0.12", &unsigned, &whole, Some(&signature), |_| {});
    registry
        .cliq(&registry.home(), ["team", "info", "@acme/site@1.0.12"])
        .expect(0)
        .says("signed, and the signature is not one of this package");
    // A damaged record of a version cannot say whether it moved.
    let damaged = world.home();
    registry.cliq(&damaged, ["team", "install", "@acme/site@1.0.0", "--yes"]).expect(0);
    let records =
        fs::read_dir(damaged.home().join("packages/versions")).unwrap().next().unwrap().unwrap().path();
    fs::write(records.join("1.0.0"), "sha256:1").unwrap();
    registry
        .cliq(&damaged, ["team", "install", "@acme/site@1.0.0", "--yes"])
        .expect(1)
        .says("is not a digest");
    // 4: the signature is removed.
    world.put("1.0.1", &next("1.0.1"), &content, None, |_| {});
    world.refuses("1.0.1", "it is not signed, and trust.acme.signers requires a signature");
    // 5: the signature of another key.
    let eve = registry.key("eve");
    let by_eve = world.signature(&eve, "cliq-team", &next("1.0.2"));
    world.put("1.0.2", &next("1.0.2"), &content, Some(&by_eve), |_| {});
    world.refuses("1.0.2", "it is signed by SHA256:");
    // 6: the signature of another version.
    world.put("1.0.3", &next("1.0.3"), &content, Some(&signature), |_| {});
    world.refuses("1.0.3", "no signature of it is valid");
    // 7: a signature that was made for something else.
    let for_git = world.signature(&world.key, "git", &next("1.0.4"));
    world.put("1.0.4", &next("1.0.4"), &content, Some(&for_git), |_| {});
    world.refuses("1.0.4", "no signature of it is valid");
    // 8: an old package under the tag of a new one.
    world.put("1.0.5", &config, &content, Some(&signature), |_| {});
    world.refuses("1.0.5", "it is version 1.0.0");
    // 9: the package of another team.
    let other = String::from_utf8(next("1.0.6")).unwrap().replace("@acme/site", "@acme/shop").into_bytes();
    let signed = world.signature(&world.key, "cliq-team", &other);
    world.put("1.0.6", &other, &content, Some(&signed), |_| {});
    world.refuses("1.0.6", "it is the package of @acme/shop");
    // 10: a tag that moved.
    world.put_signed("1.0.0", &archive(&[("team.yml", EntryType::Regular, TEAM)]));
    let source = "@acme/site@1.0.0";
    registry
        .cliq(&good_home, ["team", "install", source, "--yes"])
        .expect(4)
        .says("a published version does not change");
    // 11: another kind of artifact, such as an image.
    let image =
        |manifest: &mut Manifest| manifest.artifact_type = Some("application/vnd.example.image".into());
    world.put("1.0.7", &next("1.0.7"), &content, Some(&signature), image);
    world.refuses("1.0.7", "it is `application/vnd.example.image`, not a team");
    // 12: the config is about another archive than the manifest.
    let evil = archive(&[("team.yml", EntryType::Regular, TEAM)]);
    registry.put_blob("teams/site", &evil);
    let signed = world.signature(&world.key, "cliq-team", &next("1.0.8"));
    let swapped =
        |manifest: &mut Manifest| manifest.layers[0] = Descriptor::of(ARCHIVE_TYPE, &evil, "site.tar.gz");
    world.put("1.0.8", &next("1.0.8"), &content, Some(&signed), swapped);
    world.refuses("1.0.8", "its config names the archive sha256:");
    // 13: two archives, the second of which others would read.
    let two =
        |manifest: &mut Manifest| manifest.layers.push(Descriptor::of(ARCHIVE_TYPE, &evil, "site.tar.gz"));
    world.put("1.0.9", &next("1.0.9"), &content, Some(&signed), two);
    world.refuses("1.0.9", "it has 2 archives in place of one");
    // 14: a format that this version does not know.
    let newer =
        String::from_utf8(next("1.0.10")).unwrap().replace("\"format\":1", "\"format\":2").into_bytes();
    world.put("1.0.10", &newer, &content, Some(&signature), |_| {});
    world.refuses("1.0.10", "it has format 2: this version of cliq reads format 1");
    // 15: more signatures than anybody checks.
    let many = |manifest: &mut Manifest| {
        let one = Descriptor::of(SIGNATURE_TYPE, &signature, "site.sig");
        manifest.layers.extend(std::iter::repeat_n(one, 100));
    };
    world.put("1.0.11", &next("1.0.11"), &content, Some(&signature), many);
    world.refuses("1.0.11", "it has more than 16 signatures");
}

#[test]
fn a_downgrade_is_refused() {
    let Some(world) = World::start() else { return };
    let registry = &world.registry;
    world.publish("1.0.0", "roses");
    world.publish("1.2.0", "tulips");
    let env = world.home();
    registry.cliq(&env, ["init"]).expect(0);
    registry.cliq(&env, ["team", "install", "@acme/site", "--yes"]).expect(0).says("v1.2.0");
    registry.cliq(&env, ["assemble", "@acme/site@^1"]).expect(0);
    // The registry hides the newer version.
    let (status, _, _) = registry.curl(&["-X", "DELETE"], "/v2/teams/site/manifests/1.2.0");
    assert_eq!(status, 202);
    registry
        .cliq(&env, ["team", "update", "--yes"])
        .expect(4)
        .says("@acme/site 1.0.0 is refused: it is older than 1.2.0");
    assert!(env.read(".cliq/team.yml").contains("tulips"));
    world.refuses_in(&env, "1.0.0", "it is older than 1.2.0, which is there");
    registry.cliq(&env, ["team", "install", "@acme/site@1.0.0", "--yes", "--allow-downgrade"]).expect(0);
}

#[test]
fn archives_that_do_harm_are_refused() {
    use EntryType::{Block, Char, Directory, Fifo, Link, Regular, Symlink};
    let Some(world) = World::start() else { return };
    let long = format!("{}team.yml", "a/".repeat(40));
    let attacks: &[(&str, &[Entry<'_>], &str)] = &[
        ("3.0.1", &[("../../evil", Regular, b"x")], "\"../../evil\" leaves the folder of the team"),
        ("3.0.2", &[("/etc/evil", Regular, b"x")], "\"/etc/evil\" leaves the folder of the team"),
        ("3.0.3", &[("roles/../../evil", Regular, b"x")], "leaves the folder of the team"),
        ("3.0.4", &[("roles", Symlink, b"/etc")], "\"roles\" is a symbolic link"),
        ("3.0.5", &[("team.yml", Link, b"/etc/passwd")], "\"team.yml\" is a hard link"),
        ("3.0.6", &[("team.yml", Fifo, b"")], "\"team.yml\" is a FIFO"),
        ("3.0.7", &[("team.yml", Char, b"")], "\"team.yml\" is a device"),
        ("3.0.8", &[("team.yml", Block, b"")], "\"team.yml\" is a device"),
        ("3.0.9", &[("team.yml", Regular, TEAM), ("team.yml", Regular, b"x")], "\"team.yml\" comes twice"),
        (
            "3.0.10",
            &[("team.yml", Regular, TEAM), ("TEAM.yml", Regular, b"x")],
            "in the case of letters only",
        ),
        ("3.0.11", &[("team.yml", Regular, TEAM), ("team.yml/a", Regular, b"x")], "is below a file"),
        ("3.0.12", &[("../out", Directory, b"")], "\"../out\" leaves the folder of the team"),
        ("3.0.13", &[(".ssh/authorized_keys", Regular, b"x")], "is hidden"),
        ("3.0.14", &[(&long, Regular, b"x")], "is too deep"),
        ("3.0.15", &[("a\nb", Regular, b"x")], "has a control character"),
    ];
    for (version, entries, reason) in attacks {
        world.put_signed(version, &archive(entries));
        world.refuses(version, reason);
    }
    // A bomb: 10 GB by its header, of which the archive has a gigabyte in 1 MB.
    let mut builder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut header = Header::new_ustar();
    header.set_path("team.yml").unwrap();
    header.set_size(7 << 30);
    header.set_entry_type(Regular);
    header.set_cksum();
    std::io::Write::write_all(&mut builder, header.as_bytes()).unwrap();
    for _ in 0..1024 {
        std::io::Write::write_all(&mut builder, &vec![0; 1 << 20]).unwrap();
    }
    let bomb = builder.finish().unwrap();
    world.put_signed("3.1.0", &bomb);
    world.refuses("3.1.0", "at most 50 MB together");
    // Bytes that are no archive, and an archive that breaks off.
    world.put_signed("3.1.1", b"hello");
    world.refuses("3.1.1", "the archive cannot be read");
    let whole = archive(&[("team.yml", Regular, TEAM)]);
    world.put_signed("3.1.2", &whole[..whole.len() - 40]);
    world.refuses("3.1.2", "the archive cannot be read");
    // Files that are others than the config says.
    let mut config = world.config("3.1.3", &whole);
    config.content = Digest::of(b"others");
    let config = serde_json::to_vec(&config).unwrap();
    let signature = world.signature(&world.key, "cliq-team", &config);
    world.put("3.1.3", &config, &whole, Some(&signature), |_| {});
    world.refuses("3.1.3", "its config names sha256:");
    // A team.yml of another version than the package.
    world.put_signed("3.1.4", &whole);
    world.refuses("3.1.4", "its team.yml is that of @acme/site 3.0.0");
    // A team phase that names a folder of the machine.
    let outside = world.maria.path("site").display().to_string();
    team(&world.maria, "site", "@acme/other", "1.0.0", "weeds");
    team_of(&world.maria, "outer", "@acme/site", "3.1.6", &[&outside]);
    let text = world.maria.read("outer/team.yml");
    world.put_signed("3.1.6", &archive(&[("team.yml", Regular, text.as_bytes())]));
    world.refuses("3.1.6", "is not in the package");
    // A team that runs itself.
    team_of(&world.maria, "site", "@acme/site", "3.1.5", &["@acme/site@3.1.5"]);
    let text = world.maria.read("site/team.yml");
    world.put_signed("3.1.5", &archive(&[("team.yml", Regular, text.as_bytes())]));
    let env = world.home();
    world
        .registry
        .cliq(&env, ["team", "install", "@acme/site@3.1.5", "--yes"])
        .expect(2)
        .says("a team cannot run within itself");
    assert!(!env.home().join("teams/@acme/site").exists());
}
