//! Rules of a new run.

use super::*;
use crate::test_support::TestSupervisor;

fn workflow() -> ValidatedWorkflow {
    let text = "name: '@t/t'\ninputs:\n  - name: a\n    required: true\n  - name: b\n    required: true\n    description: The b.\n  - name: c\n    required: false\n  - name: d\n    required: true\n    default: x\nphases:\n  - name: p\n    type: exec\n    commands:\n      - name: c\n        run: echo $(inputs.a) $(inputs.b) $(inputs.c) $(inputs.d)\n";
    let checked = cliq_workflow::check(text, &cliq_workflow::NoFiles);
    checked.workflow.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn inputs_report_each_missing_and_unknown_name() {
    let error = check_inputs(&workflow(), given(&[("z", "1"), ("y", "2")]), true).unwrap_err();
    let RequestError::Inputs(errors) = error else { panic!("{error:?}") };
    assert_eq!(
        errors.lines(),
        [
            "input `a` is missing",
            "input `b` is missing: The b.",
            "the team has no input `y`",
            "the team has no input `z`"
        ]
    );
    assert_eq!(errors.declared, ["a", "b", "c", "d"]);
}

#[test]
fn lenient_inputs_drop_unknown_names() {
    let all = given(&[("a", "1"), ("b", "2"), ("z", "3")]);
    assert_eq!(check_inputs(&workflow(), all.clone(), false).unwrap(), given(&[("a", "1"), ("b", "2")]));
    assert!(check_inputs(&workflow(), all, true).is_err());
}

#[test]
fn values_out_of_range_are_refused() {
    let check = |new: RunSpec| value_errors(&new, &[]);
    assert_eq!(check(RunSpec::default()), []);
    let parallel = |n| RunSpec { max_parallel: Some(n), ..RunSpec::default() };
    assert_eq!(check(parallel(0)), [ValueError::MaxParallel]);
    assert_eq!(check(parallel(1)), []);
    assert_eq!(check(parallel(MAX_PARALLEL)), []);
    assert_eq!(check(parallel(MAX_PARALLEL + 1)), [ValueError::MaxParallel]);
    let title = |n: usize| RunSpec { title: Some("ä".repeat(n)), ..RunSpec::default() };
    assert_eq!(check(title(MAX_TITLE)), []);
    assert_eq!(check(title(MAX_TITLE + 1)), [ValueError::Title]);
    let tokens = |n| check_budget(&Budget { tokens: Some(n), usd: None });
    assert_eq!(tokens(0), Err(vec![ValueError::BudgetTokens]));
    assert_eq!(tokens(1), Ok(()));
    assert_eq!(tokens(MAX_BUDGET_TOKENS), Ok(()));
    assert_eq!(tokens(MAX_BUDGET_TOKENS + 1), Err(vec![ValueError::BudgetTokens]));
    let usd = |n| check_budget(&Budget { tokens: None, usd: Some(n) });
    for n in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(usd(n), Err(vec![ValueError::BudgetUsd]), "{n}");
    }
    assert_eq!(usd(0.01), Ok(()));
}

#[test]
fn texts_with_zero_bytes_are_refused_wherever_they_are() {
    let zero = || "a\0b".to_owned();
    for new in [
        RunSpec { agent: Some(zero()), ..RunSpec::default() },
        RunSpec { requirement: Some(zero()), ..RunSpec::default() },
        RunSpec { inputs: [("k".to_owned(), zero())].into(), ..RunSpec::default() },
        RunSpec { inputs: [(zero(), String::new())].into(), ..RunSpec::default() },
        RunSpec { inputs: [(String::new(), String::new())].into(), ..RunSpec::default() },
        RunSpec { inputs: [("a=b".to_owned(), String::new())].into(), ..RunSpec::default() },
    ] {
        assert_eq!(value_errors(&new, &[]), [ValueError::Text], "{new:?}");
    }
}

#[test]
fn repositories_obey_number_and_host() {
    let url = |n: usize| format!("https://a.example/{n}");
    let repos = |n: usize| (0..n).map(url).collect::<Vec<_>>();
    assert_eq!(repository_errors(&repos(MAX_REPOS), &[]), []);
    assert_eq!(repository_errors(&repos(MAX_REPOS + 1), &[]), [ValueError::TooManyRepositories]);
    let hosts = ["b.example".to_owned()];
    assert_eq!(repository_errors(&repos(1), &hosts), [ValueError::RepositoryHost("a.example".to_owned())]);
    assert_eq!(repository_errors(&["https://b.example/x".to_owned()], &hosts), []);
}

