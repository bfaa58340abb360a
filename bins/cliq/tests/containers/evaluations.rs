//! Trials of an evaluation in containers.

use cliq_testkit::chain;

use crate::containers::engine::{containers, project};

#[test]
fn trials_work_in_containers_if_a_variant_says_so() {
    let Some(env) = project(&chain(&["hostname > answer.txt"]), &[]) else { return };
    env.cliq(["settings", "unset", "-g", "docker.enabled"]).expect(0);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let check = format!("! grep -q '^{}' answer.txt", host.trim());
    let suite = format!(
        "name: contained\nrepeats: 2\ncases: [{{name: a, requirement: Where?, checks: [{{name: elsewhere, run: \"{check}\"}}]}}]\nvariants:\n  - {{name: here, team: ../team}}\n  - {{name: container, team: ../team, settings: {{docker.enabled: true}}}}\n"
    );
    env.write("suite.yml", &suite);
    let report = env.cliq(["eval", "suite.yml", "--json"]).expect(0).json();
    let passed: Vec<_> =
        report["variants"].as_array().unwrap().iter().map(|variant| variant["passed"].as_u64()).collect();
    assert_eq!(passed, [Some(0), Some(2)], "{:#}", report["trials"]);
    assert_eq!(containers(&env.home()), [""; 0]);
}
