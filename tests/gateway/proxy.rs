//! The gateway in its pod, backends behind it and a client in front of it.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use testbed::{Bed, ImageArchive, ImageConfig, Layer, suite_images};

use crate::PATIENCE;
use crate::clusterset::place::text;
use crate::clusterset::{Place, until};

/// The route of the sample.
pub const ROUTE: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes/store";

const IMAGE: &str = "namesake.test/envoy-gateway:1";

/// In this mode Envoy listens at the Gateway's port and 10000, since ports below 1024 need rights.
const PORT: u16 = 10_080;

/// Watches the API of the cluster whose pod it is, and starts Envoy itself, of the version VERSION. By `routingType` it
/// sends to the addresses of the import.
const CONFIG: &str = "
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyGateway
gateway: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
provider:
  type: Custom
  custom:
    resource:
      type: Kubernetes
      kubernetes:
        leaderElection: {disable: true}
        client: {rateLimit: {qps: 50, burst: 100}}
    infrastructure:
      type: Host
      host: {configHome: /gateway/config, dataHome: /gateway/data, stateHome: /gateway/state, runtimeDir: /gateway/run}
envoyProxy:
  routingType: Service
  provider: {type: Host, host: {envoyVersion: VERSION}}
";

const ACCOUNT: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: envoy-gateway-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: envoy-gateway, namespace: envoy-gateway-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: envoy-gateway}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: envoy-gateway, namespace: envoy-gateway-system}]
";

/// The certificates by which the gateway and Envoy know each other are Secrets of the gateway's own making. It writes
/// beside those of Envoy, so they are mounted one by one.
const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: envoy-gateway, namespace: envoy-gateway-system}
spec:
  serviceAccountName: envoy-gateway
  nodeName: NODE
  containers:
  - name: envoy-gateway
    image: namesake.test/envoy-gateway:1
    imagePullPolicy: Never
    env: [{name: HOME, value: /gateway}, {name: USER, value: root}, {name: ENVOY_GATEWAY_NAMESPACE, value: envoy-gateway-system}]
    volumeMounts:
    - {name: gateway, mountPath: /certs}
    - {name: envoy, mountPath: /gateway/config/certs/envoy/ca.crt, subPath: ca.crt}
    - {name: envoy, mountPath: /gateway/config/certs/envoy/tls.crt, subPath: tls.crt}
    - {name: envoy, mountPath: /gateway/config/certs/envoy/tls.key, subPath: tls.key}
  volumes:
  - {name: gateway, secret: {secretName: envoy-gateway}}
  - {name: envoy, secret: {secretName: envoy}}
";

const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: envoy}
spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: external, namespace: shop}
spec:
  gatewayClassName: envoy
  listeners: [{name: http, protocol: HTTP, port: 80}]
";

/// The programs and CRDs, built once by the script beside this file.
fn programs() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/build");
    let out = Command::new(&script).stdin(Stdio::null()).stderr(Stdio::inherit()).output().unwrap();
    assert!(out.status.success(), "{} failed ({}); its messages are above", script.display(), out.status);
    PathBuf::from(String::from_utf8(out.stdout).unwrap().trim())
}

/// An image with the gateway, and Envoy where the gateway looks for it.
fn image(bed: &Bed, programs: &Path) -> PathBuf {
    let version = fs::read_to_string(programs.join("envoy.version")).unwrap();
    let config = bed.file("envoy-gateway.yaml", &CONFIG.replace("VERSION", version.trim())).unwrap();
    let gateway = programs.join("envoy-gateway");
    let mut layer = Layer::new().file("/gateway/envoy-gateway", gateway).file("/gateway/config.yaml", config);
    let envoy = format!("/gateway/data/envoy-versions/{}/bin/envoy", version.trim());
    layer = layer.program(&envoy, programs.join("envoy")).unwrap();
    for (folder, mode) in [("/tmp", 0o1777), ("/etc", 0o755), ("/certs", 0o755), ("/gateway/config/certs/envoy", 0o755)]
    {
        layer = layer.folder(folder, mode);
    }
    let mut archive = ImageArchive::new();
    let layer = archive.layer(layer);
    let entrypoint = ["/gateway/envoy-gateway", "server", "--config-path", "/gateway/config.yaml"];
    let entrypoint = entrypoint.map(str::to_owned).to_vec();
    archive.image(IMAGE, &[layer], ImageConfig { entrypoint, ..ImageConfig::default() });
    let path = bed.dir().join("envoy-gateway.tar");
    archive.write(&path).unwrap();
    path
}

