//! Model agents with tools: whole runs against a server that plays the APIs from a script.

mod demo;
mod hostile;
mod kills;
mod limits;
mod loops;
mod quirks;
mod servers;
mod traces;
mod world;
