//! Budgets: what the agents of a run have used, and whether another may start (docs/team-yml.md). Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cliq_protocol::{Budget, Limited, Object, PhaseKind, Usage};
use cliq_workflow::{PhaseId, ValidatedWorkflow};

/// The limits of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Limits {
    /// The limit of the whole run.
    pub run: Budget,
    /// Limits of single phases, over all their activations.
    pub phases: BTreeMap<PhaseId, Budget>,
    /// Phases whose agent is known to use a language model. Another agent counts as such once it reports usage.
    pub models: BTreeSet<PhaseId>,
}

/// An amount of usage.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Amount {
    /// Tokens of input and output.
    pub tokens: u64,
    /// US dollars, as far as they are known.
    pub usd: f64,
    /// Whether a part has no known cost.
    pub has_unknown_cost: bool,
}

impl Amount {
    /// The amount of a report.
    #[must_use]
    pub fn of(usage: &Usage) -> Self {
        Self {
            tokens: usage.tokens(),
            usd: usage.cost_usd.unwrap_or(0.0),
            has_unknown_cost: usage.cost_usd.is_none() && usage.tokens() > 0,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            usd: self.usd + other.usd,
            has_unknown_cost: self.has_unknown_cost || other.has_unknown_cost,
        }
    }
}

/// A budget that is used up.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExceededBudget {
    pub(super) scope: Scope,
    /// Reason for people, with the remedy.
    pub(super) reason: String,
    pub(super) limited: Limited,
}

/// Usage of each phase against the limits.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Ledger {
    limits: Limits,
    accounts: Vec<Account>,
    /// Accounts of items. They count for their phase.
    items: BTreeMap<PhaseId, Account>,
    /// The agent of each phase, as an index into `has_reported`.
    agents: Vec<usize>,
    /// Whether an agent has ever reported usage.
    has_reported: Vec<bool>,
    /// The sum of all accounts.
    tokens: u64,
    usd: f64,
    /// Number of accounts with a part of unknown cost.
    unknown_costs: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Account {
    /// The usage of earlier activations.
    settled: Amount,
    /// The usage of this activation so far.
    current: Amount,
    /// Whether its agent was asked to end.
    is_ending: bool,
}

impl Account {
    fn total(&self) -> Amount {
        self.settled.plus(self.current)
    }
}

impl Ledger {
    /// A ledger for the phases of a workflow, without limits.
    pub(super) fn new(workflow: &ValidatedWorkflow) -> Self {
        let mut known = HashMap::new();
        let mut agents = Vec::new();
        for (_, phase) in workflow.phases() {
            let next = known.len();
            agents
                .push(*known.entry((phase.kind == PhaseKind::Team, phase.agent.as_deref())).or_insert(next));
        }
        Self {
            accounts: vec![Account::default(); agents.len()],
            has_reported: vec![false; known.len()],
            agents,
            ..Self::default()
        }
    }

    fn account(&mut self, id: PhaseId) -> &mut Account {
        match id.item() {
            None => &mut self.accounts[id.index()],
            Some(_) => self.items.entry(id).or_default(),
        }
    }

    /// Returns the usage of a phase with its items.
    fn of_phase(&self, id: PhaseId) -> Amount {
        let (first, last) = (id.whole().with_item(0), id.whole().with_item(u32::MAX));
        let items = self.items.range(first..=last).map(|(_, account)| account.total());
        items.fold(self.accounts[id.index()].total(), Amount::plus)
    }

    /// Sets the limits. What was used stays.
    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// An agent starts in a phase.
    pub(super) fn begin(&mut self, phase: PhaseId) {
        let account = self.account(phase);
        account.settled = account.total();
        (account.current, account.is_ending) = (Amount::default(), false);
    }

    /// The usage of the phase's activation so far.
    pub(super) fn report(&mut self, phase: PhaseId, amount: Amount) {
        let account = self.account(phase);
        let before = account.total();
        account.current = amount;
        let after = account.total();
        self.has_reported[self.agents[phase.index()]] = true;
        self.tokens = self.tokens.saturating_sub(before.tokens).saturating_add(after.tokens);
        self.usd += after.usd - before.usd;
        self.unknown_costs += usize::from(after.has_unknown_cost);
        self.unknown_costs -= usize::from(before.has_unknown_cost);
    }

