//! Equal lists, kept once: most imports have one of a few lists of ports, and one of a few sets of clusters export them.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// Fewer lists are never looked through for what nobody has any more.
const FEW: usize = 64;

/// The lists that somebody has, and at most as many that nobody has any more.
#[derive(Debug)]
pub(super) struct Shared<T> {
    known: HashSet<Arc<[T]>>,
    /// With so many, those that nobody else has are forgotten.
    most: usize,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self { known: HashSet::new(), most: FEW }
    }
}

impl<T: Eq + Hash> Shared<T> {
    /// Puts the list that is known in the place of one that equals it.
    pub(super) fn share(&mut self, list: &mut Arc<[T]>) {
        if let Some(known) = self.known.get(&**list) {
            *list = Arc::clone(known);
            return;
        }
        if self.known.len() >= self.most {
            self.known.retain(|list| Arc::strong_count(list) > 1);
            self.most = FEW.max(self.known.len() * 2); // so that a list is looked at twice in its life, on average
        }
        self.known.insert(Arc::clone(list));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Effects, Index};
    use crate::model::{Change, ClusterId, EndpointObjects, Import, ImportKind, Port, Protocol, ServiceKey, Update};

    #[test]
    fn equal_lists_become_one_and_others_stay() {
        let mut shared = Shared::default();
        let mut lists: [Arc<[u8]>; 3] = [[1, 2].into(), [1, 2].into(), [2, 1].into()];
        lists.iter_mut().for_each(|list| shared.share(list));
        assert!(Arc::ptr_eq(&lists[0], &lists[1]) && !Arc::ptr_eq(&lists[0], &lists[2]));
        assert_eq!((&*lists[1], &*lists[2]), (&[1, 2][..], &[2, 1][..]));
    }

    #[test]
    fn lists_that_nobody_has_are_forgotten() {
        let mut shared = Shared::default();
        let mut kept: Arc<[usize]> = [7].into();
        shared.share(&mut kept);
        for n in 1_000..10_000 {
            shared.share(&mut [n].into());
            assert!(shared.known.len() <= FEW, "{n}");
        }
        let mut again: Arc<[usize]> = [7].into();
        shared.share(&mut again);
        assert!(Arc::ptr_eq(&kept, &again));
    }

    #[test]
    fn imports_with_the_same_ports_and_exporters_share_them() {
        let mut index = Index::new();
        let key = |name| ServiceKey::new("shop", name).unwrap();
        for name in ["a", "b"] {
            let import = Import {
                kind: ImportKind::ClusterSetIp,
                ips: Box::default(),
                ports: [Port { name: None, protocol: Protocol::Tcp, number: 80 }].into(),
                clusters: [ClusterId::new("east").unwrap()].into(),
                endpoint_objects: EndpointObjects::Unknown,
                skipped: Box::default(),
            };
            index.apply(Update::Change(Change::Import(key(name), Some(import))), &mut Effects::default());
        }
        let import = |name| index.view(&key(name)).unwrap().import;
        assert!(Arc::ptr_eq(&import("a").ports, &import("b").ports));
        assert!(Arc::ptr_eq(&import("a").clusters, &import("b").clusters));
    }

    #[test]
    fn lists_that_all_have_an_owner_stay_known() {
        let mut shared = Shared::default();
        let mut all: Vec<Arc<[usize]>> = (0..1_000).map(|n| [n].into()).collect();
        all.iter_mut().for_each(|list| shared.share(list));
        assert_eq!(shared.known.len(), 1_000);
    }
}
