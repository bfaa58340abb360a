//! Expressions in CEL over JSON values (docs/expressions.md).
//!
//! [`Expression::parse`] checks length and nesting and finds the names that an expression reads; [`Expression::evaluate`] computes its
//! value within a bounded number of steps. Types are inferred as far as literals and operators determine them.
//!
//! Absent on purpose: knowledge of teams. Which names exist, and which phases are upstream, is checked by `cliq-workflow`.

mod evaluate;
mod expression;
mod infer;
mod meter;
mod references;

pub use evaluate::EvaluationError;
pub use expression::{Expression, MAX_BYTES, MAX_DEPTH, MAX_LENGTH, MAX_STEPS, SyntaxError};
pub use infer::Kind;
pub use references::Reference;

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
