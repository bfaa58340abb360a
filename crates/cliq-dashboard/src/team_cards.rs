//! Cards of teams: purpose, needs, and whether a run can start here.

use cliq_web::TeamCard;
use maud::{Markup, html};

use crate::elements::badge;

/// Cards of teams. `starts` makes the title of each a way to its form.
pub(super) fn cards(teams: &[TeamCard], starts: bool) -> Markup {
    html! { div.teams { @for team in teams { (card(team, starts)) } } }
}

fn card(team: &TeamCard, starts: bool) -> Markup {
    let (summary, name) = (&team.summary, &team.summary.name);
    let link =
        if starts && summary.valid { format!("/runs/new?team={name}") } else { format!("/teams/{name}") };
    html! {
        article.card {
            h2 { a.strong href=(link) { (name) } }
            @if let Some(description) = &summary.description { p { (description) } }
            p.facts.small {
                @if summary.valid { span { (team.phases) " phases" } } @else { (badge("has errors")) }
                span { (summary.source) }
            }
            @if let Some(needs) = &team.needs {
                ul.plain.small {
                    @for input in &team.inputs { li { "needs the input " code { (input) } } }
                    @if needs.default_agent { li { "needs a model agent" } }
                    @for agent in &needs.agents { li { "uses the agent " code { (agent) } } }
                    @for program in &needs.programs { li { "needs the program " code { (program) } } }
                }
                @let missing = needs.missing();
                @if missing.is_empty() { p { (badge("can run here")) } }
                @else { div.warning { ul { @for why in &missing { li { (why) } } } } }
            }
        }
    }
}