    /// Whether a phase's agent is known to use a language model.
    pub(super) fn uses_model(&self, phase: PhaseId) -> bool {
        self.limits.models.contains(&phase.whole()) || self.has_reported[self.agents[phase.index()]]
    }

    /// Marks the agent of a phase as asked to end. `false` where it was already.
    pub(super) fn end(&mut self, phase: PhaseId) -> bool {
        !std::mem::replace(&mut self.account(phase).is_ending, true)
    }

    /// Whether the agent of a phase was asked to end.
    pub(super) fn is_ending(&self, phase: PhaseId) -> bool {
        match phase.item() {
            None => self.accounts[phase.index()].is_ending,
            Some(_) => self.items.get(&phase).is_some_and(|account| account.is_ending),
        }
    }

    /// Reason why the agent of a phase may not start; `None` if it may.
    pub(super) fn refusal(&self, phase: PhaseId) -> Option<String> {
        if !self.uses_model(phase) {
            return None;
        }
        let spent = |budget: Budget, used: Amount, of: Scope| {
            let is_spent = budget.tokens.is_some_and(|limit| used.tokens >= limit)
                || budget.usd.is_some_and(|limit| used.usd >= limit || used.has_unknown_cost);
            is_spent.then(|| reason(budget, used, of))
        };
        let of_phase = self.limits.phases.get(&phase.whole()).copied().unwrap_or_default();
        spent(self.limits.run, self.total(), Scope::Run)
            .or_else(|| spent(of_phase, self.of_phase(phase), Scope::Phase))
    }

    /// The budget that a report of a phase has exceeded, if any.
    pub(super) fn exceeded(&self, phase: PhaseId) -> Option<ExceededBudget> {
        let over = |budget: Budget, used: Amount| {
            budget.tokens.is_some_and(|limit| used.tokens > limit)
                || budget.usd.is_some_and(|limit| used.usd > limit)
        };
        let (run, used) = (self.limits.run, self.total());
        if over(run, used) {
            return Some(ExceededBudget::new(run, used, Scope::Run));
        }
        let (budget, used) = (*self.limits.phases.get(&phase.whole())?, self.of_phase(phase));
        over(budget, used).then(|| ExceededBudget::new(budget, used, Scope::Phase))
    }

    /// Returns the remaining budget of a phase.
    pub(super) fn remaining(&self, phase: PhaseId) -> Budget {
        let left = |budget: Budget, used: Amount| Budget {
            tokens: budget.tokens.map(|limit| limit.saturating_sub(used.tokens)),
            usd: budget.usd.map(|limit| (limit - used.usd).max(0.0)),
        };
        let run = left(self.limits.run, self.total());
        let own = self.limits.phases.get(&phase.whole()).copied().unwrap_or_default();
        let own = left(own, self.of_phase(phase));
        let least = |a: Option<f64>, b: Option<f64>| a.map_or(b, |a| Some(b.map_or(a, |b| a.min(b))));
        Budget { tokens: run.tokens.into_iter().chain(own.tokens).min(), usd: least(run.usd, own.usd) }
    }

    fn total(&self) -> Amount {
        Amount { tokens: self.tokens, usd: self.usd, has_unknown_cost: self.unknown_costs > 0 }
    }
}

/// Owner of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The run: no agent that uses a model may continue.
    Run,
    /// The phase.
    Phase,
}

impl ExceededBudget {
    fn new(budget: Budget, used: Amount, scope: Scope) -> Self {
        let limited = match (budget.tokens, budget.usd) {
            (Some(limit), _) if used.tokens >= limit => Limited::new("budget.tokens", limit),
            (_, Some(limit)) => Limited::new("budget.usd", limit),
            (Some(limit), None) => Limited::new("budget.tokens", limit),
            (None, None) => Limited { limit: "budget".to_owned(), value: None, extra: Object::new() },
        };
        Self { scope, reason: reason(budget, used, scope), limited }
    }
}

