//! Which services are to be planned: now, in the order in which they became dirty, or at a time.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use crate::model::ServiceKey;
use crate::reconcile::objects::Time;

/// Services to be planned, each once.
#[derive(Debug, Default)]
pub(super) struct Queue {
    order: VecDeque<ServiceKey>,
    queued: HashSet<ServiceKey>,
    timers: BTreeSet<(Time, ServiceKey)>,
    times: HashMap<ServiceKey, Time>,
}

impl Queue {
    /// To be planned as soon as those before it are.
    pub(super) fn push(&mut self, key: ServiceKey) {
        if self.queued.insert(key.clone()) {
            self.order.push_back(key);
        }
    }

    /// The next one.
    pub(super) fn pop(&mut self) -> Option<ServiceKey> {
        let key = self.order.pop_front()?;
        self.queued.remove(&key);
        Some(key)
    }

    /// To be planned again at this time, or at none; an earlier wish is forgotten.
    pub(super) fn again(&mut self, key: &ServiceKey, at: Option<Time>) {
        if let Some(before) = self.times.remove(key) {
            self.timers.remove(&(before, key.clone()));
        }
        if let Some(at) = at {
            self.times.insert(key.clone(), at);
            self.timers.insert((at, key.clone()));
        }
    }

    /// Puts in what is due.
    pub(super) fn tick(&mut self, now: Time) {
        while let Some((_, key)) = self.timers.first().filter(|(at, _)| *at <= now).cloned() {
            self.again(&key, None);
            self.push(key);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Vec<ServiceKey> {
        ["a", "b", "c"].iter().filter_map(|name| ServiceKey::new("shop", name)).collect()
    }

    #[test]
    fn each_is_planned_once_and_in_order() {
        let (keys, mut queue) = (keys(), Queue::default());
        for key in keys.iter().chain(&keys) {
            queue.push(key.clone());
        }
        assert_eq!(queue.len(), 3);
        let popped: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(popped, keys);
        queue.push(keys[0].clone());
        assert!(!queue.is_empty(), "what was planned may become dirty again");
    }

    #[test]
    fn the_last_wish_for_a_time_counts() {
        let (keys, mut queue) = (keys(), Queue::default());
        queue.again(&keys[0], Some(Time(10)));
        queue.again(&keys[0], Some(Time(20)));
        queue.again(&keys[1], Some(Time(10)));
        queue.again(&keys[1], None);
        queue.tick(Time(19));
        assert!(queue.is_empty());
        queue.tick(Time(20));
        assert_eq!(queue.pop().as_ref(), Some(&keys[0]));
        queue.tick(Time(99));
        assert!(queue.is_empty());
    }
}
