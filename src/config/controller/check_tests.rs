//! From what was typed to what it means.

use std::path::{Path, PathBuf};

use super::*;
use crate::config::keys::{Keyed, Section, Shape, Spec};
use crate::config::raw::{Given, Place, split};
use crate::config::{Log, example};
use crate::controller::members::{ContextMember, Convention, Inventory};
use crate::model::ClusterId;
use crate::reconcile;
use crate::reconcile::settings::{
    CreateNamespaces, DerivedSelector, FamilyRule, LabelRule, NamespaceConsent, SliceOwner, Unreachable,
};
use crate::source::kube::Access;
use crate::telemetry::LogFormat;

const TABLE: &[Spec<Key>] = Key::TABLE;

fn machine(in_pod: bool) -> Machine {
    Machine {
        in_pod,
        namespace: in_pod.then(|| "pods-own".to_owned()),
        identity: "me".to_owned(),
        ipv6: true,
        kubeconfig: |context| PathBuf::from(format!("kubectl-{}", context.unwrap_or("none"))),
    }
}

fn raw(flags: &[(&str, &str)]) -> Raw<Key> {
    let mut raw = Raw::default();
    for (name, value) in flags {
        let spec = Key::named(name).unwrap_or_else(|| panic!("{name}"));
        let values = if spec.shape == Shape::Many { split(value) } else { vec![(*value).to_owned()] };
        raw.set(spec.key, Given { values, place: Place::Flag });
    }
    raw
}

fn on(in_pod: bool, flags: &[(&str, &str)]) -> Result<Settings, String> {
    Settings::check(&raw(flags), &machine(in_pod)).map_err(|error| error.to_string())
}

/// In a pod.
fn pod(flags: &[(&str, &str)]) -> Settings {
    on(true, flags).unwrap()
}

fn outside(flags: &[(&str, &str)]) -> Settings {
    on(false, flags).unwrap()
}

fn complaint(in_pod: bool, flags: &[(&str, &str)]) -> String {
    on(in_pod, flags).unwrap_err()
}

fn policy(flags: &[(&str, &str)]) -> reconcile::Settings {
    Preview::check(&raw(flags), &machine(false)).unwrap().policy
}

fn context(file: &str, context: Option<&str>) -> Option<Access> {
    Some(Access::Kubeconfig { file: file.into(), context: context.map(str::to_owned) })
}

#[test]
fn every_key_has_one_spec_and_the_example_says_the_defaults() {
    for (i, spec) in TABLE.iter().enumerate() {
        assert_eq!(spec.key as usize, i, "{} is not where Key has it", spec.name);
        assert!(Key::SECTIONS.contains(&spec.section), "{}", spec.name);
        assert!(example::<Key>().contains(&format!("{}: ", spec.name)), "{} is not in the example", spec.name);
    }
    let mut raw = Raw::default();
    for (key, given) in crate::config::file::parse::<Key>(Path::new("example"), &example::<Key>()).unwrap() {
        raw.set(key, given);
    }
    let written = TABLE.iter().filter(|spec| raw.get(spec.key).is_some()).count();
    assert_eq!(written, TABLE.iter().filter(|spec| !spec.default.is_empty()).count());
    let read = Settings::check(&raw, &machine(true)).unwrap();
    assert_eq!(read.controller.policy, reconcile::Settings::default());
    assert_eq!(read.controller.lease, pod(&[]).controller.lease);
    assert_eq!(read.controller.members, pod(&[]).controller.members);
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    let Settings { controller, admin, log, warnings } = pod(&[]);
    assert_eq!(controller.policy, reconcile::Settings::default());
    assert_eq!(controller.writes, WriteLimits::default());
    assert_eq!(controller.hub, Some(Access::InCluster));
    let labelled = Inventory::Secrets(Convention::Labelled);
    assert_eq!(controller.members.inventories, [(labelled, Some("pods-own".to_owned()))]);
    let lease = LeaseSettings {
        namespace: "pods-own".to_owned(),
        name: "namesake-controller".to_owned(),
        identity: "me".to_owned(),
        duration: Duration::from_secs(15),
    };
    assert_eq!(controller.lease, Some(lease));
    assert_eq!(controller.source_leases, None);
    assert_eq!(log, Log { format: LogFormat::Text, filter: "info".to_owned(), queries: false });
    assert_eq!(warnings, Vec::<String>::new());
    let everywhere = "[::]:8081".parse().ok();
    assert_eq!([admin.health, admin.ready, admin.metrics], [everywhere; 3]);
    assert_eq!(outside(&[("hub", "h")]).admin.ready, "127.0.0.1:8081".parse().ok());
    let moved = pod(&[("metrics", "127.0.0.1:9153")]).admin;
    assert_eq!((moved.ready, moved.metrics), (everywhere, "127.0.0.1:9153".parse().ok()));
    assert_eq!(pod(&[("admin", "none")]).admin.ready, None);
}

