//! A Secret in the hub → candidates, by one of the conventions that are in use.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;

use super::Origin;
use super::identity::Claim;
use super::kubeconfig;
use super::refusal::{BadKubeconfig, Refusal};
use crate::api;
use crate::source::kube::Inline;

/// How Secrets that hold kubeconfigs are told from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Convention {
    /// Ours: the label `namesake/cluster`, as `namesake join` writes it.
    Labelled,
    /// Cluster API: named `<cluster>-kubeconfig`, with the label `cluster.x-k8s.io/cluster-name`.
    ClusterApi,
    /// Sveltos: named `<cluster>-sveltos-kubeconfig`.
    Sveltos,
    /// Istio's remote Secrets: the label `istio/multiCluster=true`, and a kubeconfig under each key, which is a
    /// cluster's id.
    Istio,
}

/// The label of the Secrets of Cluster API, and the cluster's name in it.
const LABEL_CAPI: &str = "cluster.x-k8s.io/cluster-name";

impl Convention {
    /// All.
    pub const ALL: [Self; 4] = [Self::Labelled, Self::ClusterApi, Self::Sveltos, Self::Istio];

    /// As settings write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Labelled => "labelled",
            Self::ClusterApi => "cluster-api",
            Self::Sveltos => "sveltos",
            Self::Istio => "istio",
        }
    }

    /// The label selector that finds its Secrets; none where only the name tells.
    #[must_use]
    pub fn selector(self) -> Option<&'static str> {
        match self {
            Self::Labelled => Some(api::LABEL_CLUSTER),
            Self::ClusterApi => Some(LABEL_CAPI),
            Self::Sveltos => None,
            Self::Istio => Some("istio/multiCluster=true"),
        }
    }

    /// The name of the cluster whose kubeconfig the Secret of this name is, where it is one.
    fn cluster_of(self, secret: &SecretObject) -> Option<&str> {
        match self {
            Self::Labelled | Self::Istio => Some(""),
            Self::ClusterApi => {
                secret.metadata.name.strip_suffix("-sveltos-kubeconfig").map_or(Some(()), |_| None)?;
                let named = secret.metadata.name.strip_suffix("-kubeconfig")?;
                Some(secret.metadata.label(LABEL_CAPI).unwrap_or(named))
            }
            Self::Sveltos => secret.metadata.name.strip_suffix("-sveltos-kubeconfig"),
        }
    }

    /// The keys under which the kubeconfig is looked for. The first is the one to recommend.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Labelled => &["kubeconfig", "value"],
            Self::ClusterApi => &["value"],
            // Sveltos' own agent renews the second one.
            Self::Sveltos => &["kubeconfig", "re-kubeconfig"],
            Self::Istio => &[],
        }
    }
}

impl fmt::Display for Convention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A Secret, as far as it is read.
#[derive(Deserialize)]
pub(super) struct SecretObject {
    #[serde(default)]
    pub(super) metadata: Metadata,
    #[serde(default)]
    data: Option<BTreeMap<String, ByteString>>,
}

/// Metadata of objects in the hub.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) namespace: String,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    creation_timestamp: Option<String>,
}

impl Metadata {
    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.labels.as_ref()?.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Seconds since 1970. An object without one is not from an API server, and no older than any.
    pub(super) fn created(&self) -> i64 {
        let time = self.creation_timestamp.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
        time.map_or(i64::MAX, Timestamp::as_second)
    }
}

/// A cluster that may be a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Where it is registered.
    pub origin: Origin,
    /// When it was registered, in seconds since 1970.
    pub created: i64,
    /// What is said about its id.
    pub claim: Claim,
    /// How to reach it.
    pub access: Result<crate::source::kube::Access, Refusal>,
}

const LABEL_REMEDY: &str = "label its Secret namesake/cluster=<id>";

impl SecretObject {
    /// The candidates of this Secret. `names` says whether the name of a cluster in its inventory may be its id.
    pub(super) fn candidates(&self, convention: Convention, names: bool) -> Vec<Candidate> {
        let Some(cluster) = convention.cluster_of(self) else { return Vec::new() };
        let label = self.metadata.label(api::LABEL_CLUSTER).map(str::to_owned);
        if convention == Convention::Istio {
            let keys = self.data.iter().flatten().map(|(key, _)| key);
            return keys
                .map(|key| {
                    let claim = Claim { setting: label.clone(), fallback: Some(key.clone()), remedy: LABEL_REMEDY };
                    self.candidate(convention, Some(key.clone()), claim, self.kubeconfig(key))
                })
                .collect();
        }
        let fallback = (names && !cluster.is_empty()).then(|| cluster.to_owned());
        let claim = Claim { setting: label, fallback, remedy: LABEL_REMEDY };
        let inline = self.first_kubeconfig(convention.keys());
        vec![self.candidate(convention, None, claim, inline)]
    }

    /// The kubeconfig under the first of these keys that is there, or under the only one that is.
    pub(super) fn first_kubeconfig(&self, wanted: &[&'static str]) -> Result<Inline, BadKubeconfig> {
        let keys: Vec<&str> = self.data.iter().flatten().map(|(key, _)| key.as_str()).collect();
        let only = if let [only] = keys.as_slice() { Some(*only) } else { None };
        match wanted.iter().copied().find(|key| keys.contains(key)).or(only) {
            Some(key) => self.kubeconfig(key),
            None => {
                let found =
                    if keys.is_empty() { "no data".to_owned() } else { format!("the keys {}", keys.join(", ")) };
                Err(BadKubeconfig::NoKey { wanted: wanted.first().copied().unwrap_or("kubeconfig"), found })
            }
        }
    }

    fn kubeconfig(&self, key: &str) -> Result<Inline, BadKubeconfig> {
        let bytes =
            self.data.as_ref().and_then(|data| data.get(key)).map(|bytes| bytes.0.as_slice()).unwrap_or_default();
        let place = format!("Secret {}/{}, key {key:?}", self.metadata.namespace, self.metadata.name);
        match std::str::from_utf8(bytes) {
            Ok(text) => kubeconfig::inline(text, key, &place),
            Err(_) => Err(BadKubeconfig::Unreadable { key: key.to_owned(), message: "it is no UTF-8 text".to_owned() }),
        }
    }

    fn candidate(
        &self,
        convention: Convention,
        key: Option<String>,
        claim: Claim,
        inline: Result<Inline, BadKubeconfig>,
    ) -> Candidate {
        let Metadata { namespace, name, .. } = &self.metadata;
        Candidate {
            origin: Origin::Secret { convention, namespace: namespace.clone(), name: name.clone(), key },
            created: self.metadata.created(),
            claim,
            access: inline.map(crate::source::kube::Access::Inline).map_err(Refusal::from),
        }
    }
}
