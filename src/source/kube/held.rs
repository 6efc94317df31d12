//! Deletes that wait until it is sure that they mean what they say.
//!
//! When a CRD is deleted, the API server deletes all its objects first, and a watch sees no difference between that
//! and somebody deleting every import one by one. It must not empty the zone (`dns.md` L17): a CRD goes by a slip of
//! `helm uninstall`, or on the way through a reinstallation, while the services behind the names run on. So deletes
//! of custom resources are held for a moment, and passed on only when discovery still offers the CRD *and* lets objects
//! of it be made: while a CRD is being deleted the API server marks it as terminating before it touches the first
//! object, and takes the verb `create` out of discovery from then on. That costs one small request for a burst of
//! deletes, and no permission.
//!
//! Built-in resources are not concerned, and changes pass at once.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// How long a delete is held before it is asked about: the time that discovery may lag behind the objects, with a
/// wide margin, and the time over which a burst is put together.
pub(super) const HOLD: Duration = Duration::from_millis(100);

/// Namespace and name.
pub(super) type Name = (String, String);

/// Deletes that nobody has confirmed yet.
#[derive(Debug)]
pub(super) struct Held<T> {
    deletes: BTreeMap<Name, T>,
    due: Option<Instant>,
}

impl<T> Default for Held<T> {
    fn default() -> Self {
        Self { deletes: BTreeMap::new(), due: None }
    }
}

impl<T> Held<T> {
    /// Whether nothing is held.
    pub(super) fn is_empty(&self) -> bool {
        self.deletes.is_empty()
    }

    /// Keeps a delete back.
    pub(super) fn hold(&mut self, name: Name, delete: T) {
        self.deletes.insert(name, delete);
        self.due.get_or_insert_with(|| Instant::now() + HOLD);
    }

    /// What is there again is not deleted any more.
    pub(super) fn forget(&mut self, name: &Name) {
        self.deletes.remove(name);
        if self.deletes.is_empty() {
            self.due = None; // the next delete waits its own time
        }
    }

    /// Waits until the deletes are due to be asked about; for ever where there are none.
    pub(super) async fn due(&self) {
        match self.due {
            Some(due) if !self.deletes.is_empty() => tokio::time::sleep_until(due).await,
            _ => std::future::pending().await,
        }
    }

    /// They could not be asked about; try again later.
    pub(super) fn postpone(&mut self, pause: Duration) {
        self.due = Some(Instant::now() + pause);
    }

    /// They mean what they say.
    pub(super) fn release(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.due = None;
        std::mem::take(&mut self.deletes).into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Name {
        ("shop".to_owned(), name.to_owned())
    }

    #[tokio::test]
    async fn every_delete_is_held_for_its_time_also_after_one_that_was_taken_back() {
        let mut held = Held::default();
        held.hold(name("a"), "a");
        held.forget(&name("a"));
        assert!(held.is_empty());
        assert!(tokio::time::timeout(HOLD * 2, held.due()).await.is_err(), "there is nothing to ask about");
        let began = Instant::now();
        held.hold(name("b"), "b");
        held.due().await;
        assert!(began.elapsed() >= HOLD, "{:?}", began.elapsed());
        assert_eq!(held.release().collect::<Vec<_>>(), ["b"]);
    }
}