/// Has the gateway make its Secrets.
fn certificates(place: &Place, programs: &Path) {
    let mut certgen = Command::new(programs.join("envoy-gateway"));
    certgen.args(["certgen", "--disable-topology-injector"]).env("KUBECONFIG", place.cluster.kubeconfig());
    let made = certgen.env("ENVOY_GATEWAY_NAMESPACE", "envoy-gateway-system").output().unwrap();
    assert!(made.status.success(), "certgen: {}", String::from_utf8_lossy(&made.stderr));
}

/// Starts the gateway in a cluster, with a GatewayClass and a Gateway for the sample's route. Where it listens.
pub async fn start(bed: &Bed, place: &Place) -> SocketAddr {
    let programs = programs();
    for crd in fs::read_dir(programs.join("crds")).unwrap() {
        place.cluster.apply(&fs::read_to_string(crd.unwrap().path()).unwrap()).await.unwrap();
    }
    for archive in [suite_images().unwrap(), image(bed, &programs)] {
        place.cluster.import_image(&archive).unwrap();
    }
    until("the CRDs are served", PATIENCE, async || place.cluster.apply(GATEWAY).await.map_err(|e| e.to_string()))
        .await;
    place.cluster.apply(ACCOUNT).await.unwrap();
    certificates(place, &programs);
    place.cluster.apply(&POD.replace("NODE", &place.cluster.node_name())).await.unwrap();
    let system = place.beside("envoy-gateway-system");
    let address = until("the gateway runs", PATIENCE, async || {
        let pod = system.get("pods", "envoy-gateway").await.unwrap();
        match text(&pod["status"]["phase"]) {
            "Running" => Ok(text(&pod["status"]["podIP"]).parse::<IpAddr>().unwrap()),
            _ => Err(pod["status"].to_string()),
        }
    })
    .await;
    SocketAddr::new(address, PORT)
}

/// A backend on the node of a cluster, which answers the cluster's name. It ends with the test's process.
pub fn backend(place: &Place) -> SocketAddr {
    let address = SocketAddr::from((place.cluster.node_ip(), 8_080));
    let name = place.id().to_owned();
    let (bound, ready) = std::sync::mpsc::channel();
    let serve = move || {
        let listener = TcpListener::bind(address);
        bound.send(listener.as_ref().map(drop).map_err(ToString::to_string)).unwrap();
        for stream in listener.unwrap().incoming().flatten() {
            let mut stream = stream;
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            // A client that went away is no concern of the next one.
            let _ = answer(&mut stream, &name);
        }
    };
    drop(place.cluster.node_network().unwrap().run(serve).unwrap());
    ready.recv().unwrap().unwrap();
    address
}

fn answer(stream: &mut TcpStream, name: &str) -> io::Result<()> {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            length => head.extend_from_slice(&buffer[..length]),
        }
    }
    let length = name.len();
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{name}")
}

/// The status and body of `/` of a host at a gateway.
pub fn get(gateway: SocketAddr, host: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&gateway, Duration::from_secs(3))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    let (head, body) = reply.split_once("\r\n\r\n").ok_or_else(|| io::Error::other(format!("no answer: {reply:?}")))?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok((status.ok_or_else(|| io::Error::other(head.to_owned()))?, body.to_owned()))
}
