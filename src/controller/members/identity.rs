//! Which cluster it is (controller.md R90 to R92).

use super::refusal::BadId;
use crate::model::ClusterId;

/// What the ClusterProperties of a cluster say, once it was heard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties {
    /// `cluster.clusterset.k8s.io`
    pub cluster: Option<String>,
    /// `clusterset.k8s.io`
    pub set: Option<String>,
}

/// What is asked of ids.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdRules {
    /// Take ids of two labels, `name.context`. Only our own DNS can serve them.
    pub two_labels: bool,
    /// The name of the clusterset: clusters that say they are in another one are refused.
    pub clusterset: Option<String>,
}

/// Who a candidate says it is, and who says so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claim {
    /// The id that it is registered with: explicit, so it must be right.
    pub setting: Option<String>,
    /// A name that an inventory gives it: used where nobody says better.
    pub fallback: Option<String>,
    /// How to register it with an id, for [`BadId::Unknown`].
    pub remedy: &'static str,
}

/// The id of a candidate, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// It has this id.
    Known(ClusterId),
    /// Only the cluster itself can say, and has not been heard yet.
    Pending,
    /// It is registered with an id, but must not be used under it.
    Doubtful(ClusterId, BadId),
    /// It has none.
    Refused(BadId),
}

/// Explicit configuration comes first, then the cluster's own property, then an inventory's name; the first two must
/// agree. `properties` is `None` until the cluster was heard.
#[must_use]
pub fn identify(claim: &Claim, properties: Option<&Properties>, rules: &IdRules) -> Identity {
    let setting = match claim.setting.as_deref().map(|text| parse(text, "its registration", rules)).transpose() {
        Ok(setting) => setting,
        Err(bad) => return Identity::Refused(bad),
    };
    let Some(properties) = properties else {
        return setting.map_or(Identity::Pending, Identity::Known);
    };
    let doubt = |bad: BadId| match &setting {
        Some(id) => Identity::Doubtful(id.clone(), bad),
        None => Identity::Refused(bad),
    };
    if let (Some(theirs), Some(ours)) = (&properties.set, &rules.clusterset)
        && theirs != ours
    {
        return doubt(BadId::OtherSet { theirs: theirs.clone(), ours: ours.clone() });
    }
    match (&setting, &properties.cluster) {
        (Some(id), Some(property)) if id.as_str() != property => {
            doubt(BadId::Disagreement { setting: id.to_string(), property: property.clone() })
        }
        (Some(id), _) => Identity::Known(id.clone()),
        (None, Some(property)) => known(parse(property, "the ClusterProperty cluster.clusterset.k8s.io", rules)),
        (None, None) => match &claim.fallback {
            Some(name) => known(parse(name, "the inventory's name", rules)),
            None => Identity::Refused(BadId::Unknown { remedy: claim.remedy }),
        },
    }
}

fn known(id: Result<ClusterId, BadId>) -> Identity {
    id.map_or_else(Identity::Refused, Identity::Known)
}

/// An id that can be a label's value, an entry of `status.clusters` and a DNS label.
///
/// # Errors
/// Where `text` can't be one; `from` says whose text it is.
pub fn parse(text: &str, from: &'static str, rules: &IdRules) -> Result<ClusterId, BadId> {
    let malformed = |rule| BadId::Malformed { from, text: text.to_owned(), rule };
    let labels: Vec<_> = text.split('.').collect();
    if labels.len() == 2 && !rules.two_labels && labels.iter().all(|label| is_label(label)) {
        return Err(malformed(
            "which is one DNS label by default: allow two with --allow-two-label-cluster-id where Namesake serves the DNS",
        ));
    }
    let whole = if rules.two_labels {
        "which is one or two DNS labels of lower-case letters, digits and dashes, 63 bytes in all"
    } else {
        "which is a DNS label of 1 to 63 lower-case letters, digits and dashes"
    };
    let fits = labels.len() <= if rules.two_labels { 2 } else { 1 } && text.len() <= 63;
    match ClusterId::new(text) {
        Some(id) if fits && labels.iter().all(|label| is_label(label)) => Ok(id),
        _ => Err(malformed(whole)),
    }
}

/// RFC 1123, in lower case as Kubernetes wants it.
fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    (1..=63).contains(&text.len())
        && text.bytes().all(|b| inner(b) || b == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().last().is_some_and(inner)
}
