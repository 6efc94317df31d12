//! The bed keeps its own promises: real RBAC, restarts with data, partitions, counts. How it ends is in `ends.rs`.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::json;
use testbed::{Bed, Cluster, CoreDns, Part, Proxy, dig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const READER: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: demo}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: demo}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: demo}]
"#;

fn config_map(name: &str, value: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{k: {value}}}}}")
}

async fn value_of(cluster: &Cluster, name: &str) -> String {
    let object = cluster.request("GET", &format!("/api/v1/namespaces/default/configmaps/{name}"), None).await.unwrap();
    object["data"]["k"].as_str().unwrap().to_owned()
}

/// Asks with the rights of a ServiceAccount; the status code.
async fn code(cluster: &Cluster, token: &str, path: &str) -> u16 {
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    match cluster.client(token).unwrap().request_text(request).await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(e) => panic!("{path}: {e}"),
    }
}

#[tokio::test]
async fn two_clusters_side_by_side_with_real_rbac_and_an_audit_log() {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["east", "west"]).await.unwrap();
    let [east, west] = &clusters[..] else { panic!("two clusters") };
    println!("ready after {:?} and {:?}", east.ready_after(), west.ready_after());

    // Each has data of its own.
    east.apply(&config_map("where", "east")).await.unwrap();
    west.apply(&config_map("where", "west")).await.unwrap();
    assert_eq!((value_of(east, "where").await, value_of(west, "where").await), ("east".into(), "west".into()));
    east.delete(&config_map("where", "")).await.unwrap();
    east.delete(&config_map("where", "")).await.unwrap();
    assert!(east.kubectl(&["get", "configmap", "where"]).unwrap_err().to_string().contains("not found"));
    assert!(west.kubectl(&["get", "configmap", "where", "-o", "name"]).unwrap().contains("configmap/where"));

    // RBAC: what the role does not list is denied.
    east.apply(READER).await.unwrap();
    let token = east.service_account_token("demo", "reader", Duration::from_secs(600)).await.unwrap();
    let before = east.audit().unwrap();
    let slices = "/apis/discovery.k8s.io/v1/endpointslices";
    // The authorizer learns of a new binding by a watch.
    let deadline = Instant::now() + Duration::from_secs(10);
    while code(east, &token, slices).await != 200 {
        assert!(Instant::now() < deadline, "the role is not in force");
    }
    assert_eq!(code(east, &token, slices).await, 200);
    assert_eq!(code(east, &token, "/api/v1/configmaps").await, 403);
    assert_eq!(code(east, &token, &format!("{slices}?watch=true&timeoutSeconds=1")).await, 200);
    assert_eq!(code(west, &token, slices).await, 401, "a token of one cluster is worth nothing in another");

    // The audit log counts them, by ServiceAccount, verb and resource.
    let new = east.audit().unwrap().since(&before).service_account("demo", "reader");
    assert!(new.clone().verb("list").resource("endpointslices").count() >= 2);
    assert_eq!(new.clone().verb("watch").resource("endpointslices").count(), 1);
    let denied = new.verb("list").resource("configmaps");
    assert_eq!((denied.count(), denied.entries[0].code), (1, 403));

    // Objects that the server refuses and kinds that it does not know are errors which say so.
    let bad = east.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: Bad_Name}}").await.unwrap_err();
    assert!(bad.to_string().contains("Bad_Name"), "{bad}");
    let import = "{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceImport, metadata: {name: x}, spec: {}}";
    assert!(east.apply(import).await.is_err());
}

