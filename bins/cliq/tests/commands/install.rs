//! The install script of a release (docs/first-steps.md).

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An empty home, and a directory with the archive of a release.
struct Release {
    dir: tempfile::TempDir,
}

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/install.sh");

fn target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Release {
    fn new(version: &str) -> Self {
        let this = Self { dir: tempfile::tempdir().unwrap() };
        this.add(version);
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Adds an archive whose programs are those of this build.
    fn add(&self, version: &str) {
        let name = format!("cliq-{version}-{}", target());
        let root = self.path("release").join(&name);
        for dir in ["man/man1", "completions"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        let cliq = cliq_testkit::program();
        for program in ["cliq", "cliq-agent"] {
            let file = root.join(program);
            let real = cliq.with_file_name(program);
            fs::write(&file, format!("#!/bin/sh\nexec '{}' \"$@\"\n", real.display())).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        for file in ["man/man1/cliq.1", "completions/cliq.bash", "completions/_cliq", "completions/cliq.fish"]
        {
            fs::write(root.join(file), file).unwrap();
        }
        let at = self.path("release");
        run(Command::new("tar").current_dir(&at).args(["-czf", &format!("{name}.tar.gz"), &name]));
        fs::remove_dir_all(root).unwrap();
        let sums = run(Command::new("sh").current_dir(&at).args(["-c", "sha256sum -- *.tar.gz"]));
        fs::write(at.join("SHA256SUMS"), sums).unwrap();
    }

    fn install(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("sh");
        command.arg(SCRIPT).args(arguments).current_dir(self.dir.path());
        command.env("HOME", self.path("home")).env_remove("XDG_DATA_HOME").env_remove("XDG_CONFIG_HOME");
        command.output().unwrap()
    }

    /// Installs what cannot be installed. Returns what is said.
    #[track_caller]
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.install(arguments);
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(!self.path("home/.local/bin/cliq").exists(), "nothing is installed");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

/// Serves the files of a directory over HTTP. Returns the address.
fn serve(dir: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (url, dir) = (format!("http://{}", listener.local_addr().unwrap()), dir.to_owned());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let name = head[0].split(' ').nth(1).unwrap().trim_start_matches('/');
            let (status, body) = match fs::read(dir.join(name)) {
                Ok(body) => ("200 OK", body),
                Err(_) => ("404 Not Found", Vec::new()),
            };
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    url
}

#[test]
fn a_release_is_installed_for_one_user() {
    let release = Release::new("9.8.7");
    let url = serve(&release.path("release"));
    for from in ["release", &url] {
        let output = release.install(&["--from", from]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("installed: cliq ") && said.contains("is not on your PATH"), "{said}");
        let home = release.path("home");
        let version = run(Command::new(home.join(".local/bin/cliq")).arg("--version"));
        assert!(version.starts_with("cliq "), "{version}");
        for file in [
            ".local/bin/cliq-agent",
            ".local/share/man/man1/cliq.1",
            ".local/share/bash-completion/completions/cliq",
            ".local/share/zsh/site-functions/_cliq",
            ".config/fish/completions/cliq.fish",
        ] {
            assert!(home.join(file).is_file(), "{file}");
        }
        fs::remove_dir_all(home).unwrap();
    }
    let elsewhere = release.path("elsewhere");
    assert!(release.install(&["--from", "release", "--to", elsewhere.to_str().unwrap()]).status.success());
    assert!(elsewhere.join("cliq").is_file() && !release.path("home/.local/bin").exists());
}

#[test]
fn nothing_is_installed_that_is_not_what_was_released() {
    let release = Release::new("9.8.7");
    let archive = release.path("release").join(format!("cliq-9.8.7-{}.tar.gz", target()));
    let whole = fs::read(&archive).unwrap();
    for wrong in [whole[..whole.len() - 1].to_vec(), [&whole[..], b"x"].concat()] {
        fs::write(&archive, wrong).unwrap();
        let said = release.refused(&["--from", "release"]);
        assert!(
            said.contains("is not the one of SHA256SUMS") && said.contains("nothing was installed"),
            "{said}"
        );
    }
    fs::remove_file(&archive).unwrap();
    assert!(release.refused(&["--from", "release"]).contains("cannot read release/cliq-9.8.7"));
    fs::write(&archive, whole).unwrap();
    assert!(release.refused(&[]).contains("it is not said where the archives are"));
    assert!(release.refused(&["--from"]).contains("--from needs a value"));
    assert!(release.refused(&["--form", "release"]).contains("there is no option --form"));
    assert!(
        release.refused(&["--from", "release", "--version", "9.8.8"]).contains("no archive of version 9.8.8")
    );
    let url = serve(&release.path("home"));
    assert!(release.refused(&["--from", &url]).contains(&format!("cannot fetch {url}/SHA256SUMS")));
    release.add("9.9.0");
    assert!(release.refused(&["--from", "release"]).contains("several versions"));
    assert!(release.install(&["--from", "release", "--version", "9.9.0"]).status.success());
}