/// Reason why a budget ends an agent, and the remedy.
fn reason(budget: Budget, used: Amount, of: Scope) -> String {
    let (whose, remedy) = match of {
        Scope::Run => {
            ("the run's", "`cliq run --resume` with a larger `--budget-tokens` or `--budget-usd` goes on")
        }
        Scope::Phase => (
            "its",
            "a larger `budget:` of the phase in team.yml, `cliq assemble` and `cliq run --resume` go on",
        ),
    };
    match (budget.tokens, budget.usd) {
        (Some(limit), _) if used.tokens >= limit => {
            format!("{whose} budget of {limit} tokens is spent, {} were used: {remedy}", used.tokens)
        }
        (_, Some(limit)) if used.usd >= limit => {
            format!("{whose} budget of {limit} USD is spent, {:.4} were used: {remedy}", used.usd)
        }
        (_, limit) => format!(
            "{whose} budget of {} USD cannot be kept, as a part of what was used has no known cost: the setting `prices.MODEL` gives a model its price",
            limit.unwrap_or_default()
        ),
    }
}

#[cfg(test)]
mod tests {
    use cliq_workflow::{NoFiles, check};

    use super::*;

    /// Phases `a` and `b` of one agent, and `c` of another. The budget `phase` is that of `a`.
    fn ledger(run: Budget, phase: Option<Budget>) -> (Ledger, [PhaseId; 3]) {
        let phase_of =
            |name: &str, agent: &str| format!("    - {{name: {name}, type: standard, agent: {agent}}}\n");
        let phases =
            [phase_of("a", "claude-code"), phase_of("b", "claude-code"), phase_of("c", "codex")].concat();
        let text = format!("name: '@local/t'\nworkflow:\n  phases:\n{phases}");
        let workflow = check(&text, &NoFiles).workflow.expect("a workflow");
        let ids: Vec<PhaseId> = workflow.phases().map(|(id, _)| id).collect();
        let mut ledger = Ledger::new(&workflow);
        let phases = phase.into_iter().map(|budget| (ids[0], budget)).collect();
        ledger.set_limits(Limits { run, phases, models: BTreeSet::from([ids[0]]) });
        (ledger, [ids[0], ids[1], ids[2]])
    }

    fn tokens(limit: u64) -> Budget {
        Budget { tokens: Some(limit), usd: None }
    }

    fn usd(limit: f64) -> Budget {
        Budget { tokens: None, usd: Some(limit) }
    }

    fn used(tokens: u64, usd: f64) -> Amount {
        Amount { tokens, usd, has_unknown_cost: false }
    }

    const UNKNOWN: Amount = Amount { tokens: 1, usd: 0.0, has_unknown_cost: true };

    #[test]
    fn amount_of_a_report() {
        let report = |tokens_in, cost_usd| Usage { tokens_in, tokens_out: 0, cost_usd, ..Usage::default() };
        assert_eq!(Amount::of(&report(5, Some(0.5))), used(5, 0.5));
        assert_eq!(Amount::of(&report(5, None)), Amount { tokens: 5, usd: 0.0, has_unknown_cost: true });
        assert_eq!(Amount::of(&report(0, None)), used(0, 0.0), "nothing costs nothing");
    }

    #[test]
    fn reports_replace_each_other_and_activations_add_up() {
        let (mut ledger, [a, _, c]) = ledger(Budget::default(), None);
        ledger.begin(a);
        ledger.report(a, used(5, 0.5));
        ledger.report(a, used(8, 0.75));
        assert_eq!(ledger.total(), used(8, 0.75));
        ledger.begin(a);
        ledger.report(a, used(2, 0.25));
        ledger.report(c, used(100, 2.0));
        assert_eq!(ledger.total(), used(110, 3.0));
        assert_eq!(ledger.accounts[0].total(), used(10, 1.0));
    }

    #[test]
    fn cost_is_unknown_until_each_report_has_one() {
        let (mut ledger, [a, _, c]) = ledger(usd(1.0), None);
        ledger.report(a, UNKNOWN);
        ledger.report(c, UNKNOWN);
        assert!(ledger.refusal(a).is_some_and(|why| why.contains("cannot be kept")));
        ledger.report(a, used(1, 0.1));
        assert!(ledger.total().has_unknown_cost);
        ledger.report(c, used(1, 0.1));
        assert!(!ledger.total().has_unknown_cost);
        assert_eq!(ledger.refusal(a), None);
        ledger.report(a, UNKNOWN);
        ledger.begin(a);
        ledger.report(a, used(1, 0.1));
        assert!(ledger.total().has_unknown_cost, "of an earlier activation");
    }