#[tokio::test]
async fn a_restart_keeps_port_and_data_and_a_hang_is_a_hang() {
    let bed = Bed::new().unwrap();
    let c = bed.cluster("c1").await.unwrap();
    c.apply(&config_map("kept", "first")).await.unwrap();
    let address = c.address();

    c.kill_api().unwrap();
    assert!(TcpStream::connect(address).is_err(), "a killed server refuses");
    assert!(c.kill_api().is_err(), "it is not there any more");
    c.start_api().await.unwrap();
    assert_eq!(c.address(), address);
    assert_eq!(value_of(&c, "kept").await, "first");
    assert!(c.start_api().await.is_err(), "it runs already");

    c.stop().unwrap();
    let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
    let silent = tokio::time::timeout(Duration::from_millis(500), c.admin().request_text(request)).await;
    assert!(silent.is_err(), "a stopped server says nothing, but got {silent:?}");
    assert!(TcpStream::connect(address).is_ok(), "its kernel still takes connections");
    c.cont().unwrap();
    c.wait_ready().await.unwrap();

    // After a compaction and a restart the past is gone: 410.
    let old = c.request("GET", "/api/v1/configmaps", None).await.unwrap()["metadata"]["resourceVersion"].clone();
    let old = old.as_str().unwrap().to_owned();
    c.apply(&config_map("kept", "more")).await.unwrap();
    c.compact().await.unwrap();
    c.kill_api().unwrap();
    c.start_api().await.unwrap();
    let path = format!("/api/v1/configmaps?watch=true&timeoutSeconds=2&resourceVersion={old}");
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let answer = c.admin().request_text(request).await;
    let gone = match &answer {
        Ok(events) => events.contains("410"),
        Err(kube::Error::Api(status)) => status.code == 410,
        Err(_) => false,
    };
    assert!(gone, "{answer:?}");

    c.kill(Part::Controllers).unwrap();
    c.start_part(Part::Controllers).unwrap();
}

#[tokio::test]
async fn crds_of_old_and_new_releases_come_and_go() {
    let bed = Bed::new().unwrap();
    let c = bed.cluster("c1").await.unwrap();
    let import = |version: &str| {
        format!(
            "{{apiVersion: multicluster.x-k8s.io/{version}, kind: ServiceImport, metadata: {{name: web}},
              spec: {{type: ClusterSetIP, ips: [10.0.0.1], ports: [{{port: 80, protocol: TCP}}]}},
              status: {{clusters: [{{cluster: east}}]}}}}"
        )
    };
    c.install_crds("v0.4.1").await.unwrap();
    c.apply(&import("v1alpha1")).await.unwrap();
    assert!(c.apply(&import("v1beta1")).await.is_err(), "v0.4.1 has v1alpha1 alone");
    let path = "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/default/serviceimports/web";
    let object = c.request("GET", path, None).await.unwrap();
    assert_eq!(object["status"]["clusters"], json!([{"cluster": "east"}]), "the status is applied too");
    c.uninstall_crds("v0.4.1").await.unwrap();
    assert!(c.request("GET", path, None).await.unwrap_err().to_string().contains("(404)"));
    for version in ["v0.2.0", "v0.5.0", "v0.5.1", "v0.5.2"] {
        c.install_crds(version).await.unwrap();
    }
    c.apply(&import("v1beta1")).await.unwrap();
    let no = testbed::mcs_crds("bad;version").unwrap_err().to_string();
    assert!(no.contains("bad;version"), "{no}");
}

#[tokio::test]
async fn a_proxy_in_front_of_a_cluster_leads_to_it() {
    let bed = Bed::new().unwrap();
    let c = bed.cluster("c1").await.unwrap();
    c.apply(READER).await.unwrap();
    let proxy = c.proxy().unwrap();
    let account = proxy.kubeconfig_for_service_account("demo", "reader").await.unwrap();
    for file in [proxy.kubeconfig(), account] {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(&proxy.address().to_string()) && !text.contains(&c.address().to_string()), "{text}");
        let config = kube::config::Kubeconfig::read_from(&file).unwrap();
        let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.unwrap();
        let client = kube::Client::try_from(config).unwrap();
        client.apiserver_version().await.unwrap();
    }
    assert_eq!(proxy.connections(), 2);
}

/// A server that sends back what it gets, on its own thread.
fn echo() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || std::io::copy(&mut stream.try_clone().unwrap(), &mut stream));
        }
    });
    address
}