#[test]
fn mcs_r84_leases_of_sources_last_as_long_as_a_silent_cluster_keeps_its_endpoints() {
    let of = |typed: &[(&str, &str)]| pod(typed).controller.source_leases;
    let lasting =
        |seconds| Some(SourceLeases { namespace: "pods-own".to_owned(), duration: Duration::from_secs(seconds) });
    assert_eq!(of(&[("source_leases", "true")]), lasting(300));
    assert_eq!(of(&[("source_leases", "true"), ("unreachable_ttl", "10m")]), lasting(600));
    assert_eq!(of(&[("source_leases", "true"), ("shard", "0/2")]), lasting(300));
    assert_eq!(of(&[("source_leases", "true"), ("shard", "1/2")]), None, "one of several is enough");
}

#[test]
fn the_hub_is_the_context_the_kubeconfigs_current_one_or_the_pods_cluster() {
    assert_eq!(outside(&[("hub", "h")]).controller.hub, context("kubectl-h", Some("h")));
    assert_eq!(outside(&[("kubeconfig", "k"), ("hub", "h")]).controller.hub, context("k", Some("h")));
    assert_eq!(pod(&[("kubeconfig", "k")]).controller.hub, context("k", None));
    assert_eq!(pod(&[("hub", "h")]).controller.hub, context("kubectl-h", Some("h")));
    assert_eq!(
        complaint(false, &[]),
        "no members: nothing says where member clusters are; give --hub CONTEXT, --member CONTEXT or --member-folder DIR, or run in a pod of the hub"
    );
}

#[test]
fn without_a_hub_there_is_no_lease_and_with_one_each_share_has_its_own() {
    let alone = outside(&[("member", "a")]);
    assert_eq!((alone.controller.hub, alone.controller.lease), (None, None));
    assert!(alone.warnings.len() == 1 && alone.warnings[0].contains("no lease"), "{:?}", alone.warnings);
    let meant = pod(&[("no_hub", "true"), ("member", "a")]);
    assert_eq!((meant.controller.hub, meant.controller.lease), (None, None));
    assert_eq!(meant.warnings, Vec::<String>::new());
    assert_eq!(
        complaint(false, &[("no_hub", "true"), ("hub", "h"), ("inventory", "istio"), ("lease", "l")]),
        "--hub h: --no-hub says that there is none; keep one of them\n\
         --inventory istio: --no-hub says that there is none; keep one of them\n\
         --lease l: --no-hub says that there is none; keep one of them"
    );
    assert_eq!(
        complaint(false, &[("inventory", "istio")]),
        "--inventory istio: it is in a hub, and there is none; give --hub CONTEXT or --kubeconfig FILE, or run in a pod of the hub"
    );
    let lease = |flags: &[(&str, &str)]| pod(flags).controller.lease.unwrap().name;
    assert_eq!(lease(&[("shard", "2/5")]), "namesake-controller-2-of-5");
    assert_eq!(lease(&[("write_only_to", "east"), ("lease", "x")]), "x-east");
    assert_eq!(pod(&[("no_lease", "true")]).controller.lease, None);
    assert_eq!(
        complaint(true, &[("no_lease", "true"), ("lease", "l")]),
        "--lease l: --no-lease says that there is none; keep one of them"
    );

    // A later layer takes back what an earlier one said.
    let mut layers = raw(&[("no_hub", "true"), ("member", "a")]);
    let file = |value: &str| Given { values: vec![value.to_owned()], place: Place::File(Path::new("f").into(), 1) };
    layers.set(Key::Hub, file("h"));
    layers.set(Key::Inventory, file("istio"));
    let settings = Settings::check(&layers, &machine(false)).unwrap();
    assert!(settings.controller.hub.is_none() && settings.controller.members.inventories.is_empty());
}

