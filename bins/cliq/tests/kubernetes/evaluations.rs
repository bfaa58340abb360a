//! Trials of an evaluation in Jobs.

use cliq_testkit::machine::wait_for;
use cliq_testkit::{PostgresServer, chain};

use crate::kubernetes::cluster::{of_run, project};

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn trials_work_in_jobs_if_a_variant_says_so() {
    let Some(database) = PostgresServer::start() else { return };
    let env = project(&chain(&["hostname > answer.txt"]), &[]);
    env.cliq(["settings", "set", "-g", "kubernetes.enabled", "false"]).expect(0);
    env.cliq(["settings", "set", "-g", "database.url", &database.database()]).expect(0);
    let suite = "name: jobs\nrepeats: 2\ncases: [{name: a, requirement: Where?, checks: [{name: elsewhere, run: \"grep -q '^cliq-' answer.txt\"}]}]\nvariants:\n  - {name: here, team: ../team}\n  - {name: job, team: ../team, settings: {kubernetes.enabled: true}}\n";
    env.write("suite.yml", suite);
    let report = env.cliq(["eval", "suite.yml", "--json"]).expect(0).json();
    let passed: Vec<_> =
        report["variants"].as_array().unwrap().iter().map(|variant| variant["passed"].as_u64()).collect();
    assert_eq!(passed, [Some(0), Some(2)], "{:#}", report["trials"]);
    for trial in report["trials"].as_array().unwrap().iter().filter(|trial| trial["variant"] == "job") {
        let id = trial["run_id"].as_str().unwrap();
        assert_eq!(of_run("jobs", id).len(), 1, "{trial}");
        wait_for("its pod ends", || {
            of_run("pods", id).iter().all(|pod| pod["status"]["phase"] != "Running").then_some(())
        });
    }
}
