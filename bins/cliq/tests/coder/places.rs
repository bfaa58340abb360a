//! Limits that all processes of a machine share.

use std::fmt::Write;

use cliq_scripted_model::Behavior;

use crate::coder::world::{World, call, calls, says, script};

#[test]
fn eight_phases_share_two_places_and_all_of_them_end() {
    let mut workflow = "workflow:\n  phases:\n".to_owned();
    for n in 0..8 {
        let _ = writeln!(workflow, "    - {{name: work{n}, type: standard, agent: AGENT}}");
    }
    let mut reply = calls("", &[call("list_files", serde_json::json!({}))]);
    reply["delay_ms"] = 150.into();
    let mut last = says("Done.");
    last["delay_ms"] = 150.into();
    let behavior = Behavior { limits_every: Some(4), ..Behavior::default() };
    let world = World::new("openai-api", &workflow, &script(&[reply, last]), behavior);
    world.env.cliq(["settings", "set", "agents.openai-api.max_concurrent", "2"]).expect(0);
    world.env.cliq(["run", "--headless"]).expect(0);
    let requests = world.model.requests();
    assert!(requests.len() > 16, "16 replies, and those that were refused: {}", requests.len());
    let mut times: Vec<(u64, i32)> =
        requests.iter().flat_map(|request| [(request.received_us, 1), (request.answered_us, -1)]).collect();
    // An end comes before a start of the same time.
    times.sort_unstable();
    let mut under_way = 0;
    let most = times.iter().map(|(_, change)| {
        under_way += change;
        under_way
    });
    assert_eq!(most.max(), Some(2));
    let work: u64 = requests.iter().map(|request| request.answered_us - request.received_us).sum();
    let took =
        requests.iter().map(|request| request.answered_us).max().unwrap_or(0) - requests[0].received_us;
    println!("{} requests in {} ms, ideal {} ms", requests.len(), took / 1000, work / 2000);
    let tickets = world.env.files("../home/limits/openai-api");
    assert!(
        tickets.iter().all(|name| !name.contains(".running") && !name.contains(".waiting")),
        "{tickets:?}"
    );
}

#[test]
fn cancelled_run_gives_its_places_back() {
    let workflow = "workflow:\n  phases:\n    - {name: a, type: standard, agent: AGENT}\n    - {name: b, type: standard, agent: AGENT}\n";
    let mut slow = says("Done.");
    slow["delay_ms"] = 20_000.into();
    let world = World::new("openai-api", workflow, &script(&[slow]), Behavior::default());
    world.env.cliq(["settings", "set", "agents.openai-api.max_concurrent", "1"]).expect(0);
    let mut run = world.env.spawn(["run", "--headless"]);
    world.env.wait_for("a request", || !world.model.requests().is_empty());
    world.env.cliq(["cancel"]).expect(0);
    assert!(run.wait().is_ok());
    assert_eq!(world.model.requests().len(), 1, "the second phase waited for a place");
    let tickets = world.env.files("../home/limits/openai-api");
    assert!(tickets.iter().all(|name| !name.contains(".running")), "{tickets:?}");
}

#[test]
fn another_model_goes_on_after_a_permanent_error() {
    let workflow = "workflow:\n  phases:\n    - {name: work, type: standard, agent: AGENT}\n";
    let look = calls("", &[call("list_files", serde_json::json!({}))]);
    let world = World::new("openai-api", workflow, &script(&[look, says("Done.")]), Behavior::default());
    let set = |key: &str, value: &str| {
        world.env.cliq(["settings", "set", "-g", key, value]).expect(0);
    };
    // The server answers 404 at this address.
    set("agents.first.kind", "anthropic");
    set("agents.first.model", "gone");
    set("agents.first.base_url", &format!("{}/x?y=", world.model.base("openai")));
    set("agents.first.fallback", "openai-api");
    world.env.cliq(["settings", "set", "default_agent", "first"]).expect(0);
    world.env.write(
        "../team/team.yml",
        "name: \"@local/x\"\nworkflow: {phases: [{name: work, type: standard, agent: first}]}\n",
    );
    world.env.cliq(["assemble", "../team"]).expect(0);
    world.env.cliq(["run", "--headless"]).expect(0).says("goes on with openai-api");
    let kinds: Vec<_> = world.transcript("work.1").into_iter().map(|line| line["type"].clone()).collect();
    assert!(
        kinds.iter().any(|kind| kind == "notice") && kinds.last().is_some_and(|kind| kind == "end"),
        "{kinds:?}"
    );
    set("agents.first.fallback", "missing");
    world.env.cliq(["run", "--headless", "-f"]).expect(3).says("names `missing`");
}
