//! Telling others: Slack and webhooks, retries, and that nothing of it hurts a run.

use cliq_testkit::env::{Env, done};

use crate::commands::server::{Server, status};

const TEAM: &str = "workflow:
  phases:
    - {name: a, type: exec, commands: [{name: t, run: echo a}]}
    - {name: b, type: exec, depends_on: [a], commands: [{name: t, run: test -f fine}]}
";

fn ok() -> String {
    status("200 OK", "", "ok")
}

fn events(server: &Server) -> Vec<String> {
    let text = |body: &serde_json::Value| {
        let payload = &body["payload"];
        let phase = payload["phase"].as_str().map(|phase| format!(" {phase}")).unwrap_or_default();
        format!("{}{phase}", body["event"].as_str().unwrap_or_default())
    };
    let mut events: Vec<String> = server.asked().iter().map(|asked| text(&asked.body)).collect();
    events.sort();
    events
}

#[test]
fn a_run_notifies_its_recipients() {
    let server = Server::start(vec![ok()]);
    let env = Env::new(TEAM, &[]);
    let set = |key: &str, value: &str| drop(env.cliq(["settings", "set", key, value]).expect(0));
    set("agents.webhook.channels.default.url", &format!("{}/hook", server.base));
    set("agents.webhook.channels.default.secret", "key");
    for event in
        ["on_start", "on_phase_start", "on_phase_complete", "on_complete", "on_escalate", "on_cancel"]
    {
        set(&format!("notifications.{event}"), "webhook");
    }
    env.cliq(["run", "--headless"]).expect(3);
    assert_eq!(
        events(&server),
        ["on_escalate b", "on_phase_complete a", "on_phase_start a", "on_phase_start b", "on_start"]
    );
    let asked = server.asked();
    let escalated = asked.iter().find(|a| a.body["event"] == "on_escalate").unwrap();
    assert_eq!(escalated.path, "/hook");
    assert!(escalated.body["payload"]["reason"].as_str().unwrap().contains("command `t` failed"));
    assert_eq!(escalated.body["payload"]["run_id"], env.run_id());
    let signed = |header: &str| header.to_lowercase().starts_with("x-cliq-signature-256: sha256=");
    assert!(escalated.headers.iter().any(|header| signed(header)), "{:?}", escalated.headers);
    env.write("fine", "");
    env.cliq(["run", "--resume"]).expect(0);
    assert_eq!(events(&server).iter().filter(|event| *event == "on_complete").count(), 1);
    assert!(!env.read(".cliq/orchestrator.log").contains("warning"));
}

#[test]
fn slack_gets_words() {
    let server = Server::start(vec![status("500 Internal Server Error", "retry-after: 0\r\n", ""), ok()]);
    let env = Env::new(TEAM, &[]);
    let url = format!("{}/services/T0/B0/hidden", server.base);
    env.cliq(["settings", "set", "agents.slack.channels.team.webhook_url", &url]).expect(0);
    env.cliq(["settings", "set", "notifications.on_complete", "slack:team"]).expect(0);
    env.write("fine", "");
    env.cliq(["run", "--headless"]).expect(0);
    let asked = server.asked();
    assert_eq!((asked.len(), asked[1].path.as_str()), (2, "/services/T0/B0/hidden"), "tried again");
    assert_eq!(asked[1].body["text"], "*@local/test*: the run is complete");
}

#[test]
fn a_failed_delivery_is_a_warning() {
    let server = Server::start(vec![status("403 Forbidden", "", "invalid_token")]);
    let env = Env::new(TEAM, &[]);
    env.cliq([
        "settings",
        "set",
        "agents.slack.channels.default.webhook_url",
        &format!("{}/hidden", server.base),
    ])
    .expect(0);
    env.cliq(["settings", "set", "notifications.on_start", "slack,slack:nobody,webhook"]).expect(0);
    env.write("fine", "");
    env.cliq(["run", "--headless"]).expect(0);
    let log = env.read(".cliq/orchestrator.log");
    for says in ["invalid_token", "there is no channel `nobody`", "agents.webhook.channels.default.url"] {
        assert!(log.contains(says), "{says:?} is not in\n{log}");
    }
    assert!(!log.contains("hidden"));
}

#[test]
fn agents_and_teams_tell_too() {
    let server = Server::start(vec![ok()]);
    let workflow = "workflow:
  phases:
    - name: a
      type: standard
      agent: x
      notify: {on_complete: {agent: webhook, channel: ops, message: 'done with $(phase)'}}
";
    let agent = "ok\nprintf '{\"ts\":\"2026-01-01T00:00:00.000Z\",\"version\":1,\"type\":\"phase\",\"status\":\"notify\",\"result\":{\"agent\":\"webhook\",\"channel\":\"ops\",\"event\":\"look\",\"payload\":{\"n\":1}}}\\n' >> $CLIQ_SIGNAL_FILE\ncomplete\n";
    let env = Env::new(workflow, &[("x", agent)]);
    env.cliq(["settings", "set", "agents.webhook.channels.ops.url", &server.base]).expect(0);
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(events(&server), ["look", "on_complete a"]);
    let asked = server.asked();
    assert!(
        asked.iter().any(|a| a.body["payload"]["n"] == 1)
            && asked.iter().any(|a| a.body["payload"]["message"] == "done with a")
    );
}

#[test]
fn a_server_that_hangs_holds_up_no_cancellation() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let env = Env::new(
        "workflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: t, run: touch at; sleep 1000}]}\n",
        &[],
    );
    env.cliq(["settings", "set", "agents.webhook.channels.default.url", &base]).expect(0);
    env.cliq(["settings", "set", "notifications.on_start", "webhook"]).expect(0);
    let run = env.spawn(["run", "--headless"]);
    env.wait_for("a", || env.exists("at"));
    env.cliq(["cancel"]).expect(0);
    done(&run.wait_with_output().unwrap()).expect(130);
    assert_eq!(env.left_over(), Vec::<String>::new());
    drop(listener);
}