#[tokio::test]
async fn the_weather_of_a_proxy() {
    let bed = Bed::new().unwrap();
    let proxy = Proxy::start(&bed, echo()).unwrap();
    let connect = || tokio::net::TcpStream::connect(proxy.address());
    async fn ping(stream: &mut tokio::net::TcpStream, within: Duration) -> Option<Duration> {
        let began = Instant::now();
        stream.write_all(b"ping").await.ok()?;
        let mut back = [0; 4];
        tokio::time::timeout(within, stream.read_exact(&mut back)).await.ok()?.ok()?;
        assert_eq!(&back, b"ping");
        Some(began.elapsed())
    }
    let (short, long) = (Duration::from_millis(200), Duration::from_secs(5));
    let mut old = connect().await.unwrap();
    assert!(ping(&mut old, long).await.is_some());

    proxy.black_hole();
    assert!(ping(&mut old, short).await.is_none(), "an old connection is silent");
    let mut new = connect().await.unwrap();
    assert!(ping(&mut new, short).await.is_none(), "a new one is taken, and silent");
    proxy.heal();
    let mut back = [0; 4];
    for stream in [&mut old, &mut new] {
        tokio::time::timeout(long, stream.read_exact(&mut back)).await.expect("what was held back comes").unwrap();
    }

    proxy.delay(Duration::from_millis(100));
    let took = ping(&mut old, long).await.unwrap();
    assert!(took >= Duration::from_millis(200), "100 ms each way, but took {took:?}");

    proxy.cut();
    let end = tokio::time::timeout(long, old.read(&mut back)).await.expect("an old connection ends");
    assert!(matches!(end, Ok(0) | Err(_)));
    // `cut` is in force when a new connection is refused; a moment passes until the listener is gone.
    let deadline = Instant::now() + long;
    while connect().await.is_ok() {
        assert!(Instant::now() < deadline, "a cut network refuses");
    }
    proxy.heal();
    let mut again = loop {
        match connect().await {
            Ok(stream) => break stream,
            Err(e) => assert!(Instant::now() < deadline, "{e}"),
        }
    };
    assert!(ping(&mut again, long).await.is_some());
}

#[tokio::test]
async fn coredns_answers_and_dig_reads_it() {
    let corefile = ".:{port} {
        bind 127.0.0.1
        template IN A example.test {
            answer \"{{ .Name }} 7 IN A 192.0.2.1\"
        }
        log
    }";
    let server = CoreDns::start(corefile).await.unwrap();
    let reply = dig(server.address(), &["www.example.test", "A"]).unwrap();
    assert_eq!((reply.status.as_str(), reply.data("A")), ("NOERROR", vec!["192.0.2.1"]));
    assert_eq!((reply.answer[0].ttl, reply.counts.answer, reply.tcp), (7, 1, false));
    assert!(reply.has("aa") && reply.edns.is_some());
    assert!(dig(server.address(), &["+noedns", "+tcp", "www.example.test"]).unwrap().tcp);
    server.process().wait_for_line("www.example.test", Duration::from_secs(5)).await.unwrap();
    let address = server.address();
    drop(server);
    assert!(dig(address, &["+time=1", "www.example.test"]).is_err(), "it ended with its handle");
    let broken = CoreDns::start(".:{port} { no-such-plugin }").await.err().expect("a broken Corefile").to_string();
    assert!(broken.contains("no-such-plugin"), "the error quotes the log: {broken}");
}

#[tokio::test]
async fn a_process_is_started_waited_for_and_signalled() {
    let bed = Bed::new().unwrap();
    let script = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let p = bed.process("sh", "/bin/sh").args(["-c", script]).spawn().unwrap();
    let within = Duration::from_secs(10);
    assert_eq!(p.wait_for_line("ready", within).await.unwrap(), "ready");
    assert!(p.exited().unwrap().is_none());
    assert!(p.wait_for_line("never", Duration::from_millis(50)).await.unwrap_err().to_string().contains("in time"));
    p.signal("TERM").unwrap();
    assert_eq!(p.wait_exit(within).await.unwrap().code(), Some(3));
    assert_eq!(p.log().unwrap(), "ready\nbye\n");
    assert!(p.signal("TERM").is_err(), "it has ended");
    assert!(p.wait_for_line("never", within).await.unwrap_err().to_string().contains("ended"));
    let one = bed.process("one", "/bin/sleep").arg("60").spawn().unwrap();
    assert_eq!(bed.running(), 1);
    drop(one);
    assert_eq!(bed.running(), 0, "a process ends with its handle, though the bed lives");
    assert!(bed.process("none", "/does/not/exist").spawn().is_err());
}
