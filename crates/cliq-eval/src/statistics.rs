//! Statistics of pass rates: intervals, consistency, comparison of paired variants, repeats needed. Pure.
//!
//! A table is a list of [`CaseCounts`] or [`PairedCase`]s. All intervals have the confidence level [`CONFIDENCE`]. Resampling uses a
//! generator with a fixed seed, so that a report of the same trials is the same each time.

mod bootstrap;
mod comparison;
mod distribution;
mod interval;
mod repeats;
mod summary;

pub use bootstrap::bootstrap_difference;
pub use comparison::{Comparison, Conclusion, DEFAULT_MARGIN, PairedCase, compare};
pub use distribution::mcnemar_exact;
pub use interval::{CONFIDENCE, Interval, newcombe, wilson};
pub use repeats::repeats_needed;
pub use summary::{CaseCounts, flip_rate, pass_power, quantile};
