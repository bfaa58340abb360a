//! Model agents with tools: whole runs against a server that plays the APIs from a script.

mod assistant;
mod conversation_kills;
mod conversations;
mod demo;
mod hostile;
pub(crate) mod kills;
mod limits;
mod loops;
mod places;
mod quirks;
mod servers;
mod skills;
mod table;
mod tools;
mod traces;
pub(crate) mod world;
