//! Packages: a registry that others wrote, with TLS and a password, and homes that publish to it and install from it.

mod attacks;
mod lock;
mod registry;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cliq_testkit::env::{CommandOutput, Env, done};
use cliq_testkit::machine::wait_for;

/// `maria` with the password `open sesame`.
const PASSWORDS: &str = "maria:$2a$04$awnpwJHjC/l2WqhOSwpLXeG.MF.wqQqTbR0TiaYH5M7GJFtxCNeF2\n";

/// A running registry with the files of its clients.
pub(crate) struct Registry {
    dir: tempfile::TempDir,
    server: Child,
    pub(crate) host: String,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Registry {
    /// Builds and starts the registry. `None` if this machine cannot.
    pub(crate) fn start() -> Option<Self> {
        let program = build()?;
        let dir = tempfile::tempdir().unwrap();
        if !certificates(dir.path()) {
            cliq_testkit::not_run("there is no openssl to make certificates");
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = |name: &str| dir.path().join(name).display().to_string();
        fs::write(at("htpasswd"), PASSWORDS).unwrap();
        let config = format!(
            "version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\nstorage:\n  filesystem: {{rootdirectory: {}}}\n  \
             delete: {{enabled: true}}\nhttp:\n  addr: 127.0.0.1:{port}\n  tls: {{certificate: {}, key: {}}}\nauth:\n  \
             htpasswd: {{realm: test, path: {}}}\n",
            at("store"),
            at("cert.pem"),
            at("key.pem"),
            at("htpasswd")
        );
        fs::write(at("config.yml"), config).unwrap();
        let server = Command::new(program)
            .args(["serve", &at("config.yml")])
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for("the registry", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
        let host = format!("localhost:{port}");
        fs::create_dir(at("docker")).unwrap();
        // `maria:open sesame`
        let auth = format!("{{\"auths\": {{\"{host}\": {{\"auth\": \"bWFyaWE6b3BlbiBzZXNhbWU=\"}}}}}}");
        fs::write(dir.path().join("docker/config.json"), auth).unwrap();
        Some(Self { dir, server, host })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A home whose scope `@acme` is in this registry.
    pub(crate) fn home(&self) -> Env {
        let env = Env::bare();
        let place = format!("oci://{}/teams", self.host);
        env.cliq(["settings", "set", "--global", "registries.acme", &place]).expect(0);
        env
    }

    /// Runs `cliq` with the certificate and the credentials of this registry.
    #[must_use = "assert the exit code"]
    pub(crate) fn cliq<I: AsRef<std::ffi::OsStr>>(
        &self,
        env: &Env,
        args: impl IntoIterator<Item = I>,
    ) -> CommandOutput {
        done(&self.command(env, args).output().unwrap())
    }

    pub(crate) fn command<I: AsRef<std::ffi::OsStr>>(
        &self,
        env: &Env,
        args: impl IntoIterator<Item = I>,
    ) -> Command {
        let mut command = env.command(args);
        command.env("SSL_CERT_FILE", self.path("ca.pem")).env("DOCKER_CONFIG", self.path("docker"));
        command
    }

    /// Makes an SSH key. Gives its file.
    pub(crate) fn key(&self, name: &str) -> String {
        let file = self.path(name).display().to_string();
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", &file])
            .status();
        assert!(made.unwrap().success());
        file
    }

    /// Demands a signature by this key for the packages of `@acme`.
    pub(crate) fn trust(env: &Env, key: &str) {
        let public = fs::read_to_string(format!("{key}.pub")).unwrap();
        let keys = serde_json::json!([public.trim()]).to_string();
        env.cliq(["settings", "set", "--global", "trust.acme.signers", &keys]).expect(0);
    }

    /// The file in which the registry keeps a blob.
    pub(crate) fn blob_file(&self, digest: &str) -> PathBuf {
        let hex = digest.trim_start_matches("sha256:");
        self.path("store/docker/registry/v2/blobs/sha256").join(&hex[..2]).join(hex).join("data")
    }

    /// Sends a request with curl. Gives status, headers and body.
    pub(crate) fn curl(&self, args: &[&str], path: &str) -> (u16, String, Vec<u8>) {
        let url =
            if path.starts_with("https:") { path.to_owned() } else { format!("https://{}{path}", self.host) };
        let headers = self.path("headers");
        let output = Command::new("curl")
            .args(["-sS", "-u", "maria:open sesame", "-w", "\n%{http_code}"])
            .arg("--cacert")
            .arg(self.path("ca.pem"))
            .arg("-D")
            .arg(&headers)
            .args(args)
            .arg(url)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let at = output.stdout.iter().rposition(|&byte| byte == b'\n').unwrap();
        let status = std::str::from_utf8(&output.stdout[at + 1..]).unwrap().parse().unwrap();
        (status, fs::read_to_string(headers).unwrap(), output.stdout[..at].to_vec())
    }

    /// Uploads a blob as any client would. Gives its digest.
    pub(crate) fn put_blob(&self, repository: &str, bytes: &[u8]) -> String {
        let digest = cliq_packages::Digest::of(bytes).to_string();
        let (status, headers, _) = self.curl(&["-X", "POST"], &format!("/v2/{repository}/blobs/uploads/"));
        assert_eq!(status, 202);
        let line = headers.lines().find(|line| line.to_lowercase().starts_with("location:")).unwrap();
        let place = line.split_once(':').unwrap().1.trim().to_owned();
        let file = self.path("upload");
        fs::write(&file, bytes).unwrap();
        let data = format!("@{}", file.display());
        let args = ["-X", "PUT", "-H", "Content-Type: application/octet-stream", "--data-binary", &data];
        let (status, _, body) = self.curl(&args, &format!("{place}&digest={digest}"));
        assert_eq!(status, 201, "{}", String::from_utf8_lossy(&body));
        digest
    }

    /// Uploads a manifest. Gives its digest.
    pub(crate) fn put_manifest(&self, repository: &str, tag: &str, bytes: &[u8]) -> String {
        let file = self.path("upload");
        fs::write(&file, bytes).unwrap();
        let data = format!("@{}", file.display());
        let kind = "Content-Type: application/vnd.oci.image.manifest.v1+json";
        let (status, _, body) = self.curl(
            &["-X", "PUT", "-H", kind, "--data-binary", &data],
            &format!("/v2/{repository}/manifests/{tag}"),
        );
        assert_eq!(status, 201, "{}", String::from_utf8_lossy(&body));
        cliq_packages::Digest::of(bytes).to_string()
    }

    /// The manifest of a tag, as any client reads it.
    pub(crate) fn manifest(&self, repository: &str, tag: &str) -> serde_json::Value {
        let accept = "Accept: application/vnd.oci.image.manifest.v1+json";
        let (status, _, body) = self.curl(&["-H", accept], &format!("/v2/{repository}/manifests/{tag}"));
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }
}

/// The registry, built from the Go module beside this file.
fn build() -> Option<PathBuf> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packages/registry");
    cliq_testkit::go_program("registry", &module)
}

/// A certificate authority and a certificate of it for localhost.
fn certificates(dir: &Path) -> bool {
    let script = "set -e
        new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
        openssl req -x509 $new -keyout ca.key -out ca.pem -days 3 -subj /CN=tests
        openssl req $new -keyout key.pem -out request.pem -subj /CN=localhost
        echo subjectAltName=DNS:localhost >extensions
        openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 3 -extfile extensions";
    Command::new("sh")
        .args(["-c", script])
        .current_dir(dir)
        .output()
        .is_ok_and(|output| output.status.success())
}

/// A team whose command writes a word to a file, with a skill.
pub(crate) fn team(env: &Env, folder: &str, name: &str, version: &str, word: &str) {
    env.write(
        &format!("{folder}/team.yml"),
        &format!(
            "name: \"{name}\"\nversion: {version}\ndescription: Writes {word}\nphases:\n  - name: write\n    type: exec\n    \
             commands:\n      - {{name: say, run: echo {word} >>written.txt}}\n"
        ),
    );
    env.write(
        &format!("{folder}/skills/words/SKILL.md"),
        &format!("---\nname: words\ndescription: Words such as {word}.\n---\nUse {word}.\n"),
    );
}

/// A team that runs other teams, one after the other.
pub(crate) fn team_of(env: &Env, folder: &str, name: &str, version: &str, teams: &[&str]) {
    let phase = |(number, team): (usize, &&str)| {
        let after =
            if number > 0 { format!("    depends_on: [part{}]\n", number - 1) } else { String::new() };
        format!("  - name: part{number}\n    type: team\n    team: \"{team}\"\n{after}")
    };
    let phases: String = teams.iter().enumerate().map(phase).collect();
    let text = format!("name: \"{name}\"\nversion: {version}\ndescription: Runs teams\nphases:\n{phases}");
    env.write(&format!("{folder}/team.yml"), &text);
}
