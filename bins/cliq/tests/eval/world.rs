//! A directory with a team whose agent does what its role says.

use std::fmt::Write;

use cliq_testkit::env::{CommandOutput, Env};
use serde_json::Value;

/// Writes `answer.txt` with the text of the role; `script:` lines of the role are run before.
const WORKER: &str = r#"
ok
value() { sed -n "s/^$1: *//p" "$CLIQ_DIR/roles/worker.md" | head -n 1; }
value answer > answer.txt
command=$(value script)
[ -z "$command" ] || eval "$command"
cost=$(value cost)
say '"status":"complete","result":{"usage":{"model":"m","tokens_in":100,"tokens_out":10,"cost_usd":'"${cost:-0.01}"'}}'
"#;

pub(crate) struct World {
    pub(crate) env: Env,
}

impl World {
    pub(crate) fn new() -> Self {
        let env = Env::bare();
        let workflow = "workflow: {phases: [{name: worker, type: standard, agent: worker}]}\n";
        env.team(workflow, &[("worker", WORKER)]);
        env.write("../team/roles/worker.md", "answer: right\n");
        Self { env }
    }

    /// A role file for a variant.
    pub(crate) fn role(&self, name: &str, text: &str) {
        self.env.write(&format!("{name}.md"), text);
    }

    /// Writes the suite: its top lines, cases, and variants with roles of these names.
    pub(crate) fn suite(&self, top: &str, cases: &str, variants: &[&str]) {
        let mut text = format!("name: test\n{top}\ncases:\n{cases}\nvariants:\n");
        for name in variants {
            writeln!(text, "  - {{name: {name}, team: ../team, roles: {{worker: {name}.md}}}}").unwrap();
        }
        self.env.write("suite.yml", &text);
    }

    pub(crate) fn eval(&self, arguments: &[&str]) -> CommandOutput {
        self.env.cliq([&["eval"][..], arguments].concat())
    }

    /// Runs the suite and returns its report.
    #[track_caller]
    pub(crate) fn report(&self, arguments: &[&str]) -> Value {
        self.eval(&[&["suite.yml", "--json"][..], arguments].concat()).expect(0).json()
    }
}

/// Case with the check that the answer is right.
pub(crate) fn case(name: &str) -> String {
    format!(
        "  - {{name: {name}, requirement: Do it., checks: [{{name: right, run: grep -qx right answer.txt}}]}}\n"
    )
}
