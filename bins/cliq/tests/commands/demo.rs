//! `cliq demo`: real checks, real repairs.

use cliq_testkit::env::Env;

#[test]
fn demo_repairs_the_pages_and_passes() {
    let env = Env::bare();
    env.cliq(["demo"]).expect(0).says("ROUTE to fixer").says("PASS: 3 of 3 commands pass").says("COMPLETED");
    // The pages pass now, whoever asks; and they did not before.
    for check in ["links", "headings", "front-matter"] {
        let run = |dir: &str| {
            let mut sh = std::process::Command::new("sh");
            sh.arg(format!("checks/{check}.sh")).current_dir(env.path(dir)).output().unwrap()
        };
        assert!(run("cliq-demo").status.success(), "{check}");
        let results = env.read_json("cliq-demo/.cliq/channels/quality--fixer/handoff.json");
        let before =
            results["data"]["checks"].as_array().unwrap().iter().find(|c| c["name"] == check).unwrap();
        assert_eq!(before["pass"], false, "{check} found nothing the first time");
    }
    assert!(env.read("cliq-demo/pages/guide/install.md").starts_with("---\ntitle: Install Tidewater\n---\n"));
    let report = env.read("cliq-demo/report.md");
    assert!(report.contains("leads nowhere") && report.contains("- pass: links"), "{report}");
    // A shell comment in a code block is not a heading.
    assert!(env.read("cliq-demo/pages/guide/install.md").contains("\n# this is a comment, not a heading\n"));

    let status = env.command(["status", "--json"]).current_dir(env.path("cliq-demo")).output().unwrap();
    assert_eq!(cliq_testkit::env::done(&status).json()["state"], "completed");
    env.cliq(["demo", "cliq-demo"]).expect(4).says("is not empty");
    env.cliq(["demo"]).expect(0).says("cliq-demo-2/report.md");
}

#[test]
fn demo_agents_follow_the_protocol() {
    let env = Env::bare();
    env.cliq(["demo", "d"]).expect(0);
    // Two of them need the demo's own files to work; answering a test message needs nothing.
    let report = env.cliq(["agent", "check", "--json", "--", "d/team/agents/inspector.sh"]).json();
    let test: Vec<_> =
        report["findings"].as_array().unwrap().iter().filter(|f| f["dialogue"] == "test").collect();
    assert!(!test.is_empty() && test.iter().all(|f| f["kept"] == true), "{test:#?}");
}