#[test]
fn mcs_r90_members_are_contexts_a_folder_and_inventories() {
    let members =
        outside(&[("kubeconfig", "k"), ("member", "east,arn:aws:eks:eu:1:cluster/w=west")]).controller.members;
    let member = |file: &str, context: &str, id: Option<&str>| ContextMember {
        file: file.into(),
        context: context.to_owned(),
        id: id.map(str::to_owned),
    };
    let contexts = [member("k", "east", None), member("k", "arn:aws:eks:eu:1:cluster/w", Some("west"))];
    assert_eq!(members.contexts, contexts);
    assert_eq!(members.inventories, []);
    assert_eq!(outside(&[("member", "a=b=c")]).controller.members.contexts, [member("kubectl-a=b", "a=b", Some("c"))]);
    assert_eq!(outside(&[("member_folder", "d")]).controller.members.folder, Some("d".into()));

    let kinds =
        "labelled,labelled:x,labelled:*,cluster-api,cluster-api:fleet,sveltos,istio:istio-system,cluster-profile";
    let found = pod(&[("namespace", "ours"), ("inventory", kinds)]).controller.members.inventories;
    let found: Vec<_> = found.iter().map(|(kind, namespace)| (kind.clone(), namespace.as_deref())).collect();
    let secrets = Inventory::Secrets;
    assert_eq!(
        found,
        [
            (secrets(Convention::Labelled), Some("ours")),
            (secrets(Convention::Labelled), Some("x")),
            (secrets(Convention::Labelled), None),
            (secrets(Convention::ClusterApi), None),
            (secrets(Convention::ClusterApi), Some("fleet")),
            (secrets(Convention::Sveltos), None),
            (secrets(Convention::Istio), Some("istio-system")),
            (Inventory::Profiles, None),
        ]
    );
    let rules = pod(&[("clusterset", "set"), ("allow_two_label_cluster_id", "true")]).controller.members.rules;
    assert!(rules.two_labels && rules.clusterset.as_deref() == Some("set"));
}

