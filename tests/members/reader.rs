//! One controller per cluster: each reads the others by an account of its own, which can be taken away alone.

use testbed::{Bed, Cluster};

use crate::rig::{contexts, must, namesake};

const WRITTEN: &str = "
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: web, namespace: default, labels: {app.kubernetes.io/managed-by: namesake}}
spec: {type: ClusterSetIP, ports: []}
";

async fn uid(cluster: &Cluster) -> String {
    let namespace = cluster.request("GET", "/api/v1/namespaces/kube-system", None).await.unwrap();
    namespace["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn may(cluster: &Cluster, account: &str, verb: &str, resource: &str) -> bool {
    let account = format!("--as=system:serviceaccount:namesake:{account}");
    // In our own namespace: a Role is of that alone.
    cluster.kubectl(&["auth", "can-i", verb, resource, &account, "-n", "namesake"]).is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r97_a_reader_reads_and_leaves_alone_what_another_controller_writes() {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["east", "west"]).await.unwrap();
    let [east, west] = clusters.as_slice() else { panic!() };
    let kubeconfig = contexts(&bed, &clusters);
    must(&kubeconfig, &["join", "east", "--hub", "east", "--id", "east"]).await;
    must(&kubeconfig, &["join", "west", "--hub", "west", "--id", "west"]).await;
    let read = ["join", "west", "--hub", "east", "--id", "west", "--read-only"];
    let out = must(&kubeconfig, &read).await;
    assert!(out.contains("east: cluster west is registered, for reading only"), "{out}");
    must(&kubeconfig, &["join", "east", "--hub", "west", "--id", "east", "--read-only"]).await;

    // It may read what the merge needs, and nothing else at all.
    let reader = format!("namesake-reader-{}", &uid(east).await[..8]);
    for resource in [
        "namespaces",
        "services",
        "endpointslices.discovery.k8s.io",
        "serviceexports.multicluster.x-k8s.io",
        "serviceimports.multicluster.x-k8s.io",
    ] {
        for (verb, wanted) in [("list", true), ("watch", true), ("create", false), ("patch", false), ("delete", false)]
        {
            assert_eq!(may(west, &reader, verb, resource), wanted, "{verb} {resource}");
        }
    }
    for (verb, resource) in [("list", "secrets"), ("create", "events"), ("create", "leases.coordination.k8s.io")] {
        assert!(!may(west, &reader, verb, resource), "{verb} {resource}");
    }
    let again = must(&kubeconfig, &read).await;
    assert!(!again.contains("created") && !again.contains(": changed"), "{again}");

    // One registration is of one kind.
    let ran = namesake(&kubeconfig, &read[..6]).await;
    let said = "registers this cluster for reading only already; take it out with `namesake leave --read-only`";
    assert!(!ran.ok && ran.err.contains(said), "{ran:?}");
    let ran = namesake(&kubeconfig, &["join", "west", "--hub", "west", "--id", "west", "--read-only"]).await;
    assert!(!ran.ok && ran.err.contains("for writing too already"), "{ran:?}");

    // East shall read west no more. Said wrongly, it would be west's own controller that goes.
    west.apply(WRITTEN).await.unwrap();
    let ran = namesake(&kubeconfig, &["leave", "west", "--hub", "east"]).await;
    assert!(!ran.ok && ran.out.is_empty() && ran.err.contains("repeat the command with --read-only"), "{ran:?}");
    let ran = namesake(&kubeconfig, &["leave", "west", "--hub", "west", "--read-only"]).await;
    assert!(!ran.ok && ran.out.is_empty() && ran.err.contains("without --read-only"), "{ran:?}");
    let leave = ["leave", "west", "--hub", "east", "--read-only"];
    let out = must(&kubeconfig, &leave).await;
    for line in [
        "east: Secret cluster-west, which registers cluster west: deleted".to_owned(),
        format!("west: ServiceAccount {reader}: deleted"),
        format!("west: ClusterRole {reader}: deleted"),
        "west: is not read by east any more".to_owned(),
    ] {
        assert!(out.lines().any(|said| said == line), "{line}\n{out}");
    }
    west.kubectl(&["get", "serviceimport", "web"]).expect("what west's controller wrote stays");
    west.kubectl(&["get", "serviceaccount", "-n", "namesake", "namesake-member"]).expect("and its account");
    west.kubectl(&["get", "secret", "-n", "namesake", "cluster-west", "cluster-east"]).expect("and its members");
    let out = must(&kubeconfig, &leave).await;
    assert!(out.lines().all(|line| !line.contains("deleted")), "{out}");
    west.kubectl(&["get", "serviceimport", "web"]).expect("also when it is repeated");

    // Without any hub, everything goes: east is left by its own controller and by west's reader.
    must(&kubeconfig, &read).await;
    let out = must(&kubeconfig, &["leave", "west", "--member-only"]).await;
    assert!(out.contains(&format!("ServiceAccount {reader}: deleted")), "{out}");
    assert!(out.contains("ServiceAccount namesake-member: deleted"), "{out}");
    assert!(west.kubectl(&["get", "serviceimport", "web"]).is_err());
    assert!(west.kubectl(&["get", "clusterrole", &reader]).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r97_what_a_policy_needs_is_granted_by_name_and_taken_back() {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["east"]).await.unwrap();
    let east = &clusters[0];
    let kubeconfig = contexts(&bed, &clusters);
    let join = ["join", "east", "--hub", "east", "--id", "east"];
    let exports = "serviceexports.multicluster.x-k8s.io";
    let leases = "leases.coordination.k8s.io";
    let table = || {
        let asked = [
            ("create", exports),
            ("create", "namespaces"),
            ("delete", "namespaces"),
            ("list", "pods"),
            ("patch", leases),
        ];
        asked.map(|(verb, resource)| may(east, "namesake-member", verb, resource))
    };
    must(&kubeconfig, &join).await;
    assert_eq!(table(), [false; 5]);
    let with = |grants: &[&'static str]| {
        let flags = grants.iter().flat_map(|grant| ["--grant", grant]);
        join.into_iter().chain(flags).collect::<Vec<_>>()
    };
    let cases: [(&[&str], [bool; 5]); 5] = [
        (&["auto-export"], [true, false, false, false, false]),
        (&["create-namespaces"], [false, true, false, false, false]),
        (&["auto-export", "remove-namespaces"], [true, true, true, true, false]),
        (&["source-leases"], [false, false, false, false, true]),
        (&[], [false; 5]),
    ];
    for (grants, granted) in cases {
        must(&kubeconfig, &with(grants)).await;
        // The authorizer learns of it by a watch.
        let end = std::time::Instant::now() + crate::rig::PATIENCE;
        while table() != granted {
            assert!(std::time::Instant::now() < end, "{grants:?} {:?}", table());
        }
    }
    let elsewhere = ["auth", "can-i", "patch", leases, "--as=system:serviceaccount:namesake:namesake-member"];
    must(&kubeconfig, &with(&["source-leases"])).await;
    assert!(east.kubectl(&[&elsewhere[..], &["-n", "kube-system"]].concat()).is_err());
}
