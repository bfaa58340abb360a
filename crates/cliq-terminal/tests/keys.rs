//! Effects of keys.

use cliq_review::{Choice, Side};
use cliq_terminal::{Action, ActionResult, Effect, Event, Focus, RunKey, RunStatus, TextPart, TextPlace};
use crossterm::event::KeyCode;
use serde_json::json;

use crate::fixtures::{NOW, REVIEW, Screen, run, runs, time};

fn acts(screen: &Screen) -> Vec<&Action> {
    screen
        .effects
        .iter()
        .filter_map(|effect| if let Effect::Act(action) = effect { Some(action) } else { None })
        .collect()
}

#[test]
fn approval_has_the_values_of_the_form() {
    let mut screen = Screen::new(100, 30);
    screen.keys("a");
    screen.key(KeyCode::Tab);
    screen.key(KeyCode::Right);
    screen.key(KeyCode::Tab);
    screen.keys("as agreed");
    screen.submit();
    let expected = Action::Answer {
        run: RunKey::new("a"),
        review: REVIEW.parse().unwrap(),
        choice: Choice::Approve,
        message: None,
        inputs: serde_json::from_value(json!({"size": "large", "note": "as agreed", "urgent": false}))
            .unwrap(),
        reviewer: None,
    };
    assert_eq!(acts(&screen), [&expected]);
    // A second press does not answer twice.
    screen.submit();
    assert_eq!(acts(&screen).len(), 1);
}

#[test]
fn refused_answer_keeps_what_was_typed() {
    let mut screen = Screen::new(100, 30);
    screen.keys("a");
    screen.key(KeyCode::Right);
    screen.key(KeyCode::Tab);
    screen.key(KeyCode::Right);
    screen.key(KeyCode::Tab);
    screen.keys("not yet");
    screen.submit();
    let action = acts(&screen)[0].clone();
    let Action::Answer { choice: Choice::RequestChanges { to: Some(to) }, message, .. } = &action else {
        panic!("{action:?}")
    };
    assert_eq!((to.as_str(), message.as_deref()), ("build", Some("not yet")));
    screen.event(Event::Acted(Box::new(action.clone()), Err("the review is over".to_owned())));
    let text = screen.text();
    assert!(text.contains("the review is over") && text.contains("not yet"), "{text}");
    screen.event(Event::Acted(
        Box::new(action),
        Ok(ActionResult { message: "answered".to_owned(), ..ActionResult::default() }),
    ));
}

#[test]
fn comment_names_the_line_at_the_cursor() {
    let mut screen = Screen::new(100, 30);
    screen.key(KeyCode::BackTab);
    screen.key(KeyCode::Enter);
    screen.key(KeyCode::Enter);
    screen.keys("jjjcgone?");
    screen.submit();
    let Action::Comment { path, side, line, text, review, .. } = acts(&screen)[0] else { panic!() };
    assert_eq!((path.as_str(), *side, *line, text.as_str()), ("src/search.rs", Side::Old, 2, "gone?"));
    assert!(review.is_some());
}

#[test]
fn ending_a_run_needs_the_letter() {
    let mut screen = Screen::new(100, 30);
    screen.keys("x");
    screen.key(KeyCode::Enter);
    assert!(screen.state.has_dialog() && acts(&screen).is_empty());
    screen.key(KeyCode::Esc);
    assert!(!screen.state.has_dialog());
    screen.keys("xy");
    assert_eq!(acts(&screen), [&Action::Cancel(RunKey::new("a"))]);
}

#[test]
fn typed_text_is_not_discarded_by_one_key() {
    let mut screen = Screen::new(100, 30);
    screen.keys("sHurry");
    screen.key(KeyCode::Esc);
    assert!(screen.state.has_dialog() && screen.text().contains("discard what was typed"));
    screen.keys("!");
    screen.key(KeyCode::Esc);
    screen.key(KeyCode::Esc);
    assert!(!screen.state.has_dialog());
    assert!(acts(&screen).is_empty());
}

