//! `namesake plan`, as a person and as a pipeline see it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]

mod clusters;

use clusters::{Folder, exported, must_be, pod};

#[test]
fn the_example_is_planned_in_words() {
    must_be("example.txt", &Folder::example().plan(&[]).ok());
}

const PORTS: &str = "ports: [{name: http, port: 80}]";

/// Two clusters that export `shop/web` and disagree.
fn disagreeing(east: (&str, &str), west: (&str, &str)) -> Folder {
    Folder::new(&[
        ("east/web.yaml", &exported("web", east.0, east.1)),
        ("west/web.yaml", &exported("web", west.0, west.1)),
    ])
}

#[test]
fn every_kind_of_conflict_is_named_by_its_reason() {
    let both = |a: &str| format!("{PORTS}\n{a}");
    let cases = [
        (PORTS.to_owned(), "", "ports: [{name: http, port: 81}]".to_owned(), "", "PortConflict"),
        (PORTS.to_owned(), "", both("clusterIP: None"), "", "TypeConflict"),
        (both("sessionAffinity: None"), "", both("sessionAffinity: ClientIP"), "", "SessionAffinityConflict"),
        (
            both("sessionAffinity: ClientIP"),
            "",
            both("sessionAffinity: ClientIP\nsessionAffinityConfig: {clientIP: {timeoutSeconds: 10}}"),
            "",
            "SessionAffinityConfigConflict",
        ),
        (PORTS.to_owned(), "exportedAnnotations: {a: b}", PORTS.to_owned(), "", "AnnotationsConflict"),
        (PORTS.to_owned(), "exportedLabels: {a: b}", PORTS.to_owned(), "exportedLabels: {a: c}", "LabelsConflict"),
        (PORTS.to_owned(), "", both("internalTrafficPolicy: Local"), "", "InternalTrafficPolicyConflict"),
        (both("trafficDistribution: PreferClose"), "", PORTS.to_owned(), "", "TrafficDistributionConflict"),
        (both("ipFamilyPolicy: PreferDualStack"), "", PORTS.to_owned(), "", "IPFamilyConflict"),
    ];
    let mut told = String::new();
    for (east, east_export, west, west_export, reason) in &cases {
        let folder = disagreeing((east, east_export), (west, west_export));
        let ran = folder.plan(&["--fail-on-conflict"]);
        assert_eq!((ran.code, &*ran.err), (2, ""), "{ran:?}");
        let wrong: Vec<_> = ran.out.lines().filter(|line| line.starts_with('!')).collect();
        assert!(wrong[0].starts_with(&format!("! shop/web: {reason}: ")), "{reason}: {wrong:?}");
        told.push_str(&format!("{}\n", wrong.join("\n")));
        assert_eq!(folder.plan(&[]).code, 0, "without the flag a conflict is no failure");
    }
    must_be("conflicts.txt", &told);
}

#[test]
fn without_conflicts_the_flag_changes_nothing() {
    let ran = disagreeing((PORTS, ""), (PORTS, "")).plan(&["--fail-on-conflict"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.ends_with("; no conflicts\n"), "{ran:?}");
}

#[test]
fn where_the_text_does_not_tell_the_conflicts_stderr_does() {
    let folder = disagreeing((PORTS, ""), ("ports: [{name: http, port: 81}]", ""));
    for args in [["-o", "yaml", "--fail-on-conflict"], ["--without", "east", "--fail-on-conflict"]] {
        let ran = folder.plan(&args);
        assert_eq!(ran.code, 2);
        assert_eq!(
            ran.err,
            "namesake: shop/web: PortConflict: Conflicting ports. Using \"http 80/TCP\" from oldest service export in \
             \"east\". 1/2 clusters disagree.\n"
        );
    }
}

#[test]
fn several_disagreements_are_told_in_the_order_of_the_reasons() {
    let folder = disagreeing(
        (PORTS, "exportedLabels: {a: b}"),
        ("ports: [{name: https, port: 443}]\nsessionAffinity: ClientIP\ninternalTrafficPolicy: Local", ""),
    );
    let out = folder.plan(&[]).ok();
    let reasons: Vec<_> = out.lines().filter_map(|line| line.strip_prefix("! shop/web: ")?.split(':').next()).collect();
    assert_eq!(
        reasons,
        [
            "PortConflict",
            "SessionAffinityConflict",
            "SessionAffinityConfigConflict",
            "LabelsConflict",
            "InternalTrafficPolicyConflict"
        ]
    );
    assert!(out.ends_with("; 5 conflicts\n"), "{out}");
}

#[test]
fn mcs_2_15_an_external_name_is_refused_and_makes_nothing() {
    let folder = Folder::new(&[(
        "cluster-a/external-db.yaml",
        "\
apiVersion: v1
kind: Service
metadata: {name: external-db}
spec: {type: ExternalName, externalName: db.example.com}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: external-db}
",
    )]);
    assert_eq!(
        folder.plan(&[]).ok(),
        "! default/external-db: the ServiceExport in cluster-a does not count: InvalidServiceType: ExternalName services \
         cannot be exported: Service default/external-db in cluster \"cluster-a\" is one.\n\
         no objects to write; no conflicts\n"
    );
    assert_eq!(folder.plan(&["-o", "yaml"]).ok(), "");
}

