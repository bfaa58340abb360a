//! Settings `docker.*`.

use std::collections::BTreeMap;

use super::group;
use crate::secret::Secret;

group! {
    /// Settings of containers.
    Backend struct DockerSettings {
        "docker.enabled", enabled: bool = "false",
            "whether runs work in containers, as with `cliq run --docker`";
        "docker.host", host: Option<String>,
            "where the engine is, such as unix:///run/user/1000/podman/podman.sock; without it DOCKER_HOST, else the usual socket of Docker or Podman";
        "docker.image", image: String = "cliq-runner:latest",
            "the image that runs work in; deploy/Dockerfile makes it";
        "docker.memory", memory: u64 = "4g", "the most memory of a run, such as 512m or 4g";
        "docker.cpus", cpus: f64 = "2", "how many processors a run may keep busy";
        "docker.pids_limit", pids_limit: usize = "4096", "how many processes and threads a run may have";
        "docker.network_mode", network_mode: String = "bridge",
            "the network of a run: bridge, none, host, or a network of the engine";
        "docker.read_only_rootfs", read_only_rootfs: bool = "true",
            "whether a run may write to its workspace and to temporary directories only";
        "docker.max_containers", max_containers: usize = "4",
            "how many containers run at the same time; more runs wait, first come, first served";
        "docker.extra_hosts", extra_hosts: Vec<String>,
            "names of hosts that a run knows beside others, as NAME:ADDRESS";
        "docker.env.*", env: BTreeMap<String, Secret>, "a variable of the environment of a run";
    }
}
