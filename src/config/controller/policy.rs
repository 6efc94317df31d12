//! The policies: every option of the merge, of what is written and of what is done about absent clusters.

use std::time::Duration;

use super::Key;
use crate::config::check::Checker;
use crate::config::parse::Refusal;
use crate::config::{Section, parse};
use crate::reconcile;
use crate::reconcile::settings::{
    CreateNamespaces, DerivedSelector, FamilyRule, LabelRule, NamespaceConsent, NamespaceRule, SliceOwner, Unreachable,
};

/// The headings under which the policies stand.
pub const POLICIES: &[Section] = &[Section::Merge, Section::Namespaces, Section::Written, Section::Absence];

/// Longer than this nothing is waited for.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// A drain longer than this keeps the conformance suite waiting.
const CONFORMANT_DRAIN: Duration = Duration::from_secs(15);

impl<M> Checker<'_, Key, M> {
    pub(super) fn policy(&mut self) -> reconcile::Settings {
        let rest = reconcile::Settings::default();
        reconcile::Settings {
            derived_selector: self.word(
                Key::DerivedSelector,
                &[
                    ("none", DerivedSelector::None),
                    ("local-export", DerivedSelector::LocalExport),
                    ("always", DerivedSelector::Always),
                ],
            ),
            slice_owner: self.word(
                Key::SliceOwner,
                &[("import", SliceOwner::Import), ("service", SliceOwner::Service), ("both", SliceOwner::Both)],
            ),
            headless_derived_service: self.switch(Key::HeadlessDerivedService),
            cluster_api_label: self.switch(Key::ClusterApiLabel),
            remote_node_names: self.word(Key::RemoteNodeNames, &[("strip", false), ("keep", true)]),
            zone_hints: self.switch(Key::ZoneHints),
            legacy_conditions: self.switch(Key::LegacyConditions),
            rename_ports: self.switch(Key::PortRename),
            families: self
                .word(Key::Families, &[("intersection", FamilyRule::Intersection), ("union", FamilyRule::Union)]),
            export_namespaces: self.rule(Key::ExportNamespaces, Key::ExportDeny),
            import_namespaces: self.rule(Key::ImportNamespaces, Key::ImportDeny),
            namespace_consent: self.word(
                Key::NamespaceConsent,
                &[
                    ("ignored", NamespaceConsent::Ignored),
                    ("opt-out", NamespaceConsent::OptOut),
                    ("opt-in", NamespaceConsent::OptIn),
                ],
            ),
            create_namespaces: self.word(
                Key::CreateNamespaces,
                &[
                    ("never", CreateNamespaces::Never),
                    ("create", CreateNamespaces::Create),
                    ("create-and-remove", CreateNamespaces::CreateAndRemove),
                ],
            ),
            adopt_imports: self.switch(Key::AdoptImports),
            derived_labels: self.switch(Key::DerivedLabels),
            derived_annotations: self.switch(Key::DerivedAnnotations),
            drain: self.duration(Key::Drain, Duration::from_secs(3600)),
            endpoints_per_slice: self.number(Key::EndpointsPerSlice, 1, 1000, "endpoints") as usize,
            unreachable: Unreachable {
                remove: self.word(Key::Unreachable, &[("remove", true), ("keep", false)]),
                ttl: self.duration(Key::UnreachableTtl, WEEK),
                grace: self.duration(Key::UnreachableGrace, WEEK),
                keep_last_endpoints: self.switch(Key::KeepLastEndpoints),
            },
            auto_export: self.maybe(Key::AutoExport, |text| label_rule(text).map(Some)),
            failure_grace: self.duration(Key::FailureGrace, WEEK),
            ..rest
        }
    }

    fn rule(&mut self, allow: Key, deny: Key) -> NamespaceRule {
        // An empty flag is how a default is taken back.
        let mut patterns = |key| {
            self.many(key, |text| match text {
                "" => Ok(Vec::new()),
                _ => pattern(text).map(|pattern| vec![pattern]),
            })
        };
        NamespaceRule { allow: patterns(allow), deny: patterns(deny) }
    }
}

/// A namespace, or how some begin and `*`.
fn pattern(text: &str) -> Result<Box<str>, Refusal> {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let fits = match text.strip_suffix('*') {
        Some(start) => start.len() < 63 && start.bytes().all(inner) && !start.starts_with('-'),
        None => parse::namespace(text).is_ok(),
    };
    if fits {
        Ok(text.into())
    } else {
        let remedy = "give a name of a-z, 0-9 and -, or how names begin and *, such as team-*";
        Err(("no name of a namespace, and no pattern of one".to_owned(), remedy.to_owned()))
    }
}

/// `LABEL` or `LABEL=VALUE`.
fn label_rule(text: &str) -> Result<LabelRule, Refusal> {
    let refuse = |why: String| Err((why, "write LABEL or LABEL=VALUE, such as example.com/export=true".to_owned()));
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (text, None),
    };
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    let domain = key.rsplit_once('/').map(|(domain, _)| domain);
    let subdomain =
        |domain: &str| domain.len() <= 253 && domain.split('.').all(|label| parse::namespace(label).is_ok());
    if !is_word(name) || !domain.is_none_or(subdomain) {
        return refuse(format!("{key:?} is no label's key"));
    }
    match value {
        Some(value) if !value.is_empty() && !is_word(value) => refuse(format!("{value:?} is no label's value")),
        value => Ok(LabelRule { key: key.into(), value: value.map(Into::into) }),
    }
}

/// A label's name or value, as Kubernetes wants it.
fn is_word(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let outer = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    text.len() <= 63 && text.bytes().all(inner) && outer(text.bytes().next()) && outer(text.bytes().last())
}

/// What is allowed but probably not meant.
pub(super) fn warnings(policy: &reconcile::Settings) -> Vec<String> {
    let mut warnings = Vec::new();
    if policy.derived_selector == DerivedSelector::Always {
        warnings.push(
            "derived_selector always: pods of clusters that do not export a service join it there; KEP-1645 forbids that"
                .to_owned(),
        );
    }
    if policy.drain > CONFORMANT_DRAIN {
        warnings.push(format!(
            "drain {}s: endpoints outlive their export by more than the {}s that the conformance suite allows",
            policy.drain.as_secs(),
            CONFORMANT_DRAIN.as_secs()
        ));
    }
    let Unreachable { remove, ttl, grace, .. } = policy.unreachable;
    if remove && ttl < grace {
        warnings.push(
            "unreachable_ttl is shorter than unreachable_grace: endpoints go before any condition says why".to_owned(),
        );
    }
    warnings
}