#[test]
fn actions_follow_the_state_of_the_run() {
    let mut screen = Screen::new(100, 30);
    for (row, keys) in [("c", "rx"), ("d", "rxs"), ("e", "rRs")] {
        while screen.state.chosen() != Some(&RunKey::new(row)) {
            screen.key(KeyCode::Down);
        }
        let before = acts(&screen).len();
        for key in keys.chars() {
            screen.keys(&key.to_string());
            screen.key(KeyCode::Esc);
        }
        let expected = usize::from(row == "c");
        assert_eq!(acts(&screen).len() - before, expected, "only a failed last run is resumed");
    }
    screen.keys("y");
    assert!(screen.effects.contains(&Effect::Copy("e-0000".to_owned())));
}

#[test]
fn new_run_has_project_team_and_changed_inputs_only() {
    let mut screen = Screen::new(100, 40);
    screen.keys("nBuild it");
    screen.key(KeyCode::BackTab);
    screen.key(KeyCode::Right);
    assert!(screen.text().contains("Language of the answers"), "{}", screen.text());
    screen.submit();
    let expected = Action::Start {
        project: "/work/shop".to_owned(),
        team: Some("@cliq/feature-dev".to_owned()),
        requirement: "Build it".to_owned(),
        inputs: Vec::new(),
    };
    assert_eq!(acts(&screen), [&expected]);
    let done = ActionResult {
        message: "started".to_owned(),
        chosen: Some(RunKey::new("z")),
        ..ActionResult::default()
    };
    screen.list.runs.push(run("z", "Build it", RunStatus::Working, 0));
    screen.event(Event::Acted(Box::new(expected), Ok(done)));
    assert_eq!(screen.state.chosen(), Some(&RunKey::new("z")));
    // Another directory is typed; no team is assembled there.
    screen.keys("nBuild");
    screen.key(KeyCode::BackTab);
    screen.key(KeyCode::BackTab);
    screen.key(KeyCode::Left);
    screen.key(KeyCode::Tab);
    screen.submit();
    assert!(screen.text().contains("the directory is empty"), "{}", screen.text());
    screen.keys("/work/new");
    screen.submit();
    let Some(Action::Start { project, team, .. }) = acts(&screen).last() else { panic!() };
    assert_eq!((project.as_str(), team.as_deref()), ("/work/new", Some("@cliq/feature-dev")));
    let refused = (*acts(&screen).last().unwrap()).clone();
    screen.event(Event::Acted(Box::new(refused), Err("there is no such directory".to_owned())));
    assert!(screen.text().contains("there is no such directory"), "{}", screen.text());
    screen.key(KeyCode::Esc);
    screen.key(KeyCode::Esc);
    // A team that cannot run here is refused with the reason.
    screen.keys("nBuild");
    screen.key(KeyCode::BackTab);
    screen.key(KeyCode::Left);
    screen.submit();
    assert!(screen.text().contains("pandoc"), "{}", screen.text());
    assert_eq!(acts(&screen).len(), 2);
}

#[test]
fn another_project_brings_its_own_team() {
    let mut screen = Screen::new(100, 40);
    screen.keys("nBuild it");
    screen.key(KeyCode::BackTab);
    // A letter chooses by a part of the name; another team than the assembled one is named as such.
    screen.keys("f");
    assert!(screen.text().contains("‹@cliq/feature-dev›"), "{}", screen.text());
    assert!(screen.text().contains("replaces @shop/web, which is assembled there"), "{}", screen.text());
    screen.key(KeyCode::BackTab);
    screen.key(KeyCode::Right);
    screen.key(KeyCode::Left);
    assert!(screen.text().contains("‹@shop/web (assembled)›"), "{}", screen.text());
    assert!(!screen.text().contains("Language of the answers"), "{}", screen.text());
    screen.submit();
    let Action::Start { team: None, requirement, .. } = acts(&screen)[0] else { panic!() };
    assert_eq!(requirement, "Build it");
}

