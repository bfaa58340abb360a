//! Options of containers from the settings.

use std::collections::BTreeMap;

use cliq_settings::{Environment, Settings};

/// The settings `docker.*` (docs/docker.md).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DockerOptions {
    /// The image.
    pub image: String,
    /// The most memory, in bytes. There is no swap beside it.
    pub memory: u64,
    /// The most processors.
    pub cpus: f64,
    /// The most processes and threads.
    pub pids_limit: usize,
    /// The network.
    pub network_mode: String,
    /// Whether only the workspace and temporary directories can be written.
    pub read_only_rootfs: bool,
    /// The most containers at a time.
    pub max_containers: usize,
    /// More hosts, as `NAME:ADDRESS`.
    pub extra_hosts: Vec<String>,
    /// Variables, which may be secret.
    pub env: BTreeMap<String, String>,
    /// Address of the engine, if it is set.
    pub host: Option<String>,
}

impl DockerOptions {
    /// The options in settings.
    #[must_use]
    pub(super) fn of(settings: &Settings) -> Self {
        let text = |key: &str| settings.text(key).unwrap_or_default();
        Self {
            image: text("docker.image"),
            memory: settings.size("docker.memory").unwrap_or(4 << 30),
            cpus: settings.amount("docker.cpus").unwrap_or(2.0),
            pids_limit: settings.count("docker.pids_limit").unwrap_or(4096),
            network_mode: text("docker.network_mode"),
            read_only_rootfs: settings.flag("docker.read_only_rootfs"),
            max_containers: settings.count("docker.max_containers").unwrap_or(4),
            extra_hosts: settings.list("docker.extra_hosts"),
            env: settings.texts_below("docker.env"),
            host: settings.text("docker.host"),
        }
    }
}

/// The address of the engine: what is set, else `DOCKER_HOST`, else the first of the usual sockets of Docker and Podman that is there.
#[must_use]
pub(super) fn engine_address(options: &DockerOptions, environment: &Environment) -> String {
    let set = options.host.clone().or_else(|| environment.get("DOCKER_HOST").map(str::to_owned));
    set.unwrap_or_else(|| {
        let own = environment.get("XDG_RUNTIME_DIR").map(|dir| format!("{dir}/podman/podman.sock"));
        let docker = "/var/run/docker.sock".to_owned();
        let mut usual = [Some(docker.clone()), own, Some("/run/podman/podman.sock".to_owned())];
        let there =
            usual.iter_mut().filter_map(Option::take).find(|path| std::path::Path::new(path).exists());
        format!("unix://{}", there.unwrap_or(docker))
    })
}
