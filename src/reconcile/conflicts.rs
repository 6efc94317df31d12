//! What exporting clusters can disagree about.

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