#[test]
fn filter_that_fits_nothing_leaves_no_run_to_act_on() {
    let mut screen = Screen::new(100, 30);
    screen.keys("/zzz");
    screen.key(KeyCode::Enter);
    assert_eq!(screen.state.chosen(), None);
    screen.keys("xy");
    assert!(acts(&screen).is_empty() && !screen.state.has_dialog());
    screen.key(KeyCode::Esc);
    assert!(screen.state.chosen().is_some());
    // A run that no longer fits stays in the list as long as it is chosen.
    screen.keys("/working");
    screen.key(KeyCode::Enter);
    let chosen = screen.state.chosen().cloned();
    let row = screen.list.runs.iter_mut().find(|run| Some(&run.key) == chosen.as_ref()).unwrap();
    (row.status, row.ended, row.needs) = (RunStatus::Cancelled, Some(time(NOW)), None);
    screen.event(Event::Tick(time(NOW + 2000)));
    assert_eq!(screen.state.chosen(), chosen.as_ref());
    assert!(screen.text().contains("■ "), "{}", screen.text());
}

#[test]
fn text_that_cannot_be_read_is_not_shown_as_empty() {
    use cliq_terminal::{Reply, Request, RunDetail, State};
    let mut state = State::new(100, 30, time(NOW));
    let mut effects = state.update(Event::Tick(time(NOW)));
    while let Some(effect) = effects.pop() {
        let reply = match effect {
            Effect::Load(Request::Runs) => Reply::Runs(Ok(runs().into())),
            Effect::Load(Request::Detail(run)) => Reply::Detail(run, Ok(RunDetail::default())),
            Effect::Load(Request::Text(request)) => Reply::Text(request, Err("permission denied".to_owned())),
            _ => continue,
        };
        effects.extend(state.update(Event::Loaded(Box::new(reply))));
    }
    let mut screen = Screen::new(100, 30);
    screen.state = state;
    let text = screen.text();
    assert!(text.contains("permission denied") && !text.contains("logged nothing"), "{text}");
}

#[test]
fn keys_typed_over_a_link_are_no_commands() {
    let mut screen = Screen::new(100, 30);
    screen.keys("o");
    let done = ActionResult { link: Some("http://127.0.0.1/x".to_owned()), ..ActionResult::default() };
    screen.event(Event::Acted(Box::new(Action::Open(RunKey::new("a"))), Ok(done)));
    screen.keys("anx");
    assert!(screen.text().contains("http://127.0.0.1/x"), "{}", screen.text());
    screen.key(KeyCode::Esc);
    assert!(!screen.state.has_dialog());
}

#[test]
fn chosen_run_stays_chosen_when_the_list_changes() {
    let mut screen = Screen::new(100, 30);
    screen.key(KeyCode::Down);
    let chosen = screen.state.chosen().cloned();
    screen.list.runs.reverse();
    screen.list.runs.push(run("n", "A newer one", RunStatus::Working, 0));
    let row = screen.list.runs.iter_mut().find(|run| Some(&run.key) == chosen.as_ref()).unwrap();
    (row.status, row.ended) = (RunStatus::Completed, Some(time(NOW)));
    screen.event(Event::Tick(time(NOW + 2000)));
    assert_eq!(screen.state.chosen(), chosen.as_ref());
}

#[test]
fn screen_is_not_left_while_an_action_is_under_way_without_a_word() {
    let mut screen = Screen::new(100, 30);
    screen.keys("xyq");
    assert!(!screen.effects.contains(&Effect::Quit) && screen.text().contains("an action is under way"));
    screen.keys("q");
    assert!(screen.effects.contains(&Effect::Quit));
}

#[test]
fn link_is_shown_whole_and_copied() {
    let mut screen = Screen::new(60, 20);
    screen.keys("o");
    let link = format!("http://127.0.0.1:8123/signin?code={}&to=/runs/1", "a".repeat(64));
    let done = ActionResult { link: Some(link.clone()), ..ActionResult::default() };
    screen.event(Event::Acted(Box::new(Action::Open(RunKey::new("a"))), Ok(done)));
    let text = screen.text();
    let inside = text.lines().filter_map(|line| line.split_once('│')?.1.rsplit_once('│'));
    let shown: String = inside.map(|(line, _)| line.trim()).collect();
    assert!(shown.contains(&link), "{text}");
    screen.keys("y");
    assert!(screen.effects.contains(&Effect::Copy(link)) && !screen.state.has_dialog());
}

