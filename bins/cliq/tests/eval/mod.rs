//! Evaluations: whole suites by the built program, processes that are killed, judges and teams whose model is a script.

mod budgets;
mod cases;
mod examples;
mod gates;
mod judges;
mod kills;
mod reports;
mod world;
