//! Where clusters are: the hub, and the members.

use std::path::PathBuf;

use super::{Key, Machine};
use crate::config::Keyed;
use crate::config::check::Checker;
use crate::config::parse::{self, Refusal};
use crate::config::raw::resolve;
use crate::controller::enrol::manifests;
use crate::controller::members::{self, ContextMember, Convention, IdRules, Inventory, MemberSettings};
use crate::source::kube::Access;

impl Checker<'_, Key, Machine> {
    /// The hub, if there is one.
    pub(super) fn hub(&mut self) -> Option<Access> {
        let none = self.switch(Key::NoHub);
        let context = self.maybe(Key::Hub, |text| parse::filled(text).map(Some));
        if none {
            for key in [Key::Hub, Key::Inventory, Key::Lease] {
                self.contradiction(key, Key::NoHub);
            }
            return None;
        }
        match (&context, self.file()) {
            (Some(_), Some(file)) => Some(Access::Kubeconfig { file, context }),
            (Some(name), None) => Some(Access::Kubeconfig { file: (self.machine.kubeconfig)(Some(name)), context }),
            (None, Some(file)) => Some(Access::Kubeconfig { file, context: None }),
            (None, None) => self.machine.in_pod.then_some(Access::InCluster),
        }
    }

    /// Refuses `key` where `none`, which is on, says in the same layer or a later one that there is no such thing.
    pub(super) fn contradiction(&mut self, key: Key, none: Key) {
        let layer = self.raw.get(none).map_or(0, |given| given.place.layer());
        let Some(given) = self.raw.get(key) else { return };
        let value = given.to_string();
        // What only repeats the default asks for nothing: it stands in the example file.
        if given.place.layer() >= layer && value != key.spec().default {
            let why = format!("{} says that there is none", none.spec().flag());
            self.refuse(key, &value, (why, "keep one of them".to_owned()));
        }
    }

    /// Our namespace in the hub.
    pub(super) fn namespace(&mut self) -> String {
        let own = self.machine.namespace.clone();
        self.maybe(Key::Namespace, |text| parse::namespace(text).map(Some))
            .or(own)
            .unwrap_or_else(|| manifests::NAMESPACE.to_owned())
    }

    /// The kubeconfig that was given.
    fn file(&self) -> Option<PathBuf> {
        self.raw.get(Key::Kubeconfig).map(|given| resolve(&given.place, &given.to_string()))
    }

    /// Where members are looked for.
    pub(super) fn members(&mut self, hub: bool, namespace: &str) -> MemberSettings {
        let rules = IdRules {
            two_labels: self.switch(Key::AllowTwoLabelClusterId),
            clusterset: self.maybe(Key::Clusterset, |text| parse::filled(text).map(Some)),
        };
        let contexts = self.contexts(&rules);
        let folder = self.raw.get(Key::MemberFolder).map(|given| resolve(&given.place, &given.to_string()));
        let no_hub = self.switch(Key::NoHub);
        let mut inventories = self.many(Key::Inventory, |text| inventory(text, namespace).map(|one| vec![one]));
        if no_hub {
            // What contradicts that has been refused; an earlier layer's is overruled.
            inventories.clear();
        } else if !hub && let Some(given) = self.raw.get(Key::Inventory) {
            let value = given.to_string();
            let remedy = "give --hub CONTEXT or --kubeconfig FILE, or run in a pod of the hub";
            self.refuse(Key::Inventory, &value, ("it is in a hub, and there is none".to_owned(), remedy.to_owned()));
        }
        if hub && contexts.is_empty() && folder.is_none() && self.raw.get(Key::Inventory).is_none() {
            inventories.push((Inventory::Secrets(Convention::Labelled), Some(namespace.to_owned())));
        }
        MemberSettings { contexts, folder, inventories, inventory_names: self.switch(Key::InventoryNames), rules }
    }

    fn contexts(&mut self, rules: &IdRules) -> Vec<ContextMember> {
        let file = self.file();
        let kubectl = self.machine.kubeconfig;
        let contexts = self.many(Key::Member, |text| {
            let (context, id) = match text.rsplit_once('=') {
                Some((context, id)) => (context, Some(id)),
                None => (text, None),
            };
            if context.is_empty() {
                return Err(("no context".to_owned(), "write CONTEXT or CONTEXT=ID".to_owned()));
            }
            if let Some(id) = id {
                is_id(id, rules)?;
            }
            let file = file.clone().unwrap_or_else(|| kubectl(Some(context)));
            Ok(vec![ContextMember { file, context: context.to_owned(), id: id.map(str::to_owned) }])
        });
        for (i, member) in contexts.iter().enumerate() {
            let twin = contexts.iter().take(i).find(|other| other.id.is_some() && other.id == member.id);
            if let Some(twin) = twin {
                let why = format!("the context {} has this id too", twin.context);
                let value = format!("{}={}", member.context, member.id.as_deref().unwrap_or_default());
                self.refuse(Key::Member, &value, (why, "give each cluster an id of its own".to_owned()));
            }
            if contexts.iter().take(i).any(|other| other.context == member.context && other.id != member.id) {
                let why = "this context is given with another id too".to_owned();
                self.refuse(Key::Member, &member.context, (why, "keep one of them".to_owned()));
            }
        }
        contexts
    }
}

/// A cluster's id.
pub(super) fn is_id(text: &str, rules: &IdRules) -> Result<crate::model::ClusterId, Refusal> {
    members::parse(text, "this flag", rules).map_err(|bad| match bad {
        members::BadId::Malformed { text, rule, .. } => {
            (format!("{text:?} can't be a cluster id, {rule}"), "give another one".to_owned())
        }
        other => (other.to_string(), "give another one".to_owned()),
    })
}

/// `KIND` or `KIND:NAMESPACE`.
fn inventory(text: &str, own: &str) -> Result<(Inventory, Option<String>), Refusal> {
    let (kind, namespace) = match text.split_once(':') {
        Some((kind, namespace)) => (kind, Some(namespace)),
        None => (text, None),
    };
    let convention = Convention::ALL.into_iter().find(|convention| convention.as_str() == kind);
    let inventory = match (kind, convention) {
        ("cluster-profile", _) => Inventory::Profiles,
        (_, Some(convention)) => Inventory::Secrets(convention),
        (_, None) => {
            let kinds: Vec<_> = Convention::ALL.into_iter().map(Convention::as_str).collect();
            return Err(("no such kind".to_owned(), format!("give {} or cluster-profile", kinds.join(", "))));
        }
    };
    let namespace = match namespace {
        // Anyone who may write a Secret somewhere else is no authority on members.
        None if inventory == Inventory::Secrets(Convention::Labelled) => Some(own.to_owned()),
        None | Some("*") => None,
        Some(name) => Some(parse::namespace(name)?),
    };
    Ok((inventory, namespace))
}