async fn refusal(test: &TestSupervisor, new: NewRun, rules: &RunRules) -> RequestError {
    check(&test.shared.options, &test.shared.io, &test.store, new, rules)
        .await
        .map(|checked| checked.run.id)
        .unwrap_err()
}

fn of_team(team: &str) -> NewRun {
    NewRun { spec: RunSpec { team: Some(team.to_owned()), ..RunSpec::default() }, ..NewRun::default() }
}

async fn register(test: &TestSupervisor, id: &str) -> NewRun {
    let path = test.path(id);
    let registered_at = crate::test_support::AT;
    test.store.add_instance(&Instance { id: id.to_owned(), path, registered_at }).await.unwrap();
    NewRun { instance: Some(id.to_owned()), ..NewRun::default() }
}

#[tokio::test]
async fn refusals_name_what_is_missing() {
    let (test, rules) = (TestSupervisor::new(), RunRules::for_token());
    assert!(matches!(refusal(&test, NewRun::default(), &rules).await, RequestError::TeamMissing));
    let unknown = NewRun { instance: Some("cliq-none".to_owned()), ..NewRun::default() };
    assert!(
        matches!(refusal(&test, unknown, &rules).await, RequestError::UnknownProject(id) if id == "cliq-none")
    );
    let gone = register(&test, "cliq-gone").await;
    assert!(matches!(refusal(&test, gone, &rules).await, RequestError::ProjectGone));
    let bare = register(&test, "cliq-bare").await;
    std::fs::create_dir_all(test.path("cliq-bare")).unwrap();
    Project::init_for_run(&test.path("cliq-bare"), test.shared.options.host.clone()).unwrap();
    assert!(matches!(refusal(&test, bare, &rules).await, RequestError::NoAssembledTeam));
}

#[tokio::test]
async fn team_outside_of_the_offer_is_refused() {
    let (test, rules) = (TestSupervisor::new(), RunRules::for_token());
    for path in ["/etc", "../team", "@a/../b", "@builder/x", "team"] {
        assert!(
            matches!(refusal(&test, of_team(path), &rules).await, RequestError::NotATeamName(_)),
            "{path}"
        );
    }
    let listed = RunRules { teams: AllowedTeams::Listed(vec!["@cliq/other".to_owned()]), ..rules };
    let refused = refusal(&test, of_team("@cliq/hello-world"), &listed).await;
    assert!(matches!(refused, RequestError::NotOffered { name } if name == "@cliq/hello-world"));
    // In the offer, and removed since.
    let refused = refusal(&test, of_team("@cliq/other"), &listed).await;
    assert!(matches!(refused, RequestError::NotOffered { .. }));
}

#[tokio::test]
async fn repositories_and_failures_of_the_store_are_refused_before_the_team() {
    let (test, rules) = (TestSupervisor::new(), RunRules::for_token());
    let mut new = register(&test, "cliq-gone").await;
    new.spec.repos = vec!["https://example.com/r".to_owned()];
    let RequestError::Values(errors) = refusal(&test, new, &rules).await else { panic!("no values") };
    assert_eq!(errors, [ValueError::RepositoriesInProject]);
    let new = register(&test, "cliq-gone").await;
    test.store.fail(1);
    assert!(matches!(refusal(&test, new, &rules).await, RequestError::Store(_)));
}

#[tokio::test]
async fn checked_run_has_title_workspace_and_the_declared_inputs() {
    let (test, mut rules) = (TestSupervisor::new(), RunRules::for_token());
    let mut new = of_team("@cliq/hello-world");
    new.caller = "ci".to_owned();
    new.spec.requirement = Some("\n# Say hello\nto all".to_owned());
    new.spec.inputs.insert("no_such_input".to_owned(), "x".to_owned());
    let refused = refusal(&test, new.clone(), &rules).await;
    assert!(matches!(refused, RequestError::Inputs(errors) if errors.unknown == ["no_such_input"]));
    rules.strict_inputs = false;
    let run = check(&test.shared.options, &test.shared.io, &test.store, new, &rules).await.unwrap().run;
    assert!(run.request.spec.inputs.is_empty(), "dropped");
    assert_eq!(run.workspace, test.shared.options.workspace_root.join(run.id.as_str()));
    assert_eq!((run.caller.as_str(), run.team.as_str()), ("ci", "@cliq/hello-world"));
    assert!(run.title.contains("Say hello"), "{}", run.title);
}