#[test]
fn each_wrong_value_names_its_place_its_reason_and_a_remedy() {
    const LABEL: &str = "which is a DNS label of 1 to 63 lower-case letters, digits and dashes; give another one";
    for (name, value, said) in [
        ("hub", "", "--hub \"\": empty; give a name, or leave it out"),
        ("member", "=x", "--member =x: no context; write CONTEXT or CONTEXT=ID"),
        ("member", "a=B", &format!("--member a=B: \"B\" can't be a cluster id, {LABEL}")),
        ("member", "a=x,b=x", "--member b=x: the context a has this id too; give each cluster an id of its own"),
        ("member", "a=x,a=y", "--member a: this context is given with another id too; keep one of them"),
        ("member", "a,a", "--member a: given twice; keep one of them"),
        (
            "inventory",
            "capi",
            "--inventory capi: no such kind; give labelled, cluster-api, sveltos, istio or cluster-profile",
        ),
        (
            "inventory",
            "istio:X",
            "--inventory istio:X: no name of a namespace; give 1 to 63 of a-z, 0-9 and -, as `kubectl get namespaces` shows it",
        ),
        ("shard", "1", "--shard 1: no part of a number; write I/N with I from 0 to N-1, such as 0/3"),
        ("shard", "3/3", "--shard 3/3: there is no such part; write I/N with I from 0 to N-1, such as 0/3"),
        ("shard", "0/0", "--shard 0/0: there is no part of nothing; write I/N with I from 0 to N-1, such as 0/3"),
        ("write_only_to", "a.b.c", &format!("--write-only-to a.b.c: \"a.b.c\" can't be a cluster id, {LABEL}")),
        ("lease", "L", "--lease L: no name of a Lease; give a-z, 0-9, - and dots, such as namesake-controller"),
        ("lease_duration", "900ms", "--lease-duration 900ms: too short for a hub that hesitates; give 1s or more"),
        ("writes_per_second", "0", "--writes-per-second 0: less than 1; give 1 to 100000 requests"),
        ("families", "both", "--families both: no such choice; give intersection or union"),
        ("derived_selector", "yes", "--derived-selector yes: no such choice; give none or local-export or always"),
        ("zone_hints", "on", "--zone-hints on: neither true nor false; give one of them"),
        ("endpoints_per_slice", "1001", "--endpoints-per-slice 1001: more than 1000; give 1 to 1000 endpoints"),
        ("drain", "5", "--drain 5: has no unit; write it as 5s, 100ms or 1m30s, so 5s for seconds"),
        (
            "export_deny",
            "a*b",
            "--export-deny a*b: no name of a namespace, and no pattern of one; give a name of a-z, 0-9 and -, or how names begin and *, such as team-*",
        ),
        (
            "auto_export",
            "a b",
            "--auto-export a b: \"a b\" is no label's key; write LABEL or LABEL=VALUE, such as example.com/export=true",
        ),
        (
            "auto_export",
            "a=b c",
            "--auto-export a=b c: \"b c\" is no label's value; write LABEL or LABEL=VALUE, such as example.com/export=true",
        ),
        (
            "admin",
            "8081",
            "--admin 8081: no address with a port; write ADDR:PORT, such as 127.0.0.1:8081, [::1]:8081 or :8081",
        ),
    ] {
        assert_eq!(complaint(true, &[(name, value)]), said);
    }
    let all = complaint(false, &[("shard", "x"), ("families", "x"), ("member", "a=A"), ("log_level", "loud")]);
    assert_eq!(all.lines().count(), 4, "{all}");
}

#[test]
fn every_policy_can_be_set() {
    assert_eq!(policy(&[]), reconcile::Settings::default());
    let flags = [
        ("port_rename", "false"),
        ("families", "union"),
        ("auto_export", "example.com/export=yes"),
        ("legacy_conditions", "true"),
        ("failure_grace", "2m"),
        ("export_namespaces", "shop,team-*"),
        ("export_deny", "team-x"),
        ("import_namespaces", "*"),
        ("import_deny", "kube-system"),
        ("namespace_consent", "opt-in"),
        ("create_namespaces", "create-and-remove"),
        ("derived_selector", "local-export"),
        ("headless_derived_service", "false"),
        ("derived_labels", "true"),
        ("derived_annotations", "true"),
        ("adopt_imports", "true"),
        ("slice_owner", "both"),
        ("endpoints_per_slice", "7"),
        ("remote_node_names", "keep"),
        ("zone_hints", "false"),
        ("cluster_api_label", "true"),
        ("unreachable", "keep"),
        ("unreachable_ttl", "1h"),
        ("unreachable_grace", "1m"),
        ("keep_last_endpoints", "false"),
        ("drain", "10s"),
    ];
    let of_policy = |section: Section| super::super::POLICIES.contains(&section);
    let all: Vec<_> = TABLE.iter().filter(|spec| of_policy(spec.section)).map(|spec| spec.name).collect();
    assert_eq!(all, flags.map(|(name, _)| name), "a policy is not in this test");
    let seconds = Duration::from_secs;
    let patterns = |texts: &[&str]| texts.iter().map(|text| Box::from(*text)).collect::<Vec<Box<str>>>();
    let rule = |allow, deny| reconcile::settings::NamespaceRule { allow: patterns(allow), deny: patterns(deny) };
    let wanted = reconcile::Settings {
        derived_selector: DerivedSelector::LocalExport,
        slice_owner: SliceOwner::Both,
        headless_derived_service: false,
        cluster_api_label: true,
        remote_node_names: true,
        zone_hints: false,
        legacy_conditions: true,
        rename_ports: false,
        families: FamilyRule::Union,
        export_namespaces: rule(&["shop", "team-*"], &["team-x"]),
        import_namespaces: rule(&["*"], &["kube-system"]),
        namespace_consent: NamespaceConsent::OptIn,
        create_namespaces: CreateNamespaces::CreateAndRemove,
        adopt_imports: true,
        derived_labels: true,
        derived_annotations: true,
        drain: seconds(10),
        endpoints_per_slice: 7,
        unreachable: Unreachable { remove: false, ttl: seconds(3600), grace: seconds(60), keep_last_endpoints: false },
        auto_export: Some(LabelRule { key: "example.com/export".into(), value: Some("yes".into()) }),
        failure_grace: seconds(120),
        write_only_to: None,
        shard: Shard::default(),
    };
    assert_eq!(policy(&flags), wanted);
    // Each of them alone differs from the default: none is dead.
    for flag in flags {
        assert_ne!(policy(&[flag]), reconcile::Settings::default(), "{flag:?}");
    }
    let shared = pod(&[("shard", "2/5"), ("write_only_to", "east")]).controller.policy;
    assert_eq!((shared.shard, shared.write_only_to), (Shard { index: 2, count: 5 }, ClusterId::new("east")));
}

