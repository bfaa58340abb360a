//! The machines of plans and tasks: tables, and what holds for all events (docs/signals.md).

mod answers;
mod guidance;
mod life_of_a_plan;
mod properties;
mod shared_files;
mod steps;
mod world;
