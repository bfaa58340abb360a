//! Properties over random events: no panic at any size, the chosen run stays chosen, and the last picture depends on the state alone.

use cliq_terminal::{ActionResult, Effect, Event, RunKey, RunStatus, Theme};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use proptest::prelude::*;

use crate::fixtures::{NOW, Screen, run, time};

#[derive(Debug, Clone)]
enum Step {
    Key(KeyCode, KeyModifiers),
    Paste(String),
    Resize(u16, u16),
    Click(u16, u16),
    Wheel(u16, u16, bool),
    Tick(i64),
    Add(u8),
    End(usize),
    Acted(bool),
}

fn key() -> impl Strategy<Value = (KeyCode, KeyModifiers)> {
    let code = prop_oneof![
        12 => proptest::char::range(' ', '~').prop_map(KeyCode::Char),
        1 => any::<char>().prop_map(KeyCode::Char),
        8 => prop::sample::select(vec![
            KeyCode::Up, KeyCode::Down, KeyCode::Left, KeyCode::Right, KeyCode::Enter, KeyCode::Esc, KeyCode::Tab,
            KeyCode::BackTab, KeyCode::PageUp, KeyCode::PageDown, KeyCode::Home, KeyCode::End, KeyCode::Backspace,
            KeyCode::Delete, KeyCode::F(1), KeyCode::Insert,
        ]),
    ];
    let modifiers = prop_oneof![
        12 => Just(KeyModifiers::NONE), 1 => Just(KeyModifiers::CONTROL), 1 => Just(KeyModifiers::ALT), 1 => Just(KeyModifiers::SHIFT),
    ];
    (code, modifiers)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => key().prop_map(|(code, modifiers)| Step::Key(code, modifiers)),
        1 => any::<String>().prop_map(Step::Paste),
        2 => (0u16..200, 0u16..80).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
        2 => (0u16..200, 0u16..80).prop_map(|(x, y)| Step::Click(x, y)),
        1 => (0u16..200, 0u16..80, any::<bool>()).prop_map(|(x, y, up)| Step::Wheel(x, y, up)),
        3 => (0i64..5000).prop_map(Step::Tick),
        1 => any::<u8>().prop_map(Step::Add),
        1 => any::<usize>().prop_map(Step::End),
        1 => any::<bool>().prop_map(Step::Acted),
    ]
}

fn mouse(kind: MouseEventKind, column: u16, row: u16) -> Event {
    Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_events_keep_the_screen_whole(steps in prop::collection::vec(step(), 0..80)) {
        let mut screen = Screen::new(80, 24);
        let mut now = NOW;
        for step in steps {
            let before = screen.state.chosen().cloned();
            let from_source = matches!(step, Step::Tick(_) | Step::Add(_) | Step::End(_) | Step::Resize(..));
            match step {
                Step::Key(code, modifiers) => screen.event(Event::Key(KeyEvent::new(code, modifiers))),
                Step::Paste(text) => screen.event(Event::Paste(text)),
                Step::Resize(columns, rows) => screen.event(Event::Resized(columns, rows)),
                Step::Click(x, y) => screen.event(mouse(MouseEventKind::Down(MouseButton::Left), x, y)),
                Step::Wheel(x, y, up) => {
                    let kind = if up { MouseEventKind::ScrollUp } else { MouseEventKind::ScrollDown };
                    screen.event(mouse(kind, x, y));
                }
                Step::Tick(ms) => {
                    now += ms;
                    screen.event(Event::Tick(time(now)));
                }
                Step::Add(n) => {
                    screen.list.runs.push(run(&format!("n{n}"), "Another", RunStatus::Working, 0));
                    screen.list.runs.dedup_by(|a, b| a.key == b.key);
                    now += 3000;
                    screen.event(Event::Tick(time(now)));
                }
                Step::End(at) => {
                    let count = screen.list.runs.len();
                    let row = &mut screen.list.runs[at % count];
                    (row.status, row.ended, row.needs) = (RunStatus::Completed, Some(time(now)), None);
                    now += 3000;
                    screen.event(Event::Tick(time(now)));
                }
                Step::Acted(works) => {
                    // What a person asked for ends in one of two ways.
                    let asked = screen.effects.iter().rposition(|effect| matches!(effect, Effect::Act(_)));
                    if let Some(Effect::Act(action)) = asked.map(|at| screen.effects.remove(at)) {
                        let result = if works { Ok(ActionResult::default()) } else { Err("refused".to_owned()) };
                        screen.event(Event::Acted(Box::new(action), result));
                    }
                }
            }
            if from_source {
                prop_assert_eq!(screen.state.chosen(), before.as_ref(), "only a person chooses another run");
            }
            if let Some(chosen) = screen.state.chosen() {
                let known: Vec<&RunKey> = screen.list.runs.iter().map(|run| &run.key).collect();
                prop_assert!(known.contains(&chosen));
            }
            let (columns, rows) = screen.state.size();
            if columns > 0 && rows > 0 {
                prop_assert_eq!(screen.text().lines().count(), usize::from(rows));
            }
        }
        let (first, second) = (screen.text_with(Theme::new(true)), screen.text_with(Theme::new(false)));
        prop_assert_eq!(&first, &second, "colours change no text");
        prop_assert!(screen.state.tick_ms() > 0);
    }
}
