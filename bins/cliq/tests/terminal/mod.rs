//! The full-screen terminal, in a real one: driven by keys only, and killed.

mod ends;
mod person;
mod runs;
mod servers;
mod watch;

use std::path::Path;

use cliq_testkit::Terminal;
use cliq_testkit::machine::Machine;

/// Opens a terminal in a directory of a machine, with `cliq` on its path.
fn terminal(machine: &Machine, dir: &Path, columns: u16, rows: u16) -> Terminal {
    let program = Path::new(env!("CARGO_BIN_EXE_cliq")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let home = machine.home.to_str().unwrap();
    let variables =
        [("PATH", path.as_str()), ("CLIQ_HOME", home), ("USER", "ann"), ("TERM", "screen-256color")];
    Terminal::open(columns, rows, dir, &variables)
}
