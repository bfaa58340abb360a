//! Lines for screen readers.

use cliq_terminal::{Announcer, RunStatus};

use crate::fixtures::{NOW, runs, time};

#[test]
fn lines_tell_each_change_once() {
    let mut announcer = Announcer::default();
    let mut list = runs();
    insta::assert_snapshot!(announcer.lines(&list, time(NOW)).join("\n"), @r#"
    Add a search field to the catalogue (shop, run a-0000): working, 2 of 5 phases done, 3m12s, $0.37, needs you: approval waits for ann
    Größe und 漢字 im Titel (shop, run b-0000): working, 2 of 5 phases done, 3m12s, $0.37
    red ·evil· title (shop, run c-0000): failed, 2 of 5 phases done, 3m12s, $0.37
    Translate the help pages (shop, run d-0000): completed with caveats, 2 of 5 phases done, 3m12s, $0.37
    "#);
    assert!(announcer.lines(&list, time(NOW + 5000)).is_empty(), "nothing changed");
    list.runs[0].needs = None;
    list.runs[0].done = 3;
    (list.runs[1].status, list.runs[1].ended) = (RunStatus::Completed, Some(time(NOW)));
    list.problems.push("the server does not respond".to_owned());
    insta::assert_snapshot!(announcer.lines(&list, time(NOW)).join("\n"), @r#"
    problem: the server does not respond
    Add a search field to the catalogue (shop, run a-0000): working, 3 of 5 phases done, 3m12s, $0.37
    Größe und 漢字 im Titel (shop, run b-0000): completed, 2 of 5 phases done, 3m12s, $0.37
    "#);
    assert!(announcer.lines(&list, time(NOW)).is_empty(), "a problem is reported once");
}

#[test]
fn silence_is_named() {
    let mut announcer = Announcer::default();
    let lines = announcer.lines(&cliq_terminal::RunList::default(), time(NOW));
    assert_eq!(lines, ["no run is active, and none ended today"]);
}
