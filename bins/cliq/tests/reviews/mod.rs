//! People as gates: reviews of real runs, answered in each way, with agents, orchestrators and servers that are killed, and hostile content.

mod a2a;
mod answers;
mod browser;
pub(crate) mod comments;
mod content;
mod crashes;
mod demo;
mod notices;
mod pages;
mod parking;
mod parking_teams;
mod records;
mod runs;
mod servers;
pub(crate) mod waiting;
