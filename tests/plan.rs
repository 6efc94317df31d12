//! `namesake plan`, as a person and as a pipeline see it.

mod clusters;

use std::collections::BTreeMap;

use clusters::{Folder, exported, must_be, pod};
use namesake::controller::objects;
use namesake::preview::Clusterset;
use namesake::reconcile::Settings;
use namesake::reconcile::objects::Time;
use namesake::reconcile::plan::Action;
use namesake::source::clusters::read as clusters_of;
use serde_json::Value;

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

/// The request's example, `default/sample-service`, exported in cluster-a and seen in cluster-b.
fn request(files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new(files);
    folder.write(
        "cluster-a/sample-service.yaml",
        "\
apiVersion: v1
kind: Service
metadata: {name: sample-service, namespace: default}
spec:
  selector: {app: sample}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: sample-service, namespace: default}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: zone-1}}
---
apiVersion: v1
kind: Pod
metadata: {name: sample-1, namespace: default, labels: {app: sample}}
spec: {nodeName: n1}
status: {phase: Running, podIP: 10.0.1.1, conditions: [{type: Ready, status: \"True\"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: sample-2, namespace: default, labels: {app: sample}}
spec: {nodeName: n1}
status: {phase: Running, podIP: 10.0.1.2, conditions: [{type: Ready, status: \"True\"}]}
",
    );
    folder
}

#[test]
fn mcs_2_15_the_requests_example_comes_out_as_yaml_exactly() {
    let folder = request(&[("cluster-b/empty.yaml", "")]);
    must_be("sample-service.yaml", &folder.plan(&["-o", "yaml", "--cluster", "cluster-b"]).ok());
}

#[test]
fn mcs_2_15_the_address_that_the_cluster_gave_becomes_the_clusterset_ip() {
    // What cluster-b holds when the first plan was applied there: addresses and uids are its API server's.
    let folder = request(&[(
        "cluster-b/applied.yaml",
        "\
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata:
  name: sample-service
  namespace: default
  uid: 7d2c1a90-55d4-4a7e-9a3f-0a8d4f2b6c11
  labels: {app.kubernetes.io/managed-by: namesake}
  annotations: {multicluster.kubernetes.io/derived-service: derived-6kcte729st}
spec:
  type: ClusterSetIP
  ipFamilies: [IPv4]
  ports: [{name: http, protocol: TCP, port: 80}]
  sessionAffinity: None
  internalTrafficPolicy: Cluster
---
apiVersion: v1
kind: Service
metadata:
  name: derived-6kcte729st
  namespace: default
  labels:
    app.kubernetes.io/managed-by: namesake
    multicluster.kubernetes.io/service-imported: \"true\"
    multicluster.kubernetes.io/service-name: sample-service
spec:
  type: ClusterIP
  clusterIP: 10.96.0.1
  clusterIPs: [10.96.0.1]
  ipFamilies: [IPv4]
  ipFamilyPolicy: PreferDualStack
  ports: [{name: http, protocol: TCP, port: 80, targetPort: 80}]
",
    )]);
    must_be("sample-service-applied.yaml", &folder.plan(&["-o", "yaml", "--cluster", "cluster-b"]).ok());
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
fn what_is_written_and_kept_in_the_folder_is_planned_no_more() {
    let folder = Folder::example();
    let all = folder.plan(&["-o", "yaml"]).ok();
    for cluster in ["berlin", "london", "paris"] {
        let yaml = folder.plan(&["-o", "yaml", "--cluster", cluster]).ok();
        assert!(all.contains(&yaml), "one cluster's part is the same in the whole");
        folder.write(&format!("{cluster}/imported.yaml"), &yaml);
    }
    assert_eq!(folder.plan(&[]).ok(), "no objects to write; no conflicts\n");
    assert_eq!(folder.plan(&["-o", "yaml"]).ok(), "");

    // From here on only what changes is named.
    folder.replace("paris/loyalty.yaml", "port: 9443", "port: 9444");
    must_be("kept.txt", &folder.plan(&[]).ok());
    must_be("kept.yaml", &folder.plan(&["-o", "yaml", "--cluster", "berlin"]).ok());
    folder.remove("london/ledger.yaml");
    must_be("withdrawn.txt", &folder.plan(&["--cluster", "berlin"]).ok());
    must_be("withdrawn.yaml", &folder.plan(&["-o", "yaml", "--cluster", "berlin"]).ok());
}

#[test]
fn yaml_is_one_applicable_object_a_document_and_its_cluster_a_comment() {
    let yaml = Folder::example().plan(&["-o", "yaml"]).ok();
    let documents: Vec<_> = yaml.split("---\n").skip(1).collect();
    assert_eq!(documents.len(), 21, "as the text counts them");
    let mut clusters = Vec::new();
    for document in documents {
        let (comment, object) = document.split_once('\n').unwrap();
        clusters.push(comment.strip_prefix("# cluster: ").expect("a comment with the cluster").to_owned());
        let object: serde_json::Value = serde_saphyr::from_str(object).unwrap();
        for field in ["apiVersion", "kind", "metadata"] {
            assert!(object.get(field).is_some(), "{field} is missing in {document}");
        }
        assert!(object.get("status").is_none(), "nobody applies a status with its object");
        assert!(object.pointer("/metadata/ownerReferences").is_none(), "nobody knows the uid yet");
        assert!(object.pointer("/spec/ips").is_none(), "nobody has given an address yet");
    }
    assert!(clusters.is_sorted(), "{clusters:?}");
}

#[test]
fn without_a_cluster_the_names_that_lose_everything_come_first() {
    let folder = Folder::new(&[
        ("east/both.yaml", &(exported("both", PORTS, "") + &pod("both", "b1", "10.1.0.1") + &pod("both", "b2", "10.1.0.2"))),
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
    assert_eq!(
        folder.plan(&["--without", "north"]).ok(),
        "If north died, no other cluster would lose an endpoint.\n"
    );
}

#[test]
fn an_endpoint_that_is_not_ready_holds_nothing_up() {
    let unready = pod("web", "w1", "10.2.0.1").replace("status:", "status:\n  conditions: [{type: Ready, status: \"False\"}]");
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
        ("north/cidr.yaml", "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: kubernetes}\nspec: {cidrs: [\"fd00:96::/112\"]}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"),
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
            "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: kubernetes}\nspec: {cidrs: []}\n".into(),
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
    for (folder, args) in [("", &[][..]), ("east/a.yaml", &["--without", "wets"]), ("east/a.yaml", &["--cluster", "wets"])] {
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
    folder.write("london/other.yaml", "apiVersion: net.gke.io/v1\nkind: ServiceExport\nmetadata: {name: loyalty-accrual}\n");
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

/// Chapter 2.15 of our contract, as it stands there.
const CONTRACT: &str = r#"
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata:
  name: sample-service
  namespace: default
  labels: {app.kubernetes.io/managed-by: namesake}
  annotations: {multicluster.kubernetes.io/derived-service: derived-6kcte729st}
spec:
  type: ClusterSetIP
  ipFamilies: [IPv4]
  ips: ["10.96.0.1"]            # clusterIP that cluster-b gave to the derived Service
  ports: [{name: http, protocol: TCP, port: 80}]
  sessionAffinity: None
  internalTrafficPolicy: Cluster
status:                          # separate write
  clusters: [{cluster: cluster-a}]
  endpointSliceObjects: Present  # only when the CRD declares it
  conditions: [{type: Ready, status: "True", reason: Ready}]
---
apiVersion: v1
kind: Service
metadata:
  name: derived-6kcte729st
  namespace: default
  labels:
    multicluster.kubernetes.io/service-name: sample-service
    multicluster.kubernetes.io/service-imported: "true"
    app.kubernetes.io/managed-by: namesake
  ownerReferences: [{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceImport, name: sample-service, uid: UID, controller: true}]
spec:                            # no selector
  type: ClusterIP
  ipFamilyPolicy: PreferDualStack
  sessionAffinity: None
  internalTrafficPolicy: Cluster
  ports: [{name: http, protocol: TCP, port: 80}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: derived-6kcte729st-cluster-a
  namespace: default
  labels:
    kubernetes.io/service-name: derived-6kcte729st            # not sample-service
    multicluster.kubernetes.io/service-name: sample-service
    multicluster.kubernetes.io/source-cluster: cluster-a
    endpointslice.kubernetes.io/managed-by: namesake
  ownerReferences: [{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceImport, name: sample-service, uid: UID, controller: true}]
addressType: IPv4
ports: [{name: http, protocol: TCP, port: 8080}]               # resolved targetPort
endpoints:
- {addresses: ["10.0.1.1"], conditions: {ready: true, serving: true, terminating: false}, zone: zone-1}
- {addresses: ["10.0.1.2"], conditions: {ready: true, serving: true, terminating: false}, zone: zone-1}
"#;

#[test]
fn mcs_2_15_the_objects_that_api_servers_get_are_the_contracts() {
    let cidr = "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: kubernetes}\nspec: {cidrs: [10.96.0.1/32]}\n";
    let folder = request(&[("cluster-b/cidr.yaml", cidr)]);
    let mut set = Clusterset::new(Settings::default());
    set.tell(clusters_of(folder.path()).unwrap());
    let settled = set.settle(Time(1_700_000_000)).unwrap();
    // The last write of each object.
    let mut written: BTreeMap<String, Value> = BTreeMap::new();
    for change in settled.plans.iter().flat_map(|plan| &plan.plan.changes).filter(|c| c.cluster.as_str() == "cluster-b") {
        let action = with_uids(&change.action);
        for object in [objects::object(&action, "v1beta1"), objects::status(&action, "v1beta1")].into_iter().flatten() {
            let Value::Object(object) = serde_json::to_value(&object).unwrap() else { panic!("an object") };
            let kind = object["kind"].as_str().unwrap().to_owned();
            let into = written.entry(kind).or_insert_with(|| Value::Object(serde_json::Map::new()));
            for (field, value) in object {
                if field != "metadata" || into.get("metadata").is_none() {
                    into[field] = value;
                }
            }
        }
    }
    let mut written: Vec<Value> = written.into_values().collect();
    written.sort_by_key(|object| object["apiVersion"].to_string());
    // What the contract does not spell out: the message and its time, and that nobody waits for our owners.
    for object in &mut written {
        for condition in object.pointer_mut("/status/conditions").into_iter().flat_map(|c| c.as_array_mut().unwrap()) {
            for field in ["message", "lastTransitionTime", "observedGeneration"] {
                assert!(condition.as_object_mut().unwrap().remove(field).is_some(), "{field}");
            }
        }
        for owner in object.pointer_mut("/metadata/ownerReferences").into_iter().flat_map(|o| o.as_array_mut().unwrap()) {
            assert_eq!(owner.as_object_mut().unwrap().remove("blockOwnerDeletion"), Some(Value::Bool(false)));
        }
    }
    let mut contract: Vec<Value> = serde_saphyr::from_multiple(CONTRACT).unwrap();
    contract.sort_by_key(|object| object["apiVersion"].to_string());
    assert_eq!(written, contract);
}

/// As applied: owners that the same plan has made are looked up in the API server's answers, and addresses are never asked
/// for but where a cluster's range is made up.
fn with_uids(action: &Action) -> Action {
    let mut action = action.clone();
    match &mut action {
        Action::ApplyService(object) => {
            object.owners.iter_mut().for_each(|owner| owner.uid = Some("UID".into()));
            object.spec.ips.clear();
        }
        Action::ApplySlice(object) => object.owners.iter_mut().for_each(|owner| owner.uid = Some("UID".into())),
        _ => {}
    }
    action
}