#[test]
fn escape_and_a_key_count_as_two() {
    use crossterm::event::{KeyEvent, KeyModifiers};
    let mut screen = Screen::new(100, 30);
    screen.key(KeyCode::Enter);
    assert_eq!(screen.state.focus(), Focus::Phases);
    screen.event(Event::Key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT)));
    assert_eq!(screen.state.focus(), Focus::List);
    assert!(screen.effects.contains(&Effect::Quit));
}

#[test]
fn log_and_changes_are_searched() {
    let mut screen = Screen::new(100, 30);
    for _ in 0..2 {
        screen.key(KeyCode::Enter);
    }
    screen.keys("/step 7 of");
    screen.key(KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("search: step 7 of") && text.contains("2026-01-01 step 7 of the build"), "{text}");
    assert!(!text.contains("following"), "{text}");
    screen.keys("!");
    screen.key(KeyCode::Enter);
    assert!(screen.text().contains("no further line has this text"), "{}", screen.text());
    screen.key(KeyCode::Esc);
    screen.key(KeyCode::BackTab);
    screen.keys("/");
    for _ in 0..20 {
        screen.key(KeyCode::Backspace);
    }
    screen.keys("ALL(");
    screen.key(KeyCode::Down);
    screen.key(KeyCode::Esc);
    screen.keys("cwhy");
    assert!(screen.text().contains("comment on src/search.rs:3"), "{}", screen.text());
}

/// A log of 60 MB, of which a window is in memory.
#[test]
fn long_log_is_walked_from_end_to_beginning_and_back() {
    use cliq_terminal::{Reply, Request, RunDetail, State};
    let line = |n: u64| format!("{n:>59}\n");
    let lines: u64 = 100_000;
    let read = |from: u64, to: u64| -> Vec<u8> { (from..to).flat_map(|n| line(n).into_bytes()).collect() };
    let mut state = State::new(100, 30, time(NOW));
    let mut effects = state.update(Event::Tick(time(NOW)));
    let answer = |state: &mut State, effects: Vec<Effect>| {
        let mut effects = effects;
        while let Some(effect) = effects.pop() {
            let Effect::Load(request) = effect else { continue };
            let loaded = match request {
                Request::Runs => Reply::Runs(Ok(runs().into())),
                Request::Detail(run) => Reply::Detail(run, Ok(RunDetail::default())),
                Request::Text(request) => {
                    let (from, to) = match request.place {
                        TextPlace::End => (lines - 1000, lines),
                        TextPlace::Before(offset) => ((offset / 60).saturating_sub(1000), offset / 60),
                        TextPlace::After(offset) => (offset / 60, (offset / 60 + 4000).min(lines)),
                    };
                    let part = TextPart {
                        file: "l".to_owned(),
                        files: vec!["l".to_owned()],
                        start: from * 60,
                        bytes: read(from, to),
                        size: lines * 60,
                        found: None,
                    };
                    Reply::Text(request, Ok(part))
                }
                _ => continue,
            };
            effects.extend(state.update(Event::Loaded(Box::new(loaded))));
        }
    };
    answer(&mut state, std::mem::take(&mut effects));
    let key = |code| Event::Key(crossterm::event::KeyEvent::new(code, crossterm::event::KeyModifiers::NONE));
    for _ in 0..2 {
        let effects = state.update(key(KeyCode::Enter));
        answer(&mut state, effects);
    }
    let mut screen = Screen::new(100, 30);
    let mut seen = 0;
    for _ in 0..(lines / 20) {
        let effects = state.update(key(KeyCode::PageUp));
        answer(&mut state, effects);
        seen += 1;
    }
    screen.state = state;
    assert!(screen.text().contains(&line(0).trim_end().to_owned()[55..]), "{seen} pages: {}", screen.text());
    assert!(screen.text().lines().any(|line| line.trim() == "0"), "{}", screen.text());
    let mut state = screen.state;
    for _ in 0..(lines / 20) {
        let effects = state.update(key(KeyCode::PageDown));
        answer(&mut state, effects);
    }
    let mut screen = Screen::new(100, 30);
    screen.state = state;
    assert!(screen.text().lines().any(|line| line.trim() == (lines - 1).to_string()), "{}", screen.text());
}