    #[test]
    fn agents_that_report_use_a_model() {
        let (mut ledger, [a, b, c]) = ledger(tokens(0), None);
        assert_eq!([a, b, c].map(|phase| ledger.uses_model(phase)), [true, false, false]);
        assert_eq!((ledger.refusal(a).is_some(), ledger.refusal(c)), (true, None), "others are not limited");
        ledger.report(a, used(1, 0.0));
        assert_eq!([a, b, c].map(|phase| ledger.uses_model(phase)), [true, true, false], "the same agent");
    }

    #[test]
    fn agent_is_asked_to_end_once() {
        let (mut ledger, [a, b, _]) = ledger(Budget::default(), None);
        assert!(!ledger.is_ending(a));
        assert_eq!(
            [ledger.end(a), ledger.end(a), ledger.is_ending(a), ledger.is_ending(b)],
            [true, false, true, false]
        );
        ledger.begin(a);
        assert!(!ledger.is_ending(a) && ledger.end(a));
    }

    #[test]
    fn spent_budget_refuses_a_start_and_an_exceeded_one_ends_the_agent() {
        for (used, is_refused, is_exceeded) in [(9, false, false), (10, true, false), (11, true, true)] {
            for (run, phase, whose) in
                [(tokens(10), None, "the run's"), (Budget::default(), Some(tokens(10)), "its")]
            {
                let (mut ledger, [a, ..]) = ledger(run, phase);
                ledger.report(a, self::used(used, 0.0));
                let refusal = ledger.refusal(a);
                assert_eq!(refusal.is_some(), is_refused, "{used}");
                let text = format!("{whose} budget of 10 tokens is spent, {used} were used");
                assert!(refusal.is_none_or(|why| why.starts_with(&text)));
                let kind = match ledger.exceeded(a) {
                    None => None,
                    Some(ExceededBudget { scope: Scope::Run, .. }) => Some("the run's"),
                    Some(ExceededBudget { scope: Scope::Phase, .. }) => Some("its"),
                };
                assert_eq!(kind, is_exceeded.then_some(whose), "{used}");
            }
        }
        for (spent, is_refused, is_exceeded) in [(0.5, false, false), (1.0, true, false), (1.5, true, true)] {
            let (mut ledger, [a, ..]) = ledger(usd(1.0), None);
            ledger.report(a, used(1, spent));
            assert_eq!(
                (ledger.refusal(a).is_some(), ledger.exceeded(a).is_some()),
                (is_refused, is_exceeded)
            );
            assert!(ledger.refusal(a).is_none_or(|why| why.contains("budget of 1 USD is spent")));
        }
        // Both limits: either one counts.
        let (mut ledger, [a, ..]) = ledger(Budget { tokens: Some(10), usd: Some(1.0) }, None);
        ledger.report(a, used(1, 2.0));
        assert!(ledger.refusal(a).is_some() && ledger.exceeded(a).is_some());
    }

    #[test]
    fn remaining_budget_is_the_smaller_one() {
        let left = |run: Budget, phase: Option<Budget>| {
            let (mut ledger, [a, _, c]) = ledger(run, phase);
            ledger.report(a, used(4, 0.25));
            ledger.report(c, used(2, 0.5));
            ledger.remaining(a)
        };
        assert_eq!(left(Budget::default(), None), Budget::default());
        assert_eq!(left(tokens(10), None), tokens(4));
        assert_eq!(left(tokens(10), Some(tokens(7))), tokens(3));
        assert_eq!(left(tokens(5), Some(tokens(7))), tokens(0));
        assert_eq!(left(usd(2.0), None), usd(1.25));
        assert_eq!(left(usd(2.0), Some(usd(1.0))), usd(0.75));
        assert_eq!(left(Budget::default(), Some(usd(0.125))), usd(0.0));
    }
}
