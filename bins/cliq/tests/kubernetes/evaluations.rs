//! Trials of an evaluation in Jobs.

use cliq_testkit::chain;

use crate::kubernetes::cluster::{project, said};

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn trials_work_in_jobs_if_a_variant_says_so() {
    let env = project(&chain(&["hostname > answer.txt"]), &[]);
    env.cliq(["settings", "set", "-g", "kubernetes.enabled", "false"]).expect(0);
    env.cliq(["settings", "unset", "-g", "database.url"]).expect(0);
    let suite = "name: jobs\nrepeats: 2\ncases: [{name: a, requirement: Where?, checks: [{name: elsewhere, run: \"grep -q '^cliq-' answer.txt\"}]}]\nvariants:\n  - {name: here, team: ../team}\n  - {name: job, team: ../team, settings: {kubernetes: {enabled: true}}}\n";
    env.write("suite.yml", suite);
    let report = env.cliq(["eval", "suite.yml", "--json"]).expect(0).json();
    let passed: Vec<_> =
        report["variants"].as_array().unwrap().iter().map(|variant| variant["passed"].as_u64()).collect();
    assert_eq!(passed, [Some(0), Some(2)], "{:#}", report["trials"]);
    let running = said(&["get", "pods", "--field-selector", "status.phase=Running", "-o", "name"]);
    assert!(!running.contains("cliq-"), "{running}");
}