#[test]
fn mcs_r13_an_empty_deny_takes_the_default_back() {
    assert_eq!(policy(&[("import_deny", "")]).import_namespaces.deny, Vec::<Box<str>>::new());
    assert_eq!(policy(&[]).import_namespaces.deny.len(), 3);
    let mut typed = Raw::default();
    typed.set(Key::ImportDeny, Given { values: vec![String::new()], place: Place::Flag });
    assert!(Preview::check(&typed, &machine(false)).unwrap().policy.import_namespaces.deny.is_empty());
}

#[test]
fn what_is_allowed_but_hardly_meant_is_warned_about() {
    let said = |flags: &[(&str, &str)]| pod(flags).warnings.join("\n");
    assert!(said(&[("derived_selector", "always")]).contains("KEP-1645 forbids"));
    assert!(said(&[("drain", "16s")]).starts_with("drain 16s: "));
    assert_eq!(said(&[("drain", "15s")]), "");
    assert!(said(&[("unreachable_ttl", "10s")]).contains("shorter than unreachable_grace"));
}

#[test]
fn a_preview_looks_at_clusters_where_any_is_named() {
    let preview = |flags: &[(&str, &str)]| Preview::check(&raw(flags), &machine(true)).unwrap();
    assert!(preview(&[("families", "union")]).clusters.is_none(), "not even in a pod");
    let named = preview(&[("kubeconfig", "k"), ("member", "a=b")]).clusters.unwrap();
    assert_eq!((named.hub, named.members.contexts.len()), (None, 1), "no inventory, so no hub");
    let of_hub = preview(&[("hub", "h")]).clusters.unwrap();
    assert_eq!((of_hub.hub, of_hub.members.inventories.len()), (context("kubectl-h", Some("h")), 1));
    let refused = Preview::check(&raw(&[("member", "a=B"), ("families", "x")]), &machine(true)).unwrap_err();
    assert_eq!(refused.problems.len(), 2);
}

#[test]
fn the_variables_are_the_commands_own() {
    let mut raw = Raw::<Key>::default();
    raw.read_variables(|name| match name {
        "NAMESAKE_CONTROLLER_MEMBER" => Some("a, b=c".to_owned()),
        "NAMESAKE_LOG_FORMAT" => Some("json".to_owned()),
        "NAMESAKE_CONTROLLER_LOG_LEVEL" => Some("debug".to_owned()),
        _ => None,
    });
    let settings = Settings::check(&raw, &machine(false)).unwrap();
    assert_eq!(settings.controller.members.contexts.len(), 2);
    assert_eq!((settings.log.format, settings.log.filter.as_str()), (LogFormat::Text, "debug"));
    let names = ["NAMESAKE_CONTROLLER_MEMBRE", "NAMESAKE_CONTROLLER_MEMBER", "NAMESAKE_CONTROLLER_CONFIG"];
    assert_eq!(
        crate::config::unknown_variables(names.map(str::to_owned)),
        ["NAMESAKE_CONTROLLER_MEMBRE: no such variable; did you mean NAMESAKE_CONTROLLER_MEMBER?"]
    );
}
