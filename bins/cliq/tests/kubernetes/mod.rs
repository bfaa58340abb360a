//! Runs in a cluster. Those in a real one are for `scripts/kubernetes`, which makes one or uses that which KUBECONFIG names; `mock.rs` needs a mock of others only.

mod chart;
mod cluster;
mod evaluations;
mod failures;
mod mock;
mod plans;
mod runs;
mod sandbox;
mod server;
mod triggers;
