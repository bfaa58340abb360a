//! `cliq acp`: the agent for editors, driven over pipes, and by clients that others wrote.

mod clients;
pub(crate) mod editor;
mod gates;
mod protocol;
mod registry;
mod runs;
mod sessions;
