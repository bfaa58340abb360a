//! Maximum number of activations of a run (docs/expressions.md).

use crate::model::{PhaseId, ValidatedWorkflow};

impl ValidatedWorkflow {
    /// Returns the maximum number of activations of a run without interruptions: starts of agents and of commands, with each
    /// evaluation of a gate, each item and each attempt. `u64::MAX` stands for a number that is too large.
    #[must_use]
    pub fn max_activations(&self) -> u64 {
        let starts = self.max_starts();
        let of_phase = |(id, phase): (PhaseId, &crate::Phase)| {
            let items = phase.for_each.as_ref().map_or(1, |list| u64::from(list.max_items));
            let attempts = phase.retry.as_ref().map_or(1, |retry| u64::from(retry.attempts));
            let each = if phase.kind.is_gate() {
                u64::from(phase.max_iterations)
            } else {
                items.saturating_mul(attempts)
            };
            starts[id.index()].saturating_mul(each)
        };
        self.phases().map(of_phase).fold(0, u64::saturating_add)
    }

    /// Returns how often each phase may start: once in the main flow, and once for each route of a gate.
    fn max_starts(&self) -> Vec<u64> {
        let routes = |starts: &[u64], gate: PhaseId| {
            let rounds = u64::from(self.phase(gate).max_iterations.saturating_sub(1));
            starts[gate.index()].saturating_mul(rounds)
        };
        let mut starts: Vec<u64> = self.phases().map(|(_, phase)| u64::from(!phase.support)).collect();
        // Gates of the main flow route to phases before them and to support phases: the last come first.
        for gate in self.downstream_first() {
            let more = routes(&starts, gate);
            for &target in &self.phase(gate).route_targets {
                starts[target.index()] = starts[target.index()].saturating_add(more);
            }
        }
        for (id, phase) in self.phases() {
            if let Some(list) = &phase.for_each
                && let Some(resolver) = list.on_conflict
            {
                let conflicts = starts[id.index()].saturating_mul(u64::from(list.max_items));
                starts[resolver.index()] = starts[resolver.index()].saturating_add(conflicts);
            }
        }
        // Gates among the support phases may route to each other, but never to one that waits for them: each chain of routes
        // has each of them once.
        let gates: Vec<PhaseId> = self
            .phases()
            .filter(|(_, phase)| phase.support && phase.kind.is_gate())
            .map(|(id, _)| id)
            .collect();
        let widest =
            gates.iter().map(|gate| u64::from(self.phase(*gate).max_iterations.saturating_sub(1))).max();
        let external: u64 = gates.iter().map(|gate| starts[gate.index()]).fold(0, u64::saturating_add);
        let chain = |length: usize| {
            (0..length).fold(external, |product, _| product.saturating_mul(widest.unwrap_or(0)))
        };
        if !gates.is_empty() {
            let all = (0..gates.len()).map(chain).fold(0, u64::saturating_add);
            for gate in &gates {
                starts[gate.index()] = all;
            }
            for gate in &gates {
                let more = routes(&starts, *gate);
                for &target in self.phase(*gate).route_targets.iter().filter(|target| !gates.contains(target))
                {
                    starts[target.index()] = starts[target.index()].saturating_add(more);
                }
            }
        }
        starts
    }

    /// Returns the gates of the main flow, each before those upstream of it.
    fn downstream_first(&self) -> Vec<PhaseId> {
        let mut open: Vec<usize> = self.phases().map(|(_, phase)| phase.dependents.len()).collect();
        let mut ready: Vec<PhaseId> =
            self.phases().filter(|(_, p)| !p.support && p.dependents.is_empty()).map(|(id, _)| id).collect();
        let mut gates = Vec::new();
        while let Some(id) = ready.pop() {
            if self.phase(id).kind.is_gate() {
                gates.push(id);
            }
            for &before in &self.phase(id).depends_on {
                open[before.index()] -= 1;
                if open[before.index()] == 0 {
                    ready.push(before);
                }
            }
        }
        gates
    }
}