#[test]
fn without_a_cluster_the_names_that_lose_everything_come_first() {
    let folder = Folder::new(&[
        (
            "east/both.yaml",
            &(exported("both", PORTS, "") + &pod("both", "b1", "10.1.0.1") + &pod("both", "b2", "10.1.0.2")),
        ),
        ("west/both.yaml", &(exported("both", PORTS, "") + &pod("both", "b1", "10.2.0.1"))),
        ("east/alone.yaml", &(exported("zz-alone", PORTS, "") + &pod("zz-alone", "a1", "10.1.0.3"))),
        (
            "east/ports.yaml",
            &(exported("ports", "ports: [{name: http, port: 80}, {name: admin, port: 90}]", "")
                + &pod("ports", "p1", "10.1.0.4")),
        ),
        ("west/ports.yaml", &(exported("ports", PORTS, "") + &pod("ports", "p1", "10.2.0.4"))),
        ("west/own.yaml", &(exported("own", PORTS, "") + &pod("own", "o1", "10.2.0.5"))),
    ]);
    must_be("without.txt", &folder.plan(&["--without", "east"]).ok());
    folder.write("north/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n");
    assert_eq!(folder.plan(&["--without", "north"]).ok(), "If north died, no other cluster would lose an endpoint.\n");
}

#[test]
fn an_endpoint_that_is_not_ready_holds_nothing_up() {
    let unready =
        pod("web", "w1", "10.2.0.1").replace("status:", "status:\n  conditions: [{type: Ready, status: \"False\"}]");
    let folder = Folder::new(&[
        ("east/web.yaml", &(exported("web", PORTS, "") + &pod("web", "w1", "10.1.0.1"))),
        ("west/web.yaml", &(exported("web", PORTS, "") + &unready)),
    ]);
    assert_eq!(
        folder.plan(&["--without", "east"]).ok(),
        "If east died:\n- shop/web: left without endpoints: its only ready endpoint is in east\n"
    );
    assert_eq!(folder.plan(&["--without", "west"]).ok(), "If west died, no other cluster would lose an endpoint.\n");
}

#[test]
fn what_imports_miss_is_told() {
    let folder = Folder::new(&[
        ("east/web.yaml", &exported("web", PORTS, "")),
        (
            "north/cidr.yaml",
            "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: kubernetes}\nspec: {cidrs: [\"fd00:96::/112\"]}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
        ),
        ("south/empty.yaml", ""),
    ]);
    must_be("missing.txt", &folder.plan(&[]).ok());
}

