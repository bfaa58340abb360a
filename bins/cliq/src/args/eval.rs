//! Arguments of `cliq eval`.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand};

/// Evaluate teams: run a suite of cases with several variants, and compare them.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct EvalArgs {
    #[command(subcommand)]
    pub(crate) command: Option<EvalCommand>,
    /// The suite.
    #[arg(value_name = "SUITE.yml")]
    pub(crate) suite: Option<Utf8PathBuf>,
    /// Check the suite, and run nothing.
    #[arg(long)]
    pub(crate) check: bool,
    /// Continue an evaluation: the last unfinished one of the suite, or the one with this id.
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub(crate) resume: Option<String>,
    /// Repeats of each case, in place of the suite's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) repeats: Option<u32>,
    /// Maximum number of trials at the same time, in place of the suite's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) max_parallel: Option<u32>,
    /// Run this variant only. Can be repeated.
    #[arg(long = "variant", value_name = "NAME")]
    pub(crate) variants: Vec<String>,
    /// Run this case only. Can be repeated.
    #[arg(long = "case", value_name = "NAME")]
    pub(crate) cases: Vec<String>,
    #[command(flatten)]
    pub(crate) output: EvalOutput,
}

/// Forms of a report, and conditions on it.
#[derive(Debug, Args)]
pub(crate) struct EvalOutput {
    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the report as markdown to FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<Utf8PathBuf>,
    /// Write the report as one HTML page to FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<Utf8PathBuf>,
    /// Exit with code 5 unless this expression (CEL) holds for each variant, such as `pass_rate >= 0.8 && !regressed`.
    #[arg(long, value_name = "EXPR")]
    pub(crate) gate: Option<String>,
    /// Results to compare with: `baseline` and `regressed` in the expression.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<Utf8PathBuf>,
    /// Write the results to FILE, as a baseline for later.
    #[arg(long, value_name = "FILE")]
    pub(crate) save_baseline: Option<Utf8PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    /// List evaluations, newest first.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the report of an evaluation.
    Show {
        /// The id, or the end of it. Default: the last evaluation.
        id: Option<String>,
        #[command(flatten)]
        output: EvalOutput,
    },
    /// Compare the variants of two evaluations on the cases that both have.
    Compare {
        /// The first evaluation: its id, the end of it, or a file that `--json` wrote.
        first: String,
        /// The second evaluation.
        second: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Add a case to a suite, from a run: its requirement, inputs and the files that it started with.
    Add {
        /// The run: its id, or the end of it. Default: the last run of this project.
        run: Option<String>,
        /// The suite. It is created if it is missing.
        #[arg(long, value_name = "FILE", default_value = "suite.yml")]
        to: Utf8PathBuf,
        /// Name of the case. Default: from the title of the run.
        #[arg(long)]
        name: Option<String>,
    },
    /// Write a bundled suite into a new directory.
    New {
        /// The suite: `simulated` needs no model, `documents` and `code` work with any.
        #[arg(value_parser = ["simulated", "documents", "code"])]
        example: String,
        /// A new or empty directory. Default: the name of the suite.
        dir: Option<Utf8PathBuf>,
    },
    /// Print the JSON Schema of suites, for editors.
    Schema,
}
