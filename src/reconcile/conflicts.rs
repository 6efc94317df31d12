//! What exporting clusters can disagree about.

use crate::model::ClusterId;

/// A property about which exports can disagree, in the order of the API's reasons (mcs-api `serviceexport.go`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Property {
    /// `PortConflict`
    Port,
    /// `TypeConflict`
    Type,
    /// `SessionAffinityConflict`
    SessionAffinity,
    /// `SessionAffinityConfigConflict`
    SessionAffinityConfig,
    /// `AnnotationsConflict`
    Annotations,
    /// `LabelsConflict`
    Labels,
    /// `InternalTrafficPolicyConflict`
    InternalTrafficPolicy,
    /// `TrafficDistributionConflict`
    TrafficDistribution,
    /// `IPFamilyConflict`
    IpFamily,
}

impl Property {
    /// All, in the order of the API's reasons.
    pub const ALL: [Self; 9] = [
        Self::Port,
        Self::Type,
        Self::SessionAffinity,
        Self::SessionAffinityConfig,
        Self::Annotations,
        Self::Labels,
        Self::InternalTrafficPolicy,
        Self::TrafficDistribution,
        Self::IpFamily,
    ];

    /// The reason of the condition `Conflict`.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Port => "PortConflict",
            Self::Type => "TypeConflict",
            Self::SessionAffinity => "SessionAffinityConflict",
            Self::SessionAffinityConfig => "SessionAffinityConfigConflict",
            Self::Annotations => "AnnotationsConflict",
            Self::Labels => "LabelsConflict",
            Self::InternalTrafficPolicy => "InternalTrafficPolicyConflict",
            Self::TrafficDistribution => "TrafficDistributionConflict",
            Self::IpFamily => "IPFamilyConflict",
        }
    }
}

/// One disagreement: its property, and the sentence that conditions carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// What about.
    pub property: Property,
    /// The value used, whose it is, and how many disagree.
    pub message: Box<str>,
}

/// The longest value that a message quotes.
const LONGEST_VALUE: usize = 160;

impl Property {
    /// For a message.
    fn noun(self) -> &'static str {
        match self {
            Self::Port => "ports",
            Self::Type => "type",
            Self::SessionAffinity => "session affinity",
            Self::SessionAffinityConfig => "session affinity config",
            Self::Annotations => "exported annotations",
            Self::Labels => "exported labels",
            Self::InternalTrafficPolicy => "internal traffic policy",
            Self::TrafficDistribution => "traffic distribution",
            Self::IpFamily => "IP families",
        }
    }
}

/// Whose value is used.
#[derive(Debug, Clone, Copy)]
pub(super) enum Used<'a> {
    /// The oldest export's.
    Oldest(&'a ClusterId),
    /// Made of all, the oldest export's first.
    Union(&'a ClusterId),
    /// What all have in common.
    Common,
}

/// The sentence about one property, in the KEP's form: the value used, whose it is, and how many disagree.
pub(super) fn conflict(property: Property, value: &str, used: Used<'_>, disagree: usize, of: usize) -> Conflict {
    let source = match used {
        Used::Oldest(cluster) => format!("from oldest service export in \"{cluster}\""),
        Used::Union(cluster) => format!("of all service exports, that in \"{cluster}\" being the oldest"),
        Used::Common => "which all exporting clusters have".to_owned(),
    };
    let separator = if matches!(used, Used::Common) { "," } else { "" };
    let noun = property.noun();
    let value = shortened(value);
    let message =
        format!("Conflicting {noun}. Using \"{value}\"{separator} {source}. {disagree}/{of} clusters disagree.");
    Conflict { property, message: message.into() }
}

/// A value that fits into a sentence.
pub(super) fn shortened(value: &str) -> String {
    if value.chars().count() <= LONGEST_VALUE {
        return value.to_owned();
    }
    let start: String = value.chars().take(LONGEST_VALUE).collect();
    format!("{start}…")
}

/// The reasons, joined as the condition wants them.
#[must_use]
pub fn reasons(conflicts: &[Conflict]) -> String {
    conflicts.iter().map(|conflict| conflict.property.reason()).collect::<Vec<_>>().join(",")
}

/// The sentences, in the order of the reasons.
#[must_use]
pub fn messages(conflicts: &[Conflict]) -> String {
    conflicts.iter().map(|conflict| &*conflict.message).collect::<Vec<_>>().join(" ")
}
