//! To which service a slice belongs: the sources are filed under their Service, ours under their import.

use super::member::{Home, Kind};
use super::naming;
use super::observed::Slice;
use super::world::{Dirty, World};
use crate::api;
use crate::model::{ClusterId, Label, ServiceKey, SliceKey};

impl World {
    /// An EndpointSlice, or its absence. FQDN slices are not told.
    pub fn set_slice(&mut self, cluster: &ClusterId, key: &SliceKey, slice: Option<Slice>) -> Dirty {
        let Some(member) = self.members.get_mut(cluster) else { return Dirty::Nothing };
        if slice.is_some() {
            member.see(Kind::Slices, &key.namespace, &key.name);
        }
        self.place(cluster, key, slice)
    }

    /// Files a slice under the service that it belongs to now, or takes it out.
    fn place(&mut self, cluster: &ClusterId, key: &SliceKey, slice: Option<Slice>) -> Dirty {
        let home = slice.as_ref().map(|slice| self.home(key, slice));
        let Some(member) = self.members.get_mut(cluster) else { return Dirty::Nothing };
        let before = match &home {
            Some(home) => member.slices.insert(key.clone(), home.clone()),
            None => member.slices.remove(key),
        };
        let mut dirty = Vec::new();
        if let Some(before) = before.filter(|before| Some(before) != home.as_ref()) {
            dirty.extend(self.file(cluster, &before, &key.name, None));
        }
        if let Some((home, slice)) = home.zip(slice) {
            dirty.extend(self.file(cluster, &home, &key.name, Some(slice)));
        }
        if dirty.is_empty() { Dirty::Nothing } else { Dirty::Services(dirty) }
    }

    /// Files a slice, or takes it out.
    fn file(&mut self, cluster: &ClusterId, home: &Home, name: &str, slice: Option<Slice>) -> Option<ServiceKey> {
        let (key, mirrored) = match home {
            Home::Source(key) => (key, false),
            Home::Mirrored(key) => (key, true),
            Home::Nowhere => return None,
        };
        let dirty = self.change(cluster, key, Kind::Slices, false, |local| {
            let slices = if mirrored { &mut local.mirrored } else { &mut local.sources };
            let same = match (slices.get(name), &slice) {
                (Some(a), Some(b)) => a.content == b.content && (!mirrored || a.meta.same(&b.meta)),
                (a, b) => a.is_none() && b.is_none(),
            };
            match slice {
                Some(slice) => slices.insert(name.into(), slice),
                None => slices.remove(name),
            };
            same
        });
        match dirty {
            Dirty::Services(keys) => keys.into_iter().next(),
            _ => None,
        }
    }

    /// To which service a slice belongs.
    fn home(&self, key: &SliceKey, slice: &Slice) -> Home {
        let label = |label: &str| {
            let name = Label::new(slice.meta.labels.get(label)?)?;
            Some(ServiceKey { namespace: key.namespace.clone(), name })
        };
        if slice.is_ours() {
            // Without the label (somebody took it off) its name still tells whose it is.
            let by_name = || {
                let derived = key.name.get(..naming::DERIVED_LENGTH).and_then(Label::new)?;
                self.by_derived.get(&ServiceKey { namespace: key.namespace.clone(), name: derived }).cloned()
            };
            // And where nothing says yet which service that name stands for, it is filed under the name itself: a
            // service that nobody exports, so that it goes if it is not filed better before (R81).
            let itself = || {
                let derived = key.name.get(..naming::DERIVED_LENGTH).filter(|name| naming::is_derived(name))?;
                Some(ServiceKey { namespace: key.namespace.clone(), name: Label::new(derived)? })
            };
            let home = label(api::LABEL_SERVICE_NAME).or_else(by_name).or_else(itself);
            return home.map_or(Home::Nowhere, Home::Mirrored);
        }
        if slice.meta.labels.contains_key(api::LABEL_SOURCE_CLUSTER) {
            return Home::Nowhere;
        }
        // Karmada's MultiClusterService puts other clusters' endpoints behind the user's own Service, without that label.
        if slice
            .meta
            .labels
            .get(api::LABEL_SLICE_MANAGED_BY)
            .is_some_and(|manager| **manager == *api::KARMADA_DISPATCHER)
        {
            return Home::Nowhere;
        }
        label(api::LABEL_KUBERNETES_SERVICE_NAME).map_or(Home::Nowhere, Home::Source)
    }

    /// It has just become known which service has this derived name: slices of ours that were filed under the name
    /// itself are that service's.
    pub(super) fn file_better(&mut self, derived: &ServiceKey) {
        let mut found = Vec::new();
        for (cluster, member) in &self.members {
            for (name, slice) in member.local(derived).into_iter().flat_map(|local| &local.mirrored) {
                if !slice.meta.labels.contains_key(api::LABEL_SERVICE_NAME) {
                    let slice_key = SliceKey { namespace: derived.namespace.clone(), name: name.clone() };
                    found.push((cluster.clone(), slice_key, slice.clone()));
                }
            }
        }
        for (cluster, slice_key, slice) in found {
            self.place(&cluster, &slice_key, Some(slice));
        }
    }
}
