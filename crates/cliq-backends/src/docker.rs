//! Runs in containers (docs/docker.md): the whole pipeline of a run works in one container, with its workspace mounted at the same
//! path, as the user who started it, without capabilities.
//!
//! The container runs `cliq contained`, which reads settings and variables from its standard input (so that no key is in the
//! container's description) and becomes `cliq run --headless --json --no-docker`. Lock, journal and status of the run lie in the
//! workspace: `cliq status`, `logs`, `cancel` and a server see no difference.
//!
//! [`Docker`] is the backend. [`Engine`] speaks the Engine's API of Docker and Podman; [`description`] makes the description of a container, without IO; [`Slot`] keeps the bound on
//! containers at a time.

mod backend;
mod description;
mod engine;
mod error;
mod options;
mod outcome;
mod slot;

pub use backend::Docker;
use description::Job;
use engine::{ContainerState, Engine, Stream};
pub use error::DockerError;
use options::{DockerOptions, engine_address};
use outcome::{ContainerEnd, ContainerFacts};
use slot::Slot;
