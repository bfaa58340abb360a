//! Connections that have not sent a complete request. They hold slots at no cost for the client, so the oldest ones give way when slots
//! run out, and one address has a bound of its own.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// Registry of the connections without a complete request.
#[derive(Debug)]
pub(super) struct Pending {
    /// Maximum number per address.
    per_address: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    /// Connections by the order in which they started to wait.
    waiting: BTreeMap<u64, (IpAddr, CancellationToken)>,
    by_address: HashMap<IpAddr, usize>,
}

impl Inner {
    fn insert(&mut self, address: IpAddr, evict: &CancellationToken) -> u64 {
        self.next += 1;
        self.waiting.insert(self.next, (address, evict.clone()));
        *self.by_address.entry(address).or_default() += 1;
        self.next
    }

    fn remove(&mut self, number: u64) -> Option<CancellationToken> {
        let (address, evict) = self.waiting.remove(&number)?;
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
        Some(evict)
    }
}

impl Pending {
    /// Creates a registry. One address may have half of `max_connections`: clients behind one proxy share an address.
    pub(super) fn new(max_connections: usize) -> Self {
        Self { per_address: (max_connections / 2).max(1), inner: Mutex::default() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a new connection. If its address has too many, the oldest one of the address is evicted.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> PendingConnection {
        let evict = CancellationToken::new();
        let mut inner = self.lock();
        let number = inner.insert(address, &evict);
        if inner.by_address.get(&address).is_some_and(|count| *count > self.per_address) {
            let oldest = inner.waiting.iter().find(|(_, (other, _))| *other == address).map(|(n, _)| *n);
            if let Some(evicted) = oldest.and_then(|oldest| inner.remove(oldest)) {
                evicted.cancel();
            }
        }
        drop(inner);
        let shared =
            Arc::new(Shared { pending: Arc::clone(self), address, evict, number: Mutex::new(number) });
        PendingConnection { shared }
    }

    /// Evicts the connection that has waited longest. Returns `false` if none is waiting.
    pub(super) fn evict_oldest(&self) -> bool {
        let mut inner = self.lock();
        let oldest = inner.waiting.keys().next().copied();
        let evicted = oldest.and_then(|oldest| inner.remove(oldest));
        evicted.inspect(CancellationToken::cancel).is_some()
    }
}

#[derive(Debug)]
struct Shared {
    pending: Arc<Pending>,
    address: IpAddr,
    evict: CancellationToken,
    /// Number of the connection in the registry while it waits.
    number: Mutex<u64>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let number = *self.number.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.pending.lock().remove(number);
    }
}

/// Connection of the registry.
#[derive(Debug)]
pub(super) struct PendingConnection {
    shared: Arc<Shared>,
}

impl PendingConnection {
    /// Token that is cancelled when the connection must give way.
    pub(super) fn evicted(&self) -> CancellationToken {
        self.shared.evict.clone()
    }

    /// Protects the connection from eviction while a request is handled, until the guard is dropped.
    pub(super) fn activate(&self) -> Active {
        let number = *self.shared.number.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.pending.lock().remove(number);
        Active { shared: Arc::clone(&self.shared) }
    }
}

/// Guard of a request that is being handled.
#[derive(Debug)]
pub(super) struct Active {
    shared: Arc<Shared>,
}

impl Drop for Active {
    fn drop(&mut self) {
        let number = self.shared.pending.lock().insert(self.shared.address, &self.shared.evict);
        *self.shared.number.lock().unwrap_or_else(PoisonError::into_inner) = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn evicted(connections: &[&PendingConnection]) -> Vec<bool> {
        connections.iter().map(|connection| connection.evicted().is_cancelled()).collect()
    }

    #[test]
    fn oldest_waiting_connection_gives_way() {
        let pending = Arc::new(Pending::new(100));
        assert!(!pending.evict_oldest());
        let (a, b, c) = (pending.enter(HERE), pending.enter(THERE), pending.enter(HERE));
        assert!(pending.evict_oldest());
        assert_eq!(evicted(&[&a, &b, &c]), [true, false, false]);
        drop(b);
        assert!(pending.evict_oldest());
        assert_eq!(evicted(&[&a, &c]), [true, true]);
        assert!(!pending.evict_oldest());
    }

    #[test]
    fn active_connection_stays_until_its_response_is_sent() {
        let pending = Arc::new(Pending::new(100));
        let (a, b) = (pending.enter(HERE), pending.enter(HERE));
        let active = a.activate();
        assert!(pending.evict_oldest());
        assert!(!pending.evict_oldest(), "the other one handles a request");
        assert_eq!(evicted(&[&a, &b]), [false, true]);
        drop(active);
        assert!(pending.evict_oldest());
        assert_eq!(evicted(&[&a]), [true]);
    }

    #[test]
    fn one_address_has_a_bound_of_its_own() {
        let pending = Arc::new(Pending::new(4));
        let other = pending.enter(THERE);
        let connections: Vec<_> = (0..3).map(|_| pending.enter(HERE)).collect();
        assert_eq!(evicted(&connections.iter().collect::<Vec<_>>()), [true, false, false]);
        assert!(!other.evicted().is_cancelled());
    }

    #[test]
    fn closed_connections_leave_nothing_behind() {
        let pending = Arc::new(Pending::new(4));
        let connection = pending.enter(HERE);
        let active = connection.activate();
        drop(connection);
        drop(active);
        let inner = pending.lock();
        assert!(inner.waiting.is_empty() && inner.by_address.is_empty(), "{inner:?}");
    }
}
