//! ClusterProfiles (KEP-4322) and the Secrets with their kubeconfigs → candidates.
//!
//! A profile's `accessProviders` name programs that get credentials, and none is run here. Where a Secret carries the
//! label `x-k8s.io/cluster-profile`, as the KEP's other model has it, its kubeconfig is taken.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Origin;
use super::identity::Claim;
use super::refusal::{BadKubeconfig, Refusal};
use super::secrets::{Candidate, Metadata, SecretObject};
use crate::api;
use crate::source::kube::{Access, Inline};

/// Label of a Secret: the profile whose kubeconfig it holds.
pub(super) const LABEL_PROFILE: &str = "x-k8s.io/cluster-profile";

/// Label of such a Secret: the namespace of the profile, where it is another one than its own.
const LABEL_PROFILE_NAMESPACE: &str = "x-k8s.io/cluster-profile-namespace";

/// The keys under which the kubeconfig is looked for.
const KEYS: [&str; 3] = ["Config", "config", "kubeconfig"];

/// Namespace and name.
pub(super) type Key = (String, String);

#[derive(Deserialize)]
struct ProfileObject {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    properties: Option<Vec<Property>>,
    #[serde(default)]
    access_providers: Option<Vec<Provider>>,
    /// What they were called at first.
    #[serde(default)]
    credential_providers: Option<Vec<Provider>>,
}

#[derive(Deserialize)]
struct Property {
    #[serde(default)]
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
struct Provider {
    #[serde(default)]
    name: String,
}

#[derive(Debug)]
struct Profile {
    created: i64,
    label: Option<String>,
    property: Option<String>,
    providers: Vec<String>,
}

#[derive(Debug)]
struct Kubeconfig {
    of: Key,
    inline: Result<Inline, BadKubeconfig>,
}

/// Profiles and Secrets, joined.
#[derive(Debug, Default)]
pub(super) struct Profiles {
    names: bool,
    profiles: BTreeMap<Key, Profile>,
    secrets: BTreeMap<Key, Kubeconfig>,
}

impl Profiles {
    /// `names` says whether a profile's name may be its cluster's id.
    pub(super) fn new(names: bool) -> Self {
        Self { names, ..Self::default() }
    }

    /// A profile in JSON; returns whose candidate changed.
    pub(super) fn set_profile(&mut self, json: &str) -> Option<Key> {
        let object: ProfileObject = serde_json::from_str(json).ok()?;
        let status = object.status.unwrap_or_default();
        let providers = status.access_providers.into_iter().chain(status.credential_providers).flatten();
        let mut properties = status.properties.into_iter().flatten();
        let profile = Profile {
            created: object.metadata.created(),
            label: object.metadata.label(api::LABEL_CLUSTER).map(str::to_owned),
            property: properties.find(|p| p.name == api::PROPERTY_CLUSTER).map(|p| p.value),
            providers: providers.map(|provider| provider.name).collect(),
        };
        let key = (object.metadata.namespace, object.metadata.name);
        self.profiles.insert(key.clone(), profile);
        Some(key)
    }

    /// A profile is gone.
    pub(super) fn remove_profile(&mut self, key: &Key) {
        self.profiles.remove(key);
    }

    /// A Secret; returns whose candidates changed.
    pub(super) fn set_secret(&mut self, secret: &SecretObject) -> Vec<Key> {
        let key = (secret.metadata.namespace.clone(), secret.metadata.name.clone());
        let Some(name) = secret.metadata.label(LABEL_PROFILE) else { return self.remove_secret(&key) };
        let namespace = secret.metadata.label(LABEL_PROFILE_NAMESPACE).unwrap_or(&secret.metadata.namespace);
        let of = (namespace.to_owned(), name.to_owned());
        let now = Kubeconfig { of: of.clone(), inline: secret.first_kubeconfig(&KEYS) };
        let before = self.secrets.insert(key, now).map(|before| before.of).filter(|before| *before != of);
        before.into_iter().chain([of]).collect()
    }

    /// A Secret is gone; returns whose candidates changed.
    pub(super) fn remove_secret(&mut self, key: &Key) -> Vec<Key> {
        self.secrets.remove(key).map(|secret| secret.of).into_iter().collect()
    }

    /// The candidate of a profile, where it is there.
    pub(super) fn candidate(&self, key: &Key) -> Option<Candidate> {
        let profile = self.profiles.get(key)?;
        let (namespace, name) = key.clone();
        let fallback = profile.property.clone().or_else(|| self.names.then(|| name.clone()));
        let mut found = self.secrets.iter().filter(|(_, secret)| secret.of == *key);
        let access = match (found.next(), found.next()) {
            (None, _) => Err(Refusal::NoInlineCredentials {
                providers: if profile.providers.is_empty() { "none".to_owned() } else { profile.providers.join(", ") },
                name: name.clone(),
            }),
            (Some((_, secret)), None) => secret.inline.clone().map(Access::Inline).map_err(Refusal::from),
            (Some(_), Some(_)) => {
                let all = self.secrets.iter().filter(|(_, secret)| secret.of == *key);
                let names: Vec<_> = all.map(|((namespace, name), _)| format!("{namespace}/{name}")).collect();
                Err(Refusal::Ambiguous { secrets: names.join(", ") })
            }
        };
        Some(Candidate {
            origin: Origin::Profile { namespace, name },
            created: profile.created,
            claim: Claim {
                setting: profile.label.clone(),
                fallback,
                remedy: "label its ClusterProfile namesake/cluster=<id>",
            },
            access,
        })
    }

    /// Every profile.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.profiles.keys().cloned().collect()
    }
}
