//! What a failed write means for what comes next (R5, R34, R95).

use std::time::Duration;

use super::RefusedField;
use crate::reconcile::desired_value;
use crate::reconcile::observed::Refusable;
use crate::reconcile::plan::{Action, ServiceObject};
use crate::source::kube::{Refusal, WriteError};

/// Why a job was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::controller) enum Trouble {
    /// What is there is not what was known: it is looked at again, soon.
    Conflict(String),
    /// The namespace is gone, or going: nothing is tried until it changes.
    NamespaceGone(String),
    /// The API server does not take a value of a derived Service's field: it is left out (R34).
    Field(RefusedField, String),
    /// It was refused, and will be as long as nobody mends something.
    Refused(String),
    /// The API server is busy: the whole member has a pause.
    Busy(String, Option<Duration>),
    /// The API server failed at it. That may be about this object alone: a webhook that does not answer, a range of
    /// addresses that is full.
    Broken(String),
    /// A namespace that we made holds something of others': it stays.
    Kept(String),
    /// There was no answer: the whole member has a pause.
    Unreachable(String),
    /// What was to be deleted is gone already: no trouble.
    Gone,
    /// We may not write any more.
    NotLeading,
}

impl Trouble {
    /// What a failed request for `action` means. `what` names the object.
    pub(super) fn of(error: &WriteError, action: &Action, what: &str) -> Self {
        let said = format!("{what}: {error}");
        match error {
            WriteError::Unauthorized(_) | WriteError::Unreachable(_) => Self::Unreachable(said),
            WriteError::Refused(refusal) => match refusal.code {
                409 => Self::Conflict(said),
                403 if refusal.causes.iter().any(|(reason, _)| reason == "NamespaceTerminating") => {
                    Self::NamespaceGone(said)
                }
                404 if refusal.kind == "namespaces" => Self::NamespaceGone(said),
                // The object that a status was for is gone; without the kind, the CRD is.
                404 if !refusal.kind.is_empty() => Self::Conflict(said),
                500 if refusal.retry_after.is_none() => Self::Broken(said),
                408 | 429 | 500.. => Self::Busy(said, refusal.retry_after),
                422 => match action {
                    Action::ApplyService(object) => {
                        field(refusal, object).map_or(Self::Refused(said.clone()), |field| Self::Field(field, said))
                    }
                    _ => Self::Refused(said),
                },
                _ => Self::Refused(said),
            },
        }
    }

    /// Whether it is about one object, so that others can be tried all the same.
    pub(super) fn is_of_one(&self) -> bool {
        matches!(self, Self::Conflict(_) | Self::Field(..) | Self::Refused(_) | Self::Broken(_))
    }

    /// The value of the label `reason`.
    pub(super) fn label(&self) -> &'static str {
        match self {
            Self::Conflict(_) => "conflict",
            Self::NamespaceGone(_) => "namespace_gone",
            Self::Field(..) => "field_refused",
            Self::Refused(_) => "refused",
            Self::Busy(..) => "busy",
            Self::Broken(_) => "server_error",
            Self::Kept(_) => "namespace_kept",
            Self::Unreachable(_) => "unreachable",
            Self::Gone => "ok",
            Self::NotLeading => "not_leading",
        }
    }

    /// What happened, for people.
    pub(in crate::controller) fn message(&self) -> &str {
        match self {
            Self::Conflict(said)
            | Self::NamespaceGone(said)
            | Self::Field(_, said)
            | Self::Refused(said)
            | Self::Busy(said, _)
            | Self::Broken(said)
            | Self::Kept(said)
            | Self::Unreachable(said) => said,
            Self::Gone => "gone already",
            Self::NotLeading => "another controller writes now",
        }
    }
}

/// The field of a derived Service that was refused, if it is one that can be left out.
fn field(refusal: &Refusal, object: &ServiceObject) -> Option<RefusedField> {
    let fields = [
        ("spec.trafficDistribution", Refusable::TrafficDistribution),
        ("spec.internalTrafficPolicy", Refusable::InternalTrafficPolicy),
        ("spec.sessionAffinity", Refusable::SessionAffinity),
        ("spec.clusterIP", Refusable::ClusterIps),
    ];
    refusal.causes.iter().find_map(|(_, at)| {
        let (_, field) = fields.iter().find(|(path, _)| at.starts_with(path))?;
        Some((*field, desired_value(&object.spec, *field)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ServiceKey;

    fn refused(code: u16, kind: &str, cause: (&str, &str)) -> WriteError {
        let causes = vec![(cause.0.to_owned(), cause.1.to_owned())];
        WriteError::Refused(Box::new(Refusal { code, kind: kind.to_owned(), causes, ..Refusal::default() }))
    }

    fn label(error: &WriteError) -> &'static str {
        let Some(key) = ServiceKey::new("shop", "web") else { return "" };
        Trouble::of(error, &Action::CreateExport(key), "ServiceExport shop/web").label()
    }

    #[test]
    fn mcs_r5_a_terminating_namespace_is_no_reason_to_try_again() {
        assert_eq!(label(&refused(403, "services", ("NamespaceTerminating", "metadata.namespace"))), "namespace_gone");
        assert_eq!(label(&refused(404, "namespaces", ("", ""))), "namespace_gone");
        assert_eq!(label(&refused(403, "services", ("", ""))), "refused");
    }

    #[test]
    fn mcs_r95_each_kind_of_error_has_its_own_consequence() {
        for (code, kind, wanted) in [
            (409, "services", "conflict"),
            (404, "serviceexports", "conflict"),
            (404, "", "refused"),
            (408, "", "busy"),
            (429, "", "busy"),
            (500, "", "server_error"),
            (504, "", "busy"),
            (503, "", "busy"),
            (400, "", "refused"),
            (422, "serviceexports", "refused"),
        ] {
            assert_eq!(label(&refused(code, kind, ("", ""))), wanted, "{code} {kind}");
        }
        assert_eq!(label(&WriteError::Unreachable("gone".to_owned())), "unreachable");
        assert_eq!(label(&WriteError::Unauthorized("who?".to_owned())), "unreachable");
    }
}
