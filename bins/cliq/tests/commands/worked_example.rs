//! A worked example: architect, developer, a reviewer that routes once and then passes.

use cliq_testkit::env::Env;

const WORKFLOW: &str = r#"workflow:
  phases:
    - name: architect
      type: standard
      agent: architect
    - name: developer
      type: standard
      agent: developer
      depends_on: [architect]
    - name: reviewer
      type: gate
      agent: reviewer
      depends_on: [developer]
      commands:
        - name: npm test
          run: test "$(cat delete-status)" = 404 || { echo "DELETE endpoint returns $(cat delete-status)"; exit 1; }
      max_iterations: 3
"#;

const ARCHITECT: &str = r#"ok
ls "$CLIQ_DIR/channels" > channels-at-start
hand developer '{"version":1,"phase_type":"standard","phase":"architect","agent":"architect","text":"Implement the REST API with three endpoints...","data":{"approach":"REST API with Express + SQLite","endpoints":["GET /items","POST /items","DELETE /items/:id"]}}'
complete
"#;

const DEVELOPER: &str = r#"ok
grep -q 'three endpoints' "$CLIQ_DIR/channels/architect--developer/handoff.json" || exit 9
if [ -f "$CLIQ_DIR/channels/reviewer--developer/handoff.json" ]; then
  grep -q 'DELETE returns 500' "$CLIQ_DIR/channels/reviewer--developer/handoff.json" || exit 8
  case $message in *'"routed_by": "reviewer"'*) ;; *) exit 7 ;; esac
  echo 404 > delete-status
else
  echo 500 > delete-status
fi
hand reviewer '{"version":1,"phase_type":"standard","phase":"developer","agent":"developer","text":"Implemented all three endpoints with zod validation and 12 unit tests.","data":{"test_count":12}}'
complete
"#;

const REVIEWER: &str = r#"ok
case $message in
  *'"pass": true'*) verdict '{"outcome":"PASS"}' ;;
  *) verdict '{"outcome":"ROUTE","target":"developer","reason":"DELETE returns 500 instead of 404 for missing items."}' ;;
esac
"#;

#[test]
fn files_of_the_worked_example() {
    let env =
        Env::new(WORKFLOW, &[("architect", ARCHITECT), ("developer", DEVELOPER), ("reviewer", REVIEWER)]);
    env.cliq(["req", "-m", "Build the items API."]).expect(0);
    env.cliq(["run", "--headless"]).expect(0).says("COMPLETED");

    let before_any_agent = env.read("channels-at-start");
    for channel in ["architect--developer", "developer--reviewer", "reviewer--developer"] {
        assert!(before_any_agent.contains(channel), "{before_any_agent}");
    }
    let handoffs: Vec<String> =
        env.files(".cliq/channels").into_iter().filter(|file| file.ends_with("handoff.json")).collect();
    assert_eq!(
        handoffs,
        [
            "architect--developer/handoff.json",
            "developer--reviewer/handoff.json",
            "reviewer--developer/handoff.json",
        ]
    );
    assert_eq!(
        env.files(".cliq/signals"),
        [
            "_pipeline_status",
            "architect.jsonl",
            "developer.jsonl",
            "developer_routed",
            "reviewer.jsonl",
            "reviewer_command_results.json",
        ]
    );
    assert_eq!(env.read(".cliq/signals/_pipeline_status"), "COMPLETED");
    assert_eq!(env.read(".cliq/signals/developer_routed"), "");

    // The reviewer wrote no feedback itself: the orchestrator did, with verdict, checks and iteration (docs/protocol.md).
    let feedback = env.read_json(".cliq/channels/reviewer--developer/handoff.json");
    assert_eq!(feedback["phase_type"], "gate");
    assert_eq!(feedback["phase"], "reviewer");
    assert_eq!(feedback["data"]["verdict"]["target"], "developer");
    assert_eq!(feedback["data"]["checks"][0]["name"], "npm test");
    assert_eq!(feedback["data"]["checks"][0]["pass"], false);
    assert_eq!(feedback["data"]["iteration"], 1);
    assert_eq!(feedback["data"]["max_iterations"], 3);
    assert!(feedback["text"].as_str().unwrap().starts_with("ROUTE to developer: DELETE returns 500"));

    // The last evaluation is what the signal files tell of.
    let results = env.read_json(".cliq/signals/reviewer_command_results.json");
    assert_eq!(results[0]["pass"], true);
    assert!(env.read(".cliq/signals/reviewer.jsonl").contains(r#""outcome":"PASS""#));
    let context = env.read(".cliq/gate_context.md");
    assert!(
        context.contains("evaluation 2 of 3") && context.contains("ROUTE to developer: DELETE returns 500"),
        "{context}"
    );
    let phases = env.phases();
    assert_eq!(phases["architect"], ("completed".into(), 1));
    assert_eq!(phases["developer"], ("completed".into(), 2));
    assert_eq!(phases["reviewer"], ("completed".into(), 2));
    assert_eq!(env.left_over(), Vec::<String>::new());
}
