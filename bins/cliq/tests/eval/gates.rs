//! Gates and baselines, as in continuous integration.

use crate::eval::world::{World, case};

fn world() -> World {
    let world = World::new();
    world.role("main", "answer: right\ncost: 0.02\n");
    world.suite("repeats: 6", &["a", "b"].map(case).concat(), &["main"]);
    world
}

#[test]
fn gate_decides_the_exit_code() {
    let world = world();
    world
        .eval(&["suite.yml", "--gate", "pass_rate >= 0.9 && cost <= 0.05"])
        .expect(0)
        .says("gate holds for main");
    let failed = world.eval(&["show", "--gate", "cost < 0.01"]).expect(5);
    failed.says("gate does not hold for main: {\"cost\":0.02}");
    let json = world
        .eval(&["show", "--json", "--gate", "passed == 12 && trials == 12 && infrastructure == 0"])
        .expect(0)
        .json();
    assert_eq!(
        (json["gate"]["holds"].as_bool(), json["gate"]["variants"][0]["variant"].as_str()),
        (Some(true), Some("main"))
    );
}

#[test]
fn gate_compares_with_a_baseline() {
    let world = world();
    world.eval(&["suite.yml", "--save-baseline", "b.json"]).expect(0).says("wrote b.json");
    let gate = "!regressed && pass_rate >= baseline.pass_rate - 0.2";
    world.eval(&["suite.yml", "--baseline", "b.json", "--gate", gate]).expect(0);
    world.eval(&["show", "--baseline", "b.json", "--gate", "pass_rate >= baseline - 0.05"]).expect(0);
    world.role("main", "answer: wrong\n");
    let failed = world.eval(&["suite.yml", "--baseline", "b.json", "--gate", "!regressed"]).expect(5);
    failed.says("\"regressed\":true");
    // One failure more is no regression yet: too few trials show it.
    world.eval(&["show", "--baseline", "b.json", "--gate", "baseline.trials == 12"]).expect(0);
}

#[test]
fn mistakes_are_refused_before_anything_runs() {
    let world = world();
    world.eval(&["suite.yml", "--gate", "pas_rate > 1"]).expect(2).says("did you mean `pass_rate`?");
    world.eval(&["suite.yml", "--gate", "pass_rate >"]).expect(2).says("cannot evaluate");
    world
        .eval(&["suite.yml", "--baseline", "none.json"])
        .expect(2)
        .says("cannot read the baseline none.json");
    world.env.write("bad.json", "{\"version\": 7}");
    world.eval(&["suite.yml", "--baseline", "bad.json"]).expect(2).says("bad.json");
    world.eval(&["suite.yml", "--variant", "mian"]).expect(2).says("it has main");
    world.eval(&["nowhere.yml"]).expect(2).says("cliq eval new");
    world.env.write("broken.yml", "name: x\ncases:\n  - name: a\n    requirment: b\nvariants: []\n");
    let refused = world.eval(&["broken.yml"]).expect(2);
    refused.says("broken.yml:4:5").says("did you mean `requirement`?");
    assert_eq!(world.eval(&["list", "--json"]).json()["evaluations"].as_array().unwrap().len(), 0);
    world.eval(&["suite.yml", "--check"]).expect(0).says("2 cases × 1 variants × 6 repeats = 12 trials");
}

#[test]
fn unknown_cost_is_not_a_cost_of_zero() {
    let world = World::new();
    world.role("main", "answer: right\nscript: say '\"status\":\"complete\"'; exit 0\n");
    world.suite("repeats: 1", &case("a"), &["main"]);
    let failed = world.eval(&["suite.yml", "--gate", "cost <= 0.05"]).expect(2);
    failed.says("variant main: `<=` cannot be applied to (null_type, double)");
    let limit = "  - {name: a, requirement: Answer., checks: [{name: cheap, expr: cost <= 0.05}]}\n";
    world.suite("repeats: 1", limit, &["main"]);
    let report = world.report(&[]);
    assert_eq!(report["counts"]["passed"], 0, "{report}");
}
