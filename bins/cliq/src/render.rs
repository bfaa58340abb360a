//! Rendering what the libraries hand over.

pub(crate) mod diagnostics;
pub(crate) mod difference;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod sandbox;
pub(crate) mod summary;
pub(crate) mod transcript;
pub(crate) mod usage;