/// What is wrong with a file or an argument, where, and what to do.
#[test]
fn every_error_names_place_and_remedy() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec:\n  ";
    let export = "apiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceExport\n";
    let cases: Vec<(&str, String)> = vec![
        ("east/a.yaml", "a: [\n".into()),
        ("east/a.yaml", "- a\n".into()),
        ("east/a.yaml", "\n\nkind: Service\n".into()),
        ("east/a.yaml", format!("{export}metadata: {{}}\n")),
        ("east/a.yaml", format!("{export}metadata: {{name: web}}\n---\n{export}metadata: {{name: web}}\n")),
        ("east/a.yaml", format!("{export}metadata: {{name: Web}}\n")),
        ("east/a.yaml", format!("{export}metadata: {{name: web, namespace: Shop}}\n")),
        ("east/a.yaml", format!("{export}metadata: {{name: web}}\nspec: {{exportedLabel: {{a: b}}}}\n")),
        ("east/a.yaml", format!("{export}metadata: {{name: web}}\nspecs: {{}}\n")),
        ("east/a.yaml", format!("{export}metadata: {{name: web, labels: {{a: 1}}}}\n")),
        ("east/a.yaml", format!("{}metadata: {{name: web}}\n", export.replace("x-k8s.io", "k8s.io"))),
        ("east/a.yaml", format!("{}metadata: {{name: web}}\n", export.replace("v1beta1", "v1"))),
        ("east/a.yaml", format!("{service}ports: []\n")),
        ("east/a.yaml", format!("{service}ports: [{{port: 80}}, {{port: 81}}]\n")),
        ("east/a.yaml", format!("{service}ports: [{{name: a, port: 80}}, {{name: a, port: 81}}]\n")),
        ("east/a.yaml", format!("{service}ports: [{{name: a, port: 80}}, {{name: b, port: 80}}]\n")),
        ("east/a.yaml", format!("{service}ports: [{{port: 70000}}]\n")),
        ("east/a.yaml", format!("{service}ports: [{{port: 80, protocol: HTTP}}]\n")),
        ("east/a.yaml", format!("{service}type: Headless\n  ports: [{{port: 80}}]\n")),
        ("east/a.yaml", format!("{service}clusterIP: 10.0.0.x\n  ports: [{{port: 80}}]\n")),
        (
            "east/a.yaml",
            format!(
                "{service}clusterIP: 10.0.0.1\n  ports: [{{port: 80}}]\n---\n{}clusterIP: 10.0.0.1\n  ports: [{{port: 80}}]\n",
                service.replace("web", "xeb")
            ),
        ),
        (
            "east/a.yaml",
            format!(
                "{service}ipFamilies: [IPv6]\n  ports: [{{port: 80}}]\n---\napiVersion: networking.k8s.io/v1\nkind: \
                 ServiceCIDR\nmetadata: {{name: kubernetes}}\nspec: {{cidrs: [10.96.0.0/16]}}\n"
            ),
        ),
        (
            "east/a.yaml",
            "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: kubernetes}\nspec: {cidrs: []}\n"
                .into(),
        ),
        ("east/a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nstatus: {podIP: nowhere}\n".into()),
        ("a.yaml", format!("{export}metadata: {{name: web}}\n")),
        ("East/a.yaml", String::new()),
    ];
    let mut told = String::new();
    for (file, text) in &cases {
        let ran = Folder::new(&[(file, text)]).plan(&[]);
        assert_eq!((ran.code, &*ran.out), (1, ""), "{text}: {ran:?}");
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
        told.push_str(&ran.err);
    }
    for (folder, args) in
        [("", &[][..]), ("east/a.yaml", &["--without", "wets"]), ("east/a.yaml", &["--cluster", "wets"])]
    {
        let folder = if folder.is_empty() { Folder::new(&[]) } else { Folder::new(&[(folder, "")]) };
        let ran = folder.plan(args);
        assert_eq!((ran.code, &*ran.out), (if args.is_empty() { 1 } else { 2 }, ""), "{ran:?}");
        told.push_str(&ran.err);
    }
    let gone = Folder::new(&[]);
    gone.remove("");
    told.push_str(&gone.plan(&[]).err);
    must_be("errors.txt", &told);
}

#[test]
fn kinds_of_others_and_files_that_are_no_yaml_are_left_alone() {
    let folder = Folder::example();
    let before = folder.plan(&[]).ok();
    folder.write(
        "london/other.yaml",
        "apiVersion: net.gke.io/v1\nkind: ServiceExport\nmetadata: {name: loyalty-accrual}\n",
    );
    folder.write("london/cm.yaml", "apiVersion: v1\nkind: ConfigMapList\nitems: [1, 2]\n");
    folder.write("README.md", "# no manifest");
    folder.write(".git/config.yaml", "a: [");
    assert_eq!(folder.plan(&[]).ok(), before);
}

#[test]
fn a_service_that_nothing_stands_behind_is_pointed_out() {
    let out = Folder::new(&[("east/web.yaml", &exported("web", PORTS, ""))]).plan(&[]).ok();
    assert_eq!(
        out.lines().next().unwrap(),
        "# DIR/east/web.yaml:1: Service shop/web is exported, but no pod in the cluster's folder has the labels that it \
         selects; write its Pods or EndpointSlices"
    );
}
