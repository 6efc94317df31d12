//! Deletes that wait until it is sure that they mean what they say.
//!
//! When a CRD is deleted, the API server deletes all its objects first, and a watch sees no difference between that
//! and somebody deleting every import one by one. It must not empty the zone (`dns.md` L17): a CRD goes by a slip of
//! `helm uninstall`, or on the way through a reinstallation, while the services behind the names run on. So deletes
//! of imports are held for a moment, and passed on only when discovery still offers the CRD *and* lets objects of it
//! be made: while a CRD is being deleted the API server marks it as terminating before it touches the first object,
//! and takes the verb `create` out of discovery from then on. That costs one small request for a burst of deletes,
//! and no permission.
//!
//! Endpoints are not concerned: deletes of slices, and changes of imports, pass at once.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::{Change, ServiceKey};

/// How long a delete is held before it is asked about: the time that discovery may lag behind the objects, with a
/// wide margin, and the time over which a burst is put together.
pub(super) const HOLD: Duration = Duration::from_millis(100);

/// Deletes of imports that nobody has confirmed yet.
#[derive(Debug, Default)]
pub(super) struct Held {
    deletes: BTreeMap<ServiceKey, Change>,
    due: Option<Instant>,
}

impl Held {
    /// Keeps `change` back where it is a delete of an import, and gives it back where it is not. An import that is
    /// there again is not deleted any more.
    pub(super) fn pass(&mut self, change: Change) -> Option<Change> {
        match change {
            Change::Import(key, None) => {
                self.deletes.insert(key.clone(), Change::Import(key, None));
                self.due.get_or_insert_with(|| Instant::now() + HOLD);
                None
            }
            Change::Import(key, import) => {
                self.deletes.remove(&key);
                if self.deletes.is_empty() {
                    self.due = None; // the next delete waits its own time
                }
                Some(Change::Import(key, import))
            }
            other => Some(other),
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
    pub(super) fn release(&mut self) -> impl Iterator<Item = Change> + use<> {
        self.due = None;
        std::mem::take(&mut self.deletes).into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EndpointObjects, Import, ImportKind};

    fn key(name: &str) -> ServiceKey {
        ServiceKey::new("shop", name).unwrap()
    }

    fn there(name: &str) -> Change {
        let import = Import {
            kind: ImportKind::Headless,
            ips: Box::default(),
            ports: Box::default(),
            clusters: Box::default(),
            endpoint_objects: EndpointObjects::Unknown,
            skipped: Box::default(),
        };
        Change::Import(key(name), Some(import))
    }

    #[tokio::test]
    async fn every_delete_is_held_for_its_time_also_after_one_that_was_taken_back() {
        let mut held = Held::default();
        assert_eq!(held.pass(Change::Import(key("a"), None)), None);
        assert_eq!(held.pass(there("a")), Some(there("a")));
        assert!(tokio::time::timeout(HOLD * 2, held.due()).await.is_err(), "there is nothing to ask about");
        let began = Instant::now();
        assert_eq!(held.pass(Change::Import(key("b"), None)), None);
        held.due().await;
        assert!(began.elapsed() >= HOLD, "{:?}", began.elapsed());
        assert_eq!(held.release().collect::<Vec<_>>(), [Change::Import(key("b"), None)]);
    }
}
